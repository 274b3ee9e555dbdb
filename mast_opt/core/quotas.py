"""Quotas of tenants: amounts of GPU types or of all together, below groups that share, lend and borrow them."""

from collections.abc import Iterable, Iterator, Mapping

from mast_opt.core.errors import UsageError
from mast_opt.core.quota_tree import Quota, QuotaTree
from mast_opt.core.units import MILLI

Key = str | None
"""A GPU type; None for all types together."""


class Quotas:
    """Quotas by tenant, or by group of tenants, and the group above each.

    A tenant without quotas, its own or of a group above it, is not limited. A tenant without a group above it takes
    what is free beyond its quota, up to its borrowing limit.
    """

    def __init__(self, quotas: Mapping[str, Mapping[Key, Quota]] | None = None) -> None:
        self._quotas: dict[str, dict[Key, Quota]] = {name: dict(own) for name, own in (quotas or {}).items()}
        self._parent: dict[str, str] = {}

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Key, Quota, str]]) -> "Quotas":
        """Quotas from rows as ``rows`` gives them. A group that one row of a tenant states is above all of it."""
        found = cls()
        for name, key, quota, parent in rows:
            found.set(name, key, quota)
            if parent:
                found.put_below(name, parent)
        return found

    def __bool__(self) -> bool:
        return any(self._quotas.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotas) and self.rows() == other.rows()

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> "Quotas":
        """Copy of the quotas of tenants that can go its own way."""
        twin = Quotas(self._quotas)
        twin._parent = dict(self._parent)
        return twin

    def set(self, name: str, key: Key, quota: Quota | None) -> None:
        """The quota of a tenant or group from now on, or (None) that it has none."""
        if quota is not None:
            check(name, quota)
            self._quotas.setdefault(name, {})[key] = quota
        elif name in self._quotas:
            self._quotas[name].pop(key, None)
            if not self._quotas[name]:
                self.put_below(name, "")

    def put_below(self, name: str, parent: str) -> None:
        """The group above a tenant or group from now on; none if it is empty."""
        self._parent.pop(name, None)
        if parent:
            self._parent[name] = parent

    def rows(self) -> list[tuple[str, Key, Quota, str]]:
        """(tenant or group, GPU type, quota, group above it) of every quota, sorted."""
        return sorted(
            (
                (name, key, quota, self._parent.get(name, ""))
                for name, own in self._quotas.items()
                for key, quota in own.items()
            ),
            key=lambda row: (row[0], row[1] or ""),
        )

    def check(self) -> None:
        """Raise UsageError for a group that has no quota itself or is above itself, by name."""
        for name, parent in sorted(self._parent.items()):
            if not self._quotas.get(parent):
                raise UsageError(f"{name} is below {parent}, which has no quota; give {parent} one, if only of 0")
            path = list(self.above(name))
            if path[-1] == "":
                raise UsageError(f"{name} is above itself: {' below '.join([name, *path[:-1]])}")

    def above(self, name: str) -> Iterator[str]:
        """The groups above a tenant in the quotas, nearest first; an empty name at the end if they are a circle."""
        seen, above = {name}, self._parent.get(name)
        while above is not None:
            yield above
            if above in seen:
                yield ""
                return
            seen.add(above)
            above = self._parent.get(above)

    def nominal(self, name: str) -> dict[Key, int]:
        """A tenant's own quota of each type that it or a group above it limits; empty for one without limits."""
        own = self._quotas.get(name, {})
        found = {key: quota.nominal for key, quota in own.items()}
        for above in self.above(name):
            for key in self._quotas.get(above, ()):
                found.setdefault(key, 0)
        return found

    def limits(self, name: str) -> Mapping[Key, Quota]:
        """The quotas stated of a tenant or group."""
        return self._quotas.get(name, {})

    def tree(self, tenants: Iterator[str] | list[str]) -> QuotaTree[Key] | None:
        """All quotas of tenants as one tree, or None where no amount is lent, borrowed or shared by rule."""
        quotas = {name: own for name, own in self._quotas.items() if own}
        if not self._parent and all(one.borrowing is None for own in quotas.values() for one in own.values()):
            return None
        names = dict.fromkeys((*quotas, *self._parent, *tenants))
        return QuotaTree({name: self._parent.get(name) for name in names}, quotas, open_roots=True)


def check(name: str, quota: Quota) -> None:
    """Raise UsageError for a tenant's quota that lends more than there is."""
    if quota.lending is not None and quota.lending > quota.nominal:
        lent, own = quota.lending / MILLI, quota.nominal / MILLI
        raise UsageError(f"{name}: lending_limit is {lent:,.12g} GPUs, more than its quota of {own:,.12g}")
