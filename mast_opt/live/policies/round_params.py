"""Parameters of policies that play rounds."""

from dataclasses import dataclass

from mast_opt.core.errors import UsageError
from mast_opt.live.policies.share_rules import OBJECTIVES, PACKING


@dataclass(frozen=True)
class RoundLength:
    """Parameters of every policy that plays rounds.

    Args:
        aware: whether the policy knows how fast each job is on each type; if not, it takes all types for equal.
        round_s: length of a round, s.
        reset_s: least time between two computations of shares, s.
        seed: of what is left to chance.
    """

    aware: bool = True
    round_s: int = 360
    reset_s: int = 1920
    seed: int = 0

    def __post_init__(self) -> None:
        if self.round_s < 1 or self.reset_s < 0:
            raise UsageError(f"round_s and reset_s are {self.round_s} and {self.reset_s}; expected at least 1 and 0")


@dataclass(frozen=True)
class PackingParams(RoundLength):
    """Parameters of policies that may run two jobs on the same GPUs.

    Args:
        packing: whether they do; it takes speeds of pairs. Jobs are paired that may be stopped, of equally many tasks,
            whole GPUs, and no cores and memory.
    """

    packing: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.packing and not self.aware:
            raise UsageError("packing needs aware: which jobs do well on the same GPUs shows in their speeds")


@dataclass(frozen=True)
class RoundParams(PackingParams):
    """Parameters of ``gavel``.

    Args:
        objective: what the shares are to reach: ``max-min``, ``finish-time``, ``makespan``, ``fifo`` or ``allox``;
            the first three may pack.
    """

    objective: str = "max-min"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective not in OBJECTIVES:
            raise UsageError(f"objective is {self.objective!r}; expected one of {', '.join(OBJECTIVES)}")
        if self.packing and self.objective not in PACKING:
            raise UsageError(f"{self.objective} packs no jobs; packing needs one of {', '.join(PACKING)}")
