"""Classes of waiting jobs that fit in the same places, and the order of those that ask for one size."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

from mast_opt.live.policies.group_room import EVERYWHERE, Size

MANY = 8
"""Part of the classes, one in so many, from which on the first with a limit short enough is looked for in order."""
Key = tuple[object, ...]
Brief = Sequence[tuple[int, int]]


@dataclass(eq=False)
class WaitingClass:
    """Jobs of one tier, place in the queue, shape, tenant and set of regions, and of one time limit where that
    matters."""

    key: Key
    shape: object
    own_tier: int
    """Tier of its jobs."""
    tier: int
    """Tier for their place in the queue, before quotas."""
    regions: tuple[str, ...]
    tenant: str
    places: tuple[tuple[int, int], ...]
    """Number of the size that it asks of groups, and these groups; several where tasks take more on some types."""
    limit_ms: int | None
    """Time after a start within which they give back their servers, see ``JobSpec.longest_ms``."""
    number: int
    """Classes that came later have higher ones."""
    ranked: tuple[int, int] | None = None
    """(submission, number) of its head, by which it stands in the orders of its sizes; None if it stands there not."""
    place: object = None
    """The place of its head in the order of this turn; None if it has none."""
    borrowing: tuple[tuple[int, int], ...] = ()
    """Places of a head that borrows; empty before one did."""
    helper: str | None = None
    """Tenant whose rights may give its head a better place, empty for those of all; None if it borrows nothing."""
    right_tier: int = 0
    """Lower bound on the queue tier of its head while it is refused."""
    refused: bool = False
    """Whether its head was refused, and nothing has helped it since, where jobs are served by rank."""
    queue: list[tuple[int, int, str]] = field(default_factory=list)
    """(submission, number, name), a heap; jobs that have gone to another class, or do not wait, are still there."""


class SizeOrder:
    """The classes that ask for one size, the oldest head first."""

    def __init__(self, size: Size) -> None:
        self.own_tier, self.tier = size.tier, size.queue_tier
        self.of_parts = bool(size.whole_job)
        self.full = 0
        """Groups in which the size was searched for in vain since they last grew."""
        self.kept = 0
        """Groups in which it was searched for in vain by jobs that do not end before a promise falls due there."""
        self.classes: list[tuple[int, int, int, WaitingClass, int]] = []
        """(submission, number) of the head, number of the class, the class, groups that it may have."""
        self._limits: list[tuple[int, int, int, int, WaitingClass, int]] = []
        """The classes that have a limit, by it: (limit, submission and number of the head, number of the class, the
        class, its groups)."""
        self._reached = 0
        """The classes before this one may have no group that could hold the size."""

    def first(self, able: int, brief: Brief) -> tuple[int, int, WaitingClass] | None:
        """(submission, number, class) of the first waiting class that may have a group that could hold the size.

        Args:
            able: groups that could have room; they become more only by ``grow``.
            brief: (ms, groups): jobs with limits up to that end before a promise falls due there.
        """
        free, at, classes = able & ~self.full, self._reached, self.classes
        if not free:
            return None
        open_ = free & ~self.kept
        last = len(classes) if open_ else at
        while at < last and not classes[at][4] & open_:
            at += 1
        self._reached = at
        found = None if at == last else (*classes[at][:2], classes[at][3])
        if open_ != free:
            for ms, there in brief:
                found = self._first_brief(ms, there & free, found)
        return found

    def _first_brief(
        self, ms: int, groups: int, found: tuple[int, int, WaitingClass] | None
    ) -> tuple[int, int, WaitingClass] | None:
        """The first of these: what is given, and the classes with limits up to that which may have these groups."""
        some = bisect.bisect_right(self._limits, ms, key=lambda one: one[0]) if groups else 0
        if MANY * some < len(self.classes):
            for _, submitted_ms, number, _, waiting, there in self._limits[:some]:
                if there & groups and (found is None or (submitted_ms, number) < found[:2]):
                    found = submitted_ms, number, waiting
        elif some:
            for submitted_ms, number, _, waiting, there in self.classes:
                if found is not None and (submitted_ms, number) >= found[:2]:
                    break
                if there & groups and waiting.limit_ms is not None and waiting.limit_ms <= ms:
                    return submitted_ms, number, waiting
        return found

    def grow(self, groups: int) -> None:
        """Note that these groups of servers may hold the size again."""
        grown = EVERYWHERE if self.of_parts else groups  # another part may have lacked room elsewhere
        self.full &= ~grown
        self.kept &= ~grown
        self._reached = 0

    def keep_again(self, groups: int) -> None:
        """Note that something else is kept in these groups of servers."""
        self.kept &= ~groups
        self._reached = 0

    def move(self, waiting: WaitingClass, head: tuple[int, int] | None, groups: int) -> None:
        """Note that a waiting class has another head than ``ranked``; None if it has none."""
        if waiting.ranked is not None:
            del self.classes[bisect.bisect_left(self.classes, (*waiting.ranked, waiting.number))]
            if waiting.limit_ms is not None:
                key = waiting.limit_ms, *waiting.ranked, waiting.number
                del self._limits[bisect.bisect_left(self._limits, key, key=lambda one: one[:4])]
        if head is not None:
            bisect.insort(self.classes, (*head, waiting.number, waiting, groups))
            if waiting.limit_ms is not None:
                bisect.insort(self._limits, (waiting.limit_ms, *head, waiting.number, waiting, groups))
        self._reached = 0
