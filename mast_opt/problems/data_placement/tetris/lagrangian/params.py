"""Parameters of tetris's Lagrangian relaxation: step sizes, and the separation of tree cuts."""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.search.params import Params, parameter


@dataclass(frozen=True)
class RelaxationParams(Params):
    """Steps of the Lagrangian relaxation, and mixed-integer rounding (MIR) of its rows."""

    iterations: int = parameter(5, "Iterations in a round, where rounds are counted.", "Set by hand.", low=1)
    warm_omega: ClassVar[float] = 128.0
    """Factor on the primal weight where prices are an earlier solve's: with shorter steps of prices they stay good."""
    average_every: ClassVar[int] = 50
    """Iterations between averages. With 10 to 100 the bound comes as far."""
    evaluate_every: ClassVar[int] = 5
    """Iterations between evaluations of the bound."""
    read_step: ClassVar[float] = 0.4
    """Dual step of the reads' prices. Half of it is the most that Pock & Chambolle allow."""
    primal_step: ClassVar[float] = 1.6
    """Primal steps, times those of Pock & Chambolle. At 2 the bounds of eight instances still rose faster, at 2.5 two
    of them stood still. With 4/3 convergence is proven (Ma, Cai, Jiang & Han 2023), and rows of reads leave a quarter
    more."""
    patience: ClassVar[int] = 200
    """Iterations after which progress is judged."""
    least_iterations: ClassVar[int] = 400
    """Least iterations before the relaxation is said to converge."""
    progress: ClassVar[float] = 3e-4
    """Share by which these iterations have to improve the bound."""
    roundings: int = parameter(
        8, "Sizes of a GPU type by which rows are rounded: those that most is asked in.", "Set by hand.", low=0
    )
    sizes: ClassVar[int] = 64
    """Sizes of a type and tier that have a class of their own."""
    crowd: ClassVar[int] = 12
    """Whole gangs in a region of a type from which on its rows are not rounded. Rounding buys 0.4% of the bound at 8
    and 0.0% at 19. A gang that may run on several types counts as a part of each."""
    table_entries: ClassVar[int] = 4_000_000
    """Most entries of a table of roundings; beyond, rows are rounded by fewer sizes. They take 32 MB."""


@dataclass(frozen=True)
class TreeCutParams(Params):
    """Tree cuts of the relaxation."""

    few_cells: int = parameter(
        20_000, "Read cells up to which there are always tree cuts.", "They lift the bound by 1% to 2% there.", low=0
    )
    most_cells: ClassVar[int] = 500_000
    """Read cells up to which there are tree cuts at all. More would take gigabytes, and get nowhere."""
    seconds_per_cell: ClassVar[float] = 5e-4
    """Seconds of search for each read cell from which on there are tree cuts. They prove more then than they cost the
    plan."""
    round_interval: ClassVar[int] = 4
    """Rounds of a single thread of which one has a slice for tree cuts; the others go to the plan."""
    wait_after: ClassVar[int] = 600
    """Iterations without tree cuts after which a relaxation waits for the sub-MIPs. It has said nearly all by then, and
    its thread helps the search."""
    epoch: ClassVar[int] = 30
    """Iterations between separations."""
    patience: ClassVar[int] = 25
    """Separations after which progress is judged."""
    progress: ClassVar[float] = 1e-4
    """Share by which they have to improve the bound."""
    lower: ClassVar[float] = 0.95
    """Factor of the cuts' average prices with which the bound is evaluated too. At lower prices fewer charges exceed
    their room."""
    roots: ClassVar[int] = 60
    """Roots of a region that are tried in a separation. With 150 the bound gains 0.1% in four minutes."""
    detour: ClassVar[float] = 0.3
    """Length of a dataset of mean size on the way of a tree, as a part of the root's share, at first. Without lengths
    the first trees are arbitrary."""
    detours: ClassVar[int] = 100
    """Separations until that length is 0."""
    step: ClassVar[float] = 4.0
    """Times the safe step of the cuts' rows. It is far below what they bear."""
    violation: ClassVar[float] = 1e-3
    """Least violation of a cut that is added, as a share of what its tree needs."""
    most_reads: ClassVar[int] = 4_000_000
    """Room for the reads of trees. They take 64 MB, and five times as many gain 0.1%."""
    most_trees: ClassVar[int] = 30_000
    """Room for trees; those without a price make room."""
