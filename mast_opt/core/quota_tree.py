"""Quota as one tree: leaves that use it, and groups that share it, lend it and borrow it, for any kinds of amounts.

The rule is that of Kueue's cohorts. A node has its own quota and what its children do not keep for themselves. What a
node keeps (its lending limit) is used first; what it uses beyond that is used of its parent too. A borrowing limit says
how much beyond its own quota it may use of the parent.
"""

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True)
class Quota:
    """Limits of one kind of amount at one node."""

    nominal: int
    borrowing: int | None = None
    """Amount beyond the quota that the node and those below it may use; None: as much as there is."""
    lending: int | None = None
    """Amount of the quota that others may use; None: all of it."""


_NONE = Quota(0)
UNLIMITED = 1 << 62
"""Amount that may be used where nothing limits it."""


class QuotaTree(Generic[KeyT]):
    """Nodes with their parents, quotas and use.

    Args:
        parents: every node → the node above it, or None.
        quotas: node → kind of amount → quota.
        open_roots: a node without a parent may use what is there beyond its quota, up to its borrowing limit.

    Raises:
        ValueError: a node is above itself, or a parent is no node.
    """

    def __init__(
        self,
        parents: Mapping[str, str | None],
        quotas: Mapping[str, Mapping[KeyT, Quota]],
        *,
        open_roots: bool = False,
    ) -> None:
        self._parents, self._quotas, self._open_roots = dict(parents), quotas, open_roots
        self._use: dict[str, dict[KeyT, int]] = {node: {} for node in parents}
        self._subtree: dict[str, dict[KeyT, int]] = {
            node: {key: quota.nominal for key, quota in quotas.get(node, {}).items()} for node in parents
        }
        self._kept: dict[tuple[str, KeyT], int] = {}
        """Amount of its quota that a node does not lend, where that is limited."""
        self._borrowing = {
            (node, key): quota.borrowing
            for node in parents
            for key, quota in quotas.get(node, {}).items()
            if quota.borrowing is not None
        }
        depth = {node: len(self.path(node)) for node in parents}
        for node in sorted(parents, key=lambda one: -depth[one]):
            above, own = self._parents[node], self._subtree[node]
            for key, quota in quotas.get(node, {}).items():
                if quota.lending is not None:
                    self._kept[node, key] = max(0, own[key] - quota.lending)
            if above is not None:
                total = self._subtree[above]
                for key, amount in own.items():
                    total[key] = total.get(key, 0) + amount - self._kept.get((node, key), 0)

    def __contains__(self, node: str) -> bool:
        return node in self._parents

    def copy(self) -> "QuotaTree[KeyT]":
        """Copy of the tree of quotas with a use of its own, and the same quotas."""
        twin = copy(self)
        twin._use = {node: dict(use) for node, use in self._use.items()}
        return twin

    def path(self, node: str) -> list[str]:
        """The nodes above a node of the tree of quotas, nearest first. Raises ValueError for a circle."""
        found: list[str] = []
        above = self._parents[node]
        while above is not None:
            if above == node or above in found or above not in self._parents:
                raise ValueError(f"{above} is above itself, or not known")
            found.append(above)
            above = self._parents[above]
        return found

    def quota(self, node: str, key: KeyT) -> Quota:
        """The quota stated at a node of the tree."""
        return self._quotas.get(node, {}).get(key, _NONE)

    def owned(self, node: str, key: KeyT) -> int:
        """The quota of a node of the tree and of those below it, as far as they lend it."""
        return self._subtree[node].get(key, 0)

    def use(self, node: str, key: KeyT) -> int:
        """The amount that a node of the tree of quotas uses, which counts against ``owned``."""
        return self._use[node].get(key, 0)

    def most(self, node: str, key: KeyT) -> int:
        """Amount that a node of the tree of quotas could use if nothing else ran."""
        return self.available(node, key, empty=True)

    def available(self, node: str, key: KeyT, *, empty: bool = False) -> int:
        """Amount that a node of the tree of quotas can use in addition now, or (``empty``) if nothing ran; negative
        where a quota was lowered under its use.
        """
        owned, use = self._subtree[node].get(key, 0), 0 if empty else self._use[node].get(key, 0)
        above, limit = self._parents[node], self._borrowing.get((node, key))
        if above is None and self._open_roots:
            return UNLIMITED if limit is None else owned - use + limit
        if above is None:
            return owned - use
        found, kept = self.available(above, key, empty=empty), self._kept.get((node, key), 0)
        if limit is not None:
            found = min(found, owned - kept - max(0, use - kept) + limit)
        return max(0, kept - use) + found

    def add(self, node: str, key: KeyT, amount: int) -> None:
        """Count more use at a node of the tree of quotas, or less where the amount is negative."""
        at: str | None = node
        while at is not None and amount:
            use, kept = self._use[at], self._kept.get((at, key), 0)
            before = use.get(key, 0)
            use[key] = before + amount
            amount = max(0, before + amount - kept) - max(0, before - kept)
            at = self._parents[at]
