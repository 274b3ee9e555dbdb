"""Parameters of tetris's Lagrangian relaxation: step sizes, and the separation of tree cuts."""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.search.params import Params, parameter


@dataclass(frozen=True)
class RelaxationParams(Params):
    """Parameters of the steps of the Lagrangian relaxation, and of mixed-integer rounding (MIR) of its rows."""

    iterations: int = parameter(5, "Iterations in a round, where rounds are counted.", "Set by hand.", low=1)
    warm_omega: ClassVar[float] = 128.0
    """Factor on the primal weight if prices come from an earlier solve: shorter dual steps keep them good."""
    average_every: ClassVar[int] = 50
    """Iterations between averages. Values from 10 to 100 give the same bound."""
    evaluate_every: ClassVar[int] = 5
    """Iterations between evaluations of the bound."""
    read_step: ClassVar[float] = 0.4
    """Dual step of the reads' prices: twice the largest that Pock & Chambolle allow."""
    primal_step: ClassVar[float] = 1.6
    """Primal step, as a multiple of that of Pock & Chambolle. At 2 the bounds of eight instances still rose faster, at
    2.5 two
    of them stood still. With 4/3 convergence is proven (Ma, Cai, Jiang & Han 2023), and rows of reads leave a quarter
    more."""
    patience: ClassVar[int] = 200
    """Iterations after which progress is judged."""
    least_iterations: ClassVar[int] = 400
    """Fewest iterations before the relaxation may be considered converged."""
    progress: ClassVar[float] = 3e-4
    """Share by which ``patience`` iterations must improve the bound."""
    roundings: int = parameter(
        8, "Sizes of a GPU type by which rows are rounded: those that most is asked in.", "Set by hand.", low=0
    )
    sizes: ClassVar[int] = 64
    """Number of sizes of a type and tier that have a class of their own."""
    crowd: ClassVar[int] = 12
    """Number of whole gangs in a region of a type from which on its rows are not rounded. Rounding buys 0.4% of the
    bound at 8 and 0.0% at 19. A gang that may run on several types counts as a part of each."""
    table_entries: ClassVar[int] = 4_000_000
    """Most entries (32 MB) of a table of roundings; beyond it, rows are rounded by fewer sizes."""


@dataclass(frozen=True)
class TreeCutParams:
    """Parameters of the tree cuts of the relaxation."""

    few_cells: ClassVar[int] = 20_000
    """Read cells up to which there are always tree cuts. They lift the bound by 1% to 2% there."""
    most_cells: ClassVar[int] = 500_000
    """Read cells up to which there are tree cuts at all. More would need gigabytes without improving the bound."""
    seconds_per_cell: ClassVar[float] = 5e-4
    """Seconds of search for each read cell from which on there are tree cuts. They prove more then than they cost the
    plan."""
    round_interval: ClassVar[int] = 4
    """Rounds of a single thread of which one has a slice for tree cuts; the others go to the plan."""
    wait_after: ClassVar[int] = 600
    """Iterations after which a relaxation without tree cuts waits for the sub-MIPs. Its bound hardly improves by then,
    and its thread helps the search."""
    epoch: ClassVar[int] = 30
    """Iterations between separations."""
    patience: ClassVar[int] = 25
    """Separations after which progress is judged."""
    progress: ClassVar[float] = 1e-4
    """Share by which ``patience`` separations must improve the bound."""
    lower: ClassVar[float] = 0.95
    """Factor of the cuts' average prices with which the bound is evaluated too. At lower prices fewer charges exceed
    their room."""
    roots: ClassVar[int] = 60
    """Number of roots of a region that are tried in a separation. With 150 the bound gains 0.1% in four minutes."""
    detour: ClassVar[float] = 0.3
    """Length of a dataset of mean size on the way of a tree, as a part of the root's share, at first. Without lengths
    the first trees are arbitrary."""
    detours: ClassVar[int] = 100
    """Separations until the length ``detour`` has fallen to 0."""
    step: ClassVar[float] = 4.0
    """Multiple of the safe step of the cuts' rows, which is far smaller than necessary."""
    violation: ClassVar[float] = 1e-3
    """Smallest violation of an added cut, as a share of the need of its tree."""
    most_reads: ClassVar[int] = 4_000_000
    """Most reads of all trees. They take 64 MB, and five times as many gain 0.1%."""
    most_trees: ClassVar[int] = 30_000
    """Most trees; those without a price are replaced."""
