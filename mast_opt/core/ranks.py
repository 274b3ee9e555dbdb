"""Rights by which work holds what it does, and the order in which it gives way: by tier and right."""

import enum
from dataclasses import dataclass


class Right(enum.IntEnum):
    """Right by which a job holds its GPUs."""

    WITHIN = 0
    """Its tenant's own quota covers it."""
    BORROWED = 1
    """It takes what others leave unused."""
    OVER = 2
    """It takes more than its tenant may borrow. Nothing starts so; what runs so counts as borrowed."""


class Reclaim(enum.StrEnum):
    """Rule for which work within its quota may stop work that borrows, as Kueue's reclaim policies."""

    ANY = "any"
    LOWER_PRIORITY = "lower-priority"
    """Only more important work."""
    NEVER = "never"
    """None that could not stop the same work within its quota."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The order in which work gives way: levels, of which 0 is the most important.

    The first ``tiers`` levels are those of work within its quota. Where there are quotas, as many follow for work that
    borrows, so that this keeps its order.
    """

    tiers: int
    quotas: bool = False
    reclaim: Reclaim = Reclaim.ANY

    @property
    def levels(self) -> int:
        """Number of levels of the ledger, which order work by tier and right."""
        return 2 * self.tiers if self.quotas else self.tiers

    def level(self, tier: int, right: Right) -> int:
        """The ledger's level of work of a tier, given by its position. What may not start has levels behind
        all others.
        """
        return right * self.tiers + tier

    def limit(self, tier: int, right: Right, *, preemptible: bool) -> int:
        """Limit in the ledger: work of levels below this may stop it; 0 if none may."""
        own = tier if preemptible else 0
        if right is Right.WITHIN or self.reclaim is Reclaim.NEVER:
            return own
        return tier if self.reclaim is Reclaim.LOWER_PRIORITY else self.tiers + tier
