"""Order of a turn in which jobs are served by rank (policy ``mast`` with quotas), and the classes that are left out of
it: one that was refused is not ranked again before something that it can use has become free, or rights are better."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.size_order import Key, WaitingClass

Rank = tuple[Any, ...]
_Head = tuple[Rank, str, int, WaitingClass]
"""Rank and name of the head of a class, how many had a place before, and the class."""
_Classes = dict[Key, WaitingClass]


class RankedHeads:
    """The oldest jobs of waiting classes, the first in rank first, and refused classes by what may help them. A class
    that was helped may still be noted elsewhere, which costs a try."""

    def __init__(self) -> None:
        self._heads: list[_Head] = []
        """A heap; those that are not ``WaitingClass.place`` of their class have been taken out."""
        self._pushed = 0
        self._borrowing: dict[str, _Classes] = {}
        """Tenant → the classes in the order whose heads borrow."""
        self._eased = 0
        """``Ledger.eased`` of all when heads were last taken back."""
        self._by_groups: dict[int, _Classes] = {}
        """Groups of servers, as bits → the refused classes that may have these."""
        self._by_rights: dict[str, tuple[int, _Classes]] = {}
        """Tenant, or (empty) all of them → ``Ledger.eased`` then, and the refused classes it could help."""
        self._helped = 0
        """``Ledger.eased`` of all when rights last helped classes."""
        self._once_more: _Classes = {}
        """Refused classes that any start may help."""

    def push(self, waiting: WaitingClass, rank: Rank, name: str) -> None:
        """Give the head of a class its place in the order."""
        waiting.place = head = rank, name, self._pushed, waiting
        self._pushed += 1
        heapq.heappush(self._heads, head)
        if waiting.helper is not None:
            self._borrowing.setdefault(waiting.helper, {})[waiting.key] = waiting

    def pop(self) -> tuple[Rank, str, WaitingClass] | None:
        """Take the first head out of the order: its rank, its name and its class; None if there is none."""
        while self._heads:
            head = rank, name, _, waiting = heapq.heappop(self._heads)
            if self._take_out(waiting, head):
                return rank, name, waiting
        return None

    def _take_out(self, waiting: WaitingClass, head: object) -> bool:
        """Take the head of a class out of the order; False if this is not its place."""
        if head is None or waiting.place is not head:
            return False
        waiting.place = None
        if waiting.helper is not None:
            self._borrowing[waiting.helper].pop(waiting.key, None)
        return True

    def take_back(self, snapshot: Snapshot) -> list[WaitingClass]:
        """Take out the heads whose rights may have become better, so that they get another place; returns their
        classes."""
        eased, self._eased = self._eased, snapshot.eased("")
        tenants = snapshot.eased_since(eased) if eased != self._eased else ()
        found = [one for tenant in tenants for one in self._borrowing.get(tenant, {}).values()]
        return [waiting for waiting in found if self._take_out(waiting, waiting.place)]

    def take_all(self) -> list[WaitingClass]:
        """Take out all heads; returns their classes."""
        heads, self._heads = self._heads, []
        return [head[3] for head in heads if self._take_out(head[3], head)]

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

    def helped(self, grown: int, may_fit: Callable[[WaitingClass], bool], snapshot: Snapshot) -> Iterator[WaitingClass]:
        """The refused classes that may fit again, since these groups of servers, as bits, have grown, or rights are
        better. ``may_fit``: whether a group could have room for the head of a class by the right that it had."""
        once_more, self._once_more = self._once_more, {}
        yield from self._again(once_more.values())
        for groups in [groups for groups in self._by_groups if groups & grown]:
            classes = self._by_groups[groups]
            found = [one for one in classes.values() if not one.refused or may_fit(one)]
            for waiting in found:
                del classes[waiting.key]
            yield from self._again(found)
            if not classes:
                del self._by_groups[groups]
        if snapshot.eased("") == self._helped:
            return
        for tenant in ("", *snapshot.eased_since(self._helped)):
            eased, classes = self._by_rights.get(tenant, (0, {}))
            if classes and snapshot.eased(tenant) != eased:
                del self._by_rights[tenant]
                yield from self._again(classes.values())
        self._helped = snapshot.eased("")

    def _again(self, classes: Iterable[WaitingClass]) -> Iterator[WaitingClass]:
        """The classes among these that are still refused."""
        for waiting in classes:
            if waiting.refused:
                waiting.refused = False
                yield waiting
