"""Parameters of tetris's multilevel start: when it runs, how far graphs are coarsened, how partitions are searched."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class MultilevelParams:
    """The multilevel start, where every dataset that is read has one copy and GPUs do not count."""

    share: float = 0.7
    """Share of the search that partitions the co-access graph; 0: no multilevel start. Annealing finds little that is
    better afterwards."""
    most_cells: ClassVar[int] = 2_000_000
    """Most read cells of an instance with such a start. One cycle, which is not interrupted, takes a second or two
    there."""
    coarsest: ClassVar[tuple[float, ...]] = (5.0, 60.0)
    """Range in which the nodes of the coarsest graph are drawn, in regions, evenly by order of magnitude. Where
    clusters are clear, few large nodes are best; elsewhere many."""
    largest: ClassVar[float] = 1.5
    """Storage of the largest cluster, in mean clusters of the coarsest graph. As in KaHIP."""
    shrink: ClassVar[float] = 0.95
    """Coarsening ends with a level that has more than this share of the nodes before."""
    initial: ClassVar[int] = 6
    """Partitions that are grown on the coarsest graph."""
    overload: ClassVar[tuple[float, ...]] = (0.0, 0.5, 1.0)
    """Storage that coarse levels may exceed, in sizes of their largest node; drawn in each cycle. Large nodes do not
    fit exactly; finer levels bring the excess back."""
    patience: ClassVar[int] = 150
    """Moves without a better state after which a search from a boundary ends."""
    local_patience: ClassVar[int] = 20
    """Moves without a better state after which a search from one node ends."""
    passes: ClassVar[int] = 6
    """Most passes of refinement on a level."""
    population: ClassVar[int] = 8
    """Partitions that are kept to be combined."""
    stall: ClassVar[int] = 400
    """Cycles without a better partition after which the search ends."""
    cycles: ClassVar[int] = 30
    """Most cycles where rounds are counted or there is no time limit. Set by hand."""
    warm: ClassVar[float] = 0.01
    """First temperature of the annealing that follows. It should improve the start, not dissolve it."""
