"""Classes of waiting jobs that were refused, where jobs are served by rank: none is ranked again before something
that it can use has become free, or its tenant may start work by a better right."""

from collections.abc import Iterator

from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.waiting_classes import Key, WaitingClass

_Classes = dict[Key, WaitingClass]


class Refusals:
    """Refused classes by what may help them; one that was helped may still be noted elsewhere, which costs a try."""

    def __init__(self) -> None:
        self._by_groups: dict[int, _Classes] = {}
        """Groups of servers, as bits → the classes that may have these."""
        self._by_rights: dict[str, tuple[object, _Classes]] = {}
        """Tenant, or (empty) all of them → what ``Ledger.eased`` was, and the classes that their rights could help."""

    def note(self, waiting: WaitingClass, groups: int, tenant: str | None, snapshot: Snapshot) -> None:
        """Note that the head of a class was refused.

        Args:
            groups: of servers, as bits, that may hold it once they have grown.
            tenant: whose rights could help it, see ``Fleet.eased_by``.
        """
        waiting.refused = True
        self._by_groups.setdefault(groups, {})[waiting.key] = waiting
        if tenant is not None:
            self._by_rights.setdefault(tenant, (snapshot.eased(tenant), {}))[1][waiting.key] = waiting

    def helped(self, grown: int, snapshot: Snapshot) -> Iterator[WaitingClass]:
        """The classes that may fit again, since these groups of servers, as bits, have grown, or rights are better."""
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
