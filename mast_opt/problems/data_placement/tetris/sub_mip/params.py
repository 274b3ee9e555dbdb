"""Parameters of tetris's sub-MIPs: fix-and-optimise, work alone with replicas held, and the completion of a plan.

Sizes are counted in cells: reads times regions (``read_cells``), reads times links (``link_cells``), and options times
the regions where they may run (``option_cells``).
"""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.search.params import Params, group, parameter
from mast_opt.problems.search.sub_mip import SubMipParams


@dataclass(frozen=True)
class NeighbourhoodParams(Params):
    """Fix-and-optimise: for links, caps on earlier terms, priced remote reads, and small whole programs."""

    link_cells: int = parameter(
        1_000_000,
        "Most link cells with which neighbourhoods bring a plan within the links.",
        "Larger programs do not fit.",
        low=0,
    )
    read_cells: int = parameter(
        20_000,
        "Most read cells with which neighbourhoods follow the annealing of a later term, or where remote reads have a "
        "price.",
        "Beyond, more annealing is better.",
        low=0,
    )
    whole_cells: ClassVar[int] = 600
    """Most read cells with which a program of whole decisions without remote reads is solved as a whole. CP-SAT ends 6%
    below the annealing at 60 × 60 × 8, and up to 9% above at 100 × 100 × 10."""
    whole_cells_later: ClassVar[int] = 2_500
    """Most read cells, likewise, for a later term, where remote reads have a price. Caps on earlier terms leave little
    freedom."""
    link_surcharge: ClassVar[float] = 20.0
    """Times that remote reads and copies are priced while links are taken for wide. So that few are left to fit in:
    with 5, cloud-links ends 3% higher, with 50, 1.5%."""
    search_share_links: ClassVar[float] = 0.3
    """Share of the time that is annealed before, where links are limited. With 0.1 most plans are as good, but some
    instances have none."""
    search_share_later: ClassVar[float] = 0.2
    """Share of the time that is annealed before, for a later term where remote reads have a price. Few changes of one
    or two workloads stay within the caps."""
    search_share_whole: ClassVar[float] = 0.3
    """Share of the time that is annealed before, where remote reads are forbidden. The program needs the rest."""
    search_share_priced: ClassVar[float] = 0.8
    """Share of the time that is annealed before, where remote reads have a price and nothing else needs neighbourhoods.
    Annealing finds most of what they do: without them, 100 × 150 × 8 ends 0.3% higher after 8 s."""
    whole_share: ClassVar[float] = 0.7
    """Share of the time left that the whole program may take."""
    near_excess: ClassVar[float] = 10.0
    """Excess, in units of links' capacities, up to which neighbourhoods bring a plan within the links. Where links
    bind, annealed plans exceed them by 50 to 250, elsewhere by 0.1 to 2."""
    near_share: ClassVar[float] = 0.4
    """Share of the time left that this may take. It takes two to eight seconds."""
    excess_price: ClassVar[float] = 100.0
    """Price of exceeding a link by its own capacity."""
    excess_growth: ClassVar[float] = 10.0
    """Times that this price rises after a neighbourhood that left the excess. A solver's gap may hide what is small."""
    most_excess_price: ClassVar[float] = 1e6
    """Highest price of the excess. Solvers lose precision beyond."""
    today_share: ClassVar[float] = 0.5
    """Share of the time left that may go to finding any plan within the links, with today's replicas."""
    work_share: ClassVar[float] = 0.4
    """Share of the time left that may go to placing all work with those replicas. Plans with 0.25 to 0.8 are alike;
    without it 60 × 90 × 6 ends 70% higher."""
    sub_mip: SubMipParams = group(
        SubMipParams(gap=1e-4, time_limit_s=2.0, threads=1), "Exact solves of neighbourhoods."
    )
    integer_sub_mip: SubMipParams = group(
        SubMipParams(solver="cpsat", gap=1.0),
        "Exact solve of a whole program of whole decisions. The gap of the solve holds where it is smaller.",
        only=("solver",),
    )
    first_workloads: ClassVar[int] = 6
    """Workloads that a neighbourhood frees at first."""
    least_workloads: ClassVar[int] = 2
    """Workloads that a neighbourhood frees at least."""
    growth: ClassVar[float] = 1.1
    """Factor of their number after a neighbourhood that was solved in time; its inverse after another."""
    patience: ClassVar[int] = 50
    """Neighbourhoods in a row without improvement that end the search where there is no time limit. Set by hand; the
    whole program then takes no longer than they may."""
    two_regions: ClassVar[float] = 0.25
    """Share of the neighbourhoods that free two regions."""
    reserve: ClassVar[float] = 0.1
    """Share of the time that is reserved for completing the plan."""


@dataclass(frozen=True)
class WorkloadsOnlyParams(Params):
    """The sub-MIP of all work with replicas held, where no term depends on data."""

    option_cells: ClassVar[int] = 20_000
    """Most option cells with which it beats more annealing. At 2,000 × 3,000 × 20, with 67,880, it does not."""
    least_search: ClassVar[float] = 0.1
    """Least share of the time that is annealed before. A tenth to a fiftieth end alike."""
    most_search: ClassVar[float] = 0.6
    """Largest share of the time that is annealed before. Larger programs, as of 500 × 750 × 10, gain from it."""
    cells_per_search: ClassVar[float] = 14_000
    """Option cells at which all the time would be annealed, but for that limit."""
    reserve: ClassVar[float] = 0.05
    """Share of the time left that is reserved for handing the plan over."""
    unhurried_s: ClassVar[float] = 60.0
    """Seconds where there is no time limit."""
    integer_sub_mip: SubMipParams = group(
        SubMipParams(solver="cpsat", gap=1.0),
        "Exact solve where no workload is split. The gap of the solve holds where it is smaller.",
        only=("solver",),
    )
    sub_mip: SubMipParams = group(
        SubMipParams(gap=1.0),
        "Exact solve where some are, or where amounts are too large for the first solver.",
        only=("solver",),
    )


@dataclass(frozen=True)
class CompletionParams(Params):
    """The sub-MIP of shares of splittable work and sources across links."""

    read_cells: int = parameter(
        3_000_000,
        "Most read cells with which sources are chosen by a MIP solver.",
        "Larger programs take gigabytes.",
        low=0,
    )
    least_s: ClassVar[float] = 1.0
    """Least seconds for it. A plan without sources is none."""
    nodes: ClassVar[int] = 300
    """Most nodes where rounds are counted. So that the answer does not depend on the machine."""
    counted_cells: ClassVar[int] = 20_000
    """Most read cells with which a plan is looked for where rounds are counted and the search found none. On more it
    takes too long."""
    sub_mip: SubMipParams = group(
        SubMipParams(gap=1.0, time_limit_s=30.0),
        "Exact solve; its seconds hold where rounds are not counted, the gap of the solve where it is smaller.",
        only=("solver", "time_limit_s"),
    )
