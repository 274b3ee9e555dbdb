"""Parameters of tetris's blocks: how many, where they are solved, how work and data are divided."""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.core.errors import UsageError
from mast_opt.core.executor import EXECUTORS, RAY, THREADS
from mast_opt.problems.search.params import Params, parameter


@dataclass(frozen=True)
class BlockParams(Params):
    """Blocks of workloads with the datasets that they read, each solved by a worker."""

    count: int = parameter(
        0,
        "Blocks that the work is divided into; 0: one for each worker, and none with threads. The plan depends on it.",
        "Fewer blocks divide less of what belongs together; more need less memory each.",
        low=0,
    )
    workers: str = parameter(
        THREADS,
        "Where blocks are solved: in threads of this process, in processes of their own (as many as there would be "
        "threads), or on a Ray cluster (as many at a time as it has processors); the plan is the same.",
        "One search in this process needs no division.",
        choices=EXECUTORS,
    )
    ray: str = parameter(
        "auto",
        "Address of the Ray cluster where workers is ray: auto for the one that this machine belongs to, HOST:PORT, or "
        "ray://HOST:PORT.",
        "As for Ray itself.",
    )
    search_share: float = parameter(
        0.5,
        "Share of the workers' time that searches for plans; the rest is for the bound.",
        "Set by hand.",
        above=0,
        high=1,
    )
    anneal: bool = parameter(
        True,
        "Is the joined plan annealed as a whole here, while the workers prove the bound? That takes the memory of a "
        "search without a bound.",
        "Two blocks of a standard 20,000 × 20,000 × 20 end 3.3% above one search without it, 0.1% with it.",
    )
    hot: ClassVar[float] = 0.03
    """First temperature of the sweeps that continue from the joined plan. From 0.005 to 0.1, the same instance ends
    within 0.3%."""
    sweeps: ClassVar[int] = 10
    """Sweeps of the label propagation that finds clusters of datasets."""
    cluster_share: ClassVar[float] = 0.05
    """Reads of the largest cluster, as a share of a block's. Set by hand; blocks of many clusters are alike, so that
    each needs its share of every region."""

    @property
    def wanted(self) -> bool:
        """Whether the instance is to be divided into blocks."""
        return self.count > 1 or (self.count == 0 and self.workers != THREADS)

    def refuse_unused(self) -> None:
        """Raise UsageError for ``ray`` without workers on a Ray cluster, which would do nothing."""
        if self.ray != "auto" and self.workers != RAY:
            raise UsageError(f"blocks.ray = {self.ray} is for a Ray cluster; set blocks.workers to {RAY}")
