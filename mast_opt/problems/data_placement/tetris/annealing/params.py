"""Parameters of tetris's annealing: temperatures, operators and restarts.

Temperatures are in units of the mean cost of a workload.
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class CoolingParams:
    """Temperatures of the annealing."""

    hot: ClassVar[float] = 1.0
    """First temperature. Set by hand: a workload's mean cost is what a move may cost."""
    cold: ClassVar[float] = 0.0024
    """Last temperature but 0. Half and twice of it end within the noise at 20,000 × 30,000 × 20."""
    no_remote_reads: ClassVar[float] = 4.0
    """Factor of the first temperature where remote reads are forbidden. Work moves only with its data there, and most
    changes cost far more than the mean."""
    gpus_only: ClassVar[float] = 16.0
    """Factor of the first temperature where only GPU terms count. The mean cost of a workload is small compared with
    what a gang changes."""
    warm: float = 0.05
    """First temperature when a plan is given to start from. It should be improved, not dissolved."""
    later_stage: ClassVar[float] = 0.3
    """First temperature of a later lexicographic term. Caps on earlier terms are so steep a price that little of the
    plan can be dissolved."""
    reheat: ClassVar[float] = 0.5
    """First temperature of a later cooling, relative to the first one's."""
    longest: ClassVar[int] = 100_000
    """Changes per workload beyond which the search cools again from the best plan. Beyond, slower cooling is no better
    than that."""
    unhurried: ClassVar[int] = 1_000
    """Changes per workload with which cooling begins at the first temperature; with fewer, proportionally colder. With
    fewer changes the hot part of a cooling is wasted."""
    most: ClassVar[int] = 50
    """Most coolings."""
    finish: ClassVar[float] = 0.06
    """Share of a cooling at temperature 0."""


@dataclass(frozen=True)
class OperatorParams:
    """Relative frequency of each operator, and the way in which it proposes changes."""

    move: float = 0.5
    """Moves of one workload. Without them 1,000 × 1,500 × 10 ends 0.8% higher."""
    twins: float = 0.19
    """Exchanges of two workloads that ask for the same GPUs. Without them it ends 1.7% higher."""
    swap: float = 0.14
    """Exchanges of any two workloads. Without them seven families end 1.0% (± 0.7%) higher."""
    compound_move: float = 0.04
    """Moves of a dataset with its dependency closure, where remote reads are forbidden or the instance is small. No
    other change reaches an empty region there; small instances end up to 2% higher without."""
    compound_swap: float = 0.2
    """Exchanges of two datasets with their closures, where remote reads are forbidden. Without them weakly-coupled ends
    9% (± 8%) higher."""
    guided_twins: float = 0.4
    """The share of exchanges of twins, where changes are guided. Guidance makes each of them worth more."""
    guided_below: int = 5_000
    """Changes are guided by a surrogate cost where there is time for fewer of them per workload. A guided change takes
    longer, and finds more only while there are few."""
    guided_from: int = 2_000
    """Fewest workloads of a search whose changes are guided. With 520, as much time for others ends 0.5% to 1% lower,
    with 3,000 and 7,500 as low, with 30,000 higher."""
    surrogate_share: ClassVar[float] = 0.5
    """Share of the guided moves whose region the surrogate chooses."""
    holder_share: ClassVar[float] = 0.6
    """Share of the other moves that go to a region which holds something that the workload reads. Set by hand; the rest
    go to any region."""
    window: int = 2_000
    """Workloads in an active window, which lasts for as many changes. With fewer, they find too few partners; with
    more, their data leaves the processor's cache."""
    partners: ClassVar[int] = 16
    """Twins of which the surrogate chooses a partner. With eight, equal time leads as far."""
    closure_workloads: ClassVar[int] = 48
    """Most workloads of a dependency closure."""
    closure_datasets: ClassVar[int] = 12
    """Most datasets of a dependency closure."""
    slice_changes: ClassVar[int] = 20_000
    """Changes of a slice, where rounds are counted or nothing is known of the machine. A few hundredths of a second."""


@dataclass(frozen=True)
class MultistartParams:
    """Multistart annealing: cooling runs of small instances, from packed gangs and from scratch."""

    most_workloads: int = 500
    """Most workloads of an instance that is searched so. Beyond, packings lose: 6.320 against 6.237 at 500 × 750 ×
    10."""
    repacked: ClassVar[float] = 0.2
    """Share of the best plan's gangs that are packed again in one cooling of four; the others pack all or none, or
    begin without packing. Plans that share most of their gangs with a good one are often better still."""
    packed: ClassVar[float] = 0.3
    """First temperature after packing, relative to the usual. Data and small work follow, but gangs stay where they
    were packed."""
    unpacked: ClassVar[tuple[float, ...]] = (1.0, 4.0, 1.0, 16.0)
    """First temperatures without packing, in turn, relative to the usual. A dataset that fills most of a region only
    moves in a hot cooling."""
    scattered: int = 1
    """The cooling without packing, counted from 0, that begins from data in regions drawn at random; a number beyond
    them: none. Data that has no room elsewhere stays where it is in all others."""
    beam_width: ClassVar[tuple[float, ...]] = (50.0, 400.0)
    """Range in which the width of a beam is drawn, evenly by order of magnitude. Which width finds the best packing
    differs among instances."""
    evenness: ClassVar[tuple[float, ...]] = (1e-3, 0.1)
    """Range in which a beam's worth of evenness is drawn, evenly by order of magnitude. Which one finds the best
    packing differs among instances."""
    noise: ClassVar[float] = 0.5
    """Most noise of a beam, in mean costs of a workload. So that beams differ."""
    choice: ClassVar[float] = 0.3
    """Temperature at which one packing of a beam is drawn, in mean costs of a workload. The cheapest packing is rarely
    the best start."""
    changes: ClassVar[int] = 1_500
    """Changes per workload of a cooling. With 500 to 4,000, a second ends within the noise."""
    least_changes: ClassVar[int] = 750
    """Least changes of the last cooling."""
    longer_from_workloads: ClassVar[int] = 100
    """Workloads beyond which coolings are longer in proportion. So 200 × 300 × 10 ends 1% lower."""
    longer_from_coolings: ClassVar[int] = 100
    """Coolings after which further ones are longer in proportion. So 50 × 80 × 6 ends 1.6% lower after 20 s."""
