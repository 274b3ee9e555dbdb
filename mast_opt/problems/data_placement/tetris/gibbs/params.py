"""Parameters of tetris's Gibbs sweeps: when they run, temperatures, congestion prices and the repair of replicas."""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.search.params import Params, parameter


@dataclass(frozen=True)
class GibbsParams(Params):
    """Gibbs sweeps before the annealing of large instances."""

    workloads: int = parameter(
        2_000,
        "Least workloads with which sweeps come first.",
        "Below, peaks are left for the annealing to balance.",
        low=0,
    )
    gang_share: ClassVar[float] = 0.1
    """Most of a region's GPUs that the usual gang may take for sweeps to come first. Larger gangs stay where they are
    at prices."""
    share: ClassVar[float] = 0.8
    """Share of the search that is sweeps. With 25 or 50 s of a minute, plans end alike."""
    gang_discount: ClassVar[float] = 20.0
    """Discount of that share the more of a region's GPUs a gang takes. Balancing large gangs is left to the
    annealing."""
    most_sweeps: ClassVar[int] = 600
    """Most sweeps, if all took as long as the first, the hottest."""
    warmer: ClassVar[float] = 2.0
    """First temperature of the annealing that follows, for each part of a region's GPUs that a gang takes. The larger
    gangs are, the more is left to move."""
    hot: ClassVar[float] = 0.15
    """First temperature of the sweeps. Plans with 0.05 to 0.15 are within 0.6%."""
    cold: ClassVar[float] = 0.005
    """Last temperature of the sweeps. Plans with 0.002 to 0.01 are within 0.6%."""
    stiffness: ClassVar[float] = 20.0
    """Rise of the price of a region's GPUs at first, in times their usual price, with demand higher by its supply. With
    30 times as much, 200,000 × 200,000 × 30 ends 1.5% higher."""
    gang_stiffness: ClassVar[float] = 0.02
    """Demand over supply, in parts of what a gang takes, at which that holds instead where it is less. Gangs that raise
    prices by arriving stay where they are."""
    stiffening: ClassVar[float] = 5.0
    """Factor on that rise in the end."""
    core_stiffness: ClassVar[float] = 2.5
    """Price of a region's cores when all are in use, relative to what all work costs, if the price rose evenly."""
    core_steepness: ClassVar[float] = 0.0025
    """Least use above core_level at which the price of cores has risen twice as far as evenly. Into a full region
    nothing comes, so whoever came first must be driven out."""
    core_level: ClassVar[float] = 0.985
    """Use of a region's cores at which they have the price of the sweeps before."""
    learning: ClassVar[float] = 0.1
    """Share of a step that prices of cores take for the sweeps to come; those of GPUs twice as much."""
    storage_step: ClassVar[float] = 0.5
    """How fast prices of storage rise, relative to what copies cost. A fifth or a twenty-fifth of it changes
    nothing."""
    storage_level: ClassVar[float] = 0.995
    """Use of storage at which its price stands still."""
    refresh: ClassVar[int] = 100
    """Workloads after which the level of the peaks and the prices of cores are recomputed."""
    ramp: ClassVar[float] = 0.02
    """Demand over supply within which overload comes and idleness goes. A price that jumps would make work jump."""
    repair_every: ClassVar[int] = 25
    """Sweeps between two repairs, where rounds are counted; otherwise as many as there is time for."""
