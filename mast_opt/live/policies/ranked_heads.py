"""Order of a turn in which jobs are served by rank (policy ``mast`` with quotas), and the classes that are left out of
it: one that was refused is not ranked again before something that it can use has become free, or rights are better."""

import heapq
from collections.abc import Iterator
from typing import Any

from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.size_order import Key, WaitingClass

Rank = tuple[Any, ...]
_Classes = dict[Key, WaitingClass]


class RankedHeads:
    """The oldest jobs of waiting classes, the first in rank first, and refused classes by what may help them. A class
    that was helped may still be noted elsewhere, which costs a try."""

    def __init__(self) -> None:
        self._heads: list[tuple[Rank, str, WaitingClass]] = []
        """Rank and name of the head of a class, and the class."""
        self._eased: object = None
        """The object of ``Ledger.eased`` of all when heads were last taken back."""
        self._by_groups: dict[int, _Classes] = {}
        """Groups of servers, as bits → the refused classes that may have these."""
        self._by_rights: dict[str, tuple[object, _Classes]] = {}
        """Tenant, or (empty) all of them → ``Ledger.eased`` then, and the refused classes it could help."""
        self._once_more: _Classes = {}
        """Refused classes that any start may help."""

    @property
    def is_empty(self) -> bool:
        """Whether no head has a place in the order."""
        return not self._heads

    def push(self, waiting: WaitingClass, rank: Rank, name: str, snapshot: Snapshot) -> None:
        """Give the head of a class its place in the order."""
        heapq.heappush(self._heads, (rank, name, waiting))
        waiting.offered = True
        waiting.eased = waiting.helper and snapshot.eased(waiting.helper)

    def pop(self) -> tuple[Rank, str, WaitingClass]:
        """Take the first head out of the order: its rank, its name and its class."""
        rank, name, waiting = heapq.heappop(self._heads)
        waiting.offered = False
        return rank, name, waiting

    def take_back(self, snapshot: Snapshot) -> list[WaitingClass]:
        """Take out the heads whose rights may have become better, so that they get another place; returns their
        classes."""
        if snapshot.eased("") is self._eased:
            return []
        self._eased = snapshot.eased("")
        kept, found = [], []
        for head in self._heads:
            waiting = head[2]
            if waiting.helper is None or waiting.eased is snapshot.eased(waiting.helper):
                kept.append(head)
            else:
                waiting.offered = False
                found.append(waiting)
        self._heads = kept
        heapq.heapify(kept)
        return found

    def take_all(self) -> list[WaitingClass]:
        """Take out all heads; returns their classes."""
        found = [waiting for _, _, waiting in self._heads]
        self._heads = []
        for waiting in found:
            waiting.offered = False
        return found

    def refuse(self, waiting: WaitingClass, groups: int, tenant: str | None, snapshot: Snapshot) -> None:
        """Note that the head of a class was refused.

        Args:
            groups: of servers, as bits, that may hold it once they have grown.
            tenant: whose rights could help it, empty for those of all; None if none could.
        """
        waiting.refused = True
        self._by_groups.setdefault(groups, {})[waiting.key] = waiting
        if tenant is not None:
            self._by_rights.setdefault(tenant, (snapshot.eased(tenant), {}))[1][waiting.key] = waiting

    def refuse_once(self, waiting: WaitingClass) -> None:
        """Note that the head of a class was refused for a promise, or for work that stops: any start may help."""
        waiting.refused = True
        self._once_more[waiting.key] = waiting

    def helped(self, grown: int, snapshot: Snapshot) -> Iterator[WaitingClass]:
        """The refused classes that may fit again, since these groups of servers, as bits, have grown, or rights are
        better."""
        once_more, self._once_more = self._once_more, {}
        yield from self._again(once_more)
        for groups in [groups for groups in self._by_groups if groups & grown]:
            yield from self._again(self._by_groups.pop(groups))
        for tenant, (eased, classes) in list(self._by_rights.items()):
            if snapshot.eased(tenant) is not eased:
                del self._by_rights[tenant]
                yield from self._again(classes)

    def _again(self, classes: _Classes) -> Iterator[WaitingClass]:
        """The classes among these that are still refused."""
        for waiting in classes.values():
            if waiting.refused:
                waiting.refused = False
                yield waiting
