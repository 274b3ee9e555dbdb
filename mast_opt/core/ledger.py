"""The ledger of holdings and rights: amounts that jobs hold, against quotas that form a tree.

Of a tenant's jobs, the least important ones are beyond its quota, of equal ones the newest. They are taken by tier and
then by age: each job that the quota still covers counts towards it, each that it does not cover counts nothing.
Whatever changes (work, a quota, the tree), the rights of jobs that run change with it.
"""

import bisect
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from mast_opt.core.quota_tree import UNLIMITED, QuotaTree
from mast_opt.core.quotas import Key, Quotas
from mast_opt.core.ranks import Right

Amounts = Mapping[str, int]
"""GPU type → milli-GPUs."""


_CHANGES = itertools.count(1)
"""Numbers of changes of all ledgers."""


class _Held(NamedTuple):
    """Holding of a job."""

    tenant: str
    tier: int
    number: int
    amounts: Amounts


def of_key(amounts: Amounts, key: Key) -> int:
    """Amount that the ledger counts of a type, or (None) of all."""
    return sum(amounts.values()) if key is None else amounts.get(key, 0)


@dataclass(slots=True)
class _Account:
    """The jobs of a tenant that is limited."""

    nominal: dict[Key, int]
    order: list[tuple[int, int, str]] = field(default_factory=list)
    """(tier, number, job), the most important and oldest first."""
    covered: dict[int, dict[Key, int]] = field(default_factory=dict)
    """Tier → what its jobs within the quotas hold."""
    beyond: set[str] = field(default_factory=set)
    """Jobs that the quotas do not cover."""
    basis: object = field(default_factory=object)
    """Another object after each change of what they cover."""
    bounded: bool = True
    """Whether the tenant may hold no more than some amount, borrowed ones included."""

    def copy(self) -> "_Account":
        """Copy of a tenant's account in the ledger, with jobs of its own."""
        covered = deepcopy(self.covered)
        return _Account(self.nominal, list(self.order), covered, set(self.beyond), bounded=self.bounded)

    def left(self, tier: int | None = None) -> dict[Key, int]:
        """Amounts that a tenant's quotas leave after jobs of this tier and more important ones, or (None) after all."""
        left = dict(self.nominal)
        for other, covered in self.covered.items():
            if tier is None or other <= tier:
                for key, amount in covered.items():
                    left[key] -= amount
        return left

    def count(self, held: _Held, sign: int) -> None:
        """Count a job in the ledger towards its tenant's quotas, or no more."""
        self.basis = object()
        counted = self.covered.setdefault(held.tier, dict.fromkeys(self.nominal, 0))
        for key in counted:
            counted[key] += sign * of_key(held.amounts, key)


def _fits(amounts: Amounts, left: Mapping[Key, int]) -> bool:
    """Whether amounts of a job fit into what the ledger's quotas leave; of types not asked for, that may be below 0."""
    for key, there in left.items():
        asked = of_key(amounts, key)
        if asked > there and asked > 0:
            return False
    return True


class Ledger:
    """Holdings of jobs, and the quotas of tenants."""

    def __init__(self, quotas: Quotas | None = None) -> None:
        self.quotas = Quotas()
        self._held: dict[str, _Held] = {}
        self._use: dict[str, dict[Key, int]] = {}
        """Tenant → what its jobs hold, by type and of all."""
        self._accounts: dict[str, _Account] = {}
        """Accounts of the tenants that are limited."""
        self._tree: QuotaTree[Key] | None = None
        """None where nothing but quotas of tenants is stated."""
        self._owned: Counter[Key] = Counter()
        """All quotas together, by type."""
        self._basis = object()
        """Another object after each change of what anybody holds."""
        self._last_eased = next(_CHANGES)
        """Number of the last change by which any tenant may hold more, or stop more for it."""
        self._eased: dict[str, int] = {}
        """Tenant → number of the last change by which its own quotas may cover more, the latest last."""
        self._changed: dict[str, None] = {}
        """Jobs that are new or whose right has changed, and perhaps back."""
        self.is_sound = True
        """Whether no change was interrupted; after one that was, a ledger has to be made again."""
        self.set_quotas(quotas or Quotas())

    def copy(self) -> "Ledger":
        """A copy of the ledger that can go its own way."""
        twin = Ledger()
        twin.quotas, twin._held = self.quotas.copy(), dict(self._held)
        twin._eased, twin._last_eased = dict(self._eased), self._last_eased
        twin._use = {tenant: dict(use) for tenant, use in self._use.items()}
        twin._accounts = {tenant: account.copy() for tenant, account in self._accounts.items()}
        twin._tree, twin._owned = None if self._tree is None else self._tree.copy(), self._owned
        return twin

    # --- changes ---

    def add(self, name: str, tenant: str, tier: int, number: int, amounts: Amounts) -> None:
        """Note in the ledger that a job holds so much from now on.

        Args:
            tier: the least is the most important.
            number: jobs that started later have higher ones.
        """
        self.is_sound = False
        held = self._held[name] = _Held(tenant, tier, number, amounts)
        if tenant:
            self._count(held, 1)
            account = self._accounts.get(tenant)
            if account is not None:
                self._enter(account, name, held)
        self.is_sound = True

    def _enter(self, account: _Account, name: str, held: _Held) -> None:
        """Enter a job into its tenant's account, and work out its right."""
        _, tier, number, amounts = held
        self._changed[name] = None
        at = bisect.bisect_left(account.order, (tier, number, name))
        account.order.insert(at, (tier, number, name))
        if _fits(amounts, account.left()):
            account.count(held, 1)
            return
        account.beyond.add(name)
        last = at + 1 == len(account.order) or account.order[at + 1][0] > tier
        if not last or _fits(amounts, account.left(tier)):
            self._settle(account, at)

    def remove(self, name: str) -> None:
        """Note in the ledger that a job holds nothing any more."""
        self.is_sound = False
        held = self._held.pop(name)
        self._changed.pop(name, None)
        if held.tenant:
            self._count(held, -1)
            account = self._accounts.get(held.tenant)
            if account is not None:
                self._strike(account, name, held)
        self.is_sound = True

    def _strike(self, account: _Account, name: str, held: _Held) -> None:
        """Strike a job from its tenant's account, and work out rights again where that matters."""
        self._last_eased = next(_CHANGES)
        at = bisect.bisect_left(account.order, (held.tier, held.number, name))
        del account.order[at]
        if name in account.beyond:
            account.beyond.discard(name)
            return
        self._ease(held.tenant)
        account.count(held, -1)
        if account.beyond:
            self._settle(account, at)

    def _ease(self, tenant: str) -> None:
        """Note that the quotas of a tenant may cover more."""
        self._last_eased = next(_CHANGES)
        self._eased.pop(tenant, None)
        self._eased[tenant] = self._last_eased

    def set_quotas(self, quotas: Quotas) -> None:
        """Set the quotas of the ledger from now on. Raises UsageError for groups that are above themselves or have no
        quota.
        """
        quotas.check()
        self.is_sound, self._last_eased, self._eased = False, next(_CHANGES), {}
        tenants = list(dict.fromkeys((*self._use, *(row[0] for row in quotas.rows()))))
        nominal = {tenant: amounts for tenant in tenants if (amounts := quotas.nominal(tenant))}
        self.quotas, self._tree, self._owned = quotas, quotas.tree(list(nominal)), Counter()
        for _, key, quota, _ in quotas.rows():
            self._owned[key] += quota.nominal
        before = {tenant: account.nominal for tenant, account in self._accounts.items()}
        stays = {tenant for tenant, amounts in nominal.items() if before.get(tenant) == amounts}
        was = {name for tenant, one in self._accounts.items() if tenant not in stays for name in one.beyond}
        self._accounts = {
            tenant: self._accounts[tenant] if tenant in stays else _Account(amounts)
            for tenant, amounts in nominal.items()
        }
        for name, held in self._held.items():
            if held.tenant in self._accounts and held.tenant not in stays:
                account = self._accounts[held.tenant]
                account.order.append((held.tier, held.number, name))
                account.beyond.add(name)
        now: set[str] = set()
        for tenant, account in self._accounts.items():
            if tenant not in stays:
                account.order.sort()
                self._settle(account, 0)
                now |= account.beyond
            account.basis, account.bounded = object(), False
            self._ease(tenant)
            if self._tree is not None:
                for key in account.nominal:
                    account.bounded |= self._tree.most(tenant, key) < UNLIMITED // 2
                    self._tree.add(tenant, key, self.use(tenant, key))
        self._changed.update(dict.fromkeys(sorted(was ^ now)))
        for name in [one for one in self._changed if one not in self._held]:
            del self._changed[name]
        self.is_sound = True

    def take_changes(self) -> tuple[str, ...]:
        """The jobs of limited tenants that are new or whose right may have changed since the last call."""
        names, self._changed = self._changed, {}
        return tuple(names)

    def _count(self, held: _Held, sign: int) -> None:
        """Count a job's amounts (sign 1), or take them off (−1), in the use of its tenant and the tree of quotas."""
        self._basis = object()
        use, total = self._use.setdefault(held.tenant, {}), 0
        for kind, amount in held.amounts.items():
            use[kind] = use.get(kind, 0) + sign * amount
            total += amount
        use[None] = use.get(None, 0) + sign * total
        if self._tree is not None and held.tenant in self._accounts:
            for key in self._accounts[held.tenant].nominal:
                self._tree.add(held.tenant, key, sign * of_key(held.amounts, key))

    def _settle(self, account: _Account, at: int) -> None:
        """Work out the rights of a tenant's jobs again, from one in their order on."""
        order, held_by = account.order, self._held
        if at >= len(order):
            return
        tier = order[at][0]
        left = account.left(tier - 1)
        for number in range(bisect.bisect_left(order, (tier,)), len(order)):
            name = order[number][2]
            held, was = held_by[name], name not in account.beyond
            fits = was if number < at else _fits(held.amounts, left)
            if fits:
                for key in left:
                    left[key] -= of_key(held.amounts, key)
            if fits == was:
                continue
            self._ease(held.tenant)
            (account.beyond.discard if fits else account.beyond.add)(name)
            account.count(held, 1 if fits else -1)
            self._changed[name] = None

    # --- questions ---

    def has(self, name: str) -> bool:
        """Whether the ledger has a job that holds something."""
        return name in self._held

    def is_limited(self, tenant: str) -> bool:
        """Whether a quota, its own or of a group above it, limits a tenant."""
        return tenant in self._accounts

    def is_bounded(self, tenant: str) -> bool:
        """Whether a tenant may hold no more than some amount, borrowed ones included. If not, rights of its jobs do not
        depend on what others hold."""
        return tenant in self._accounts and self._accounts[tenant].bounded

    def eased(self, tenant: str = "") -> int:
        """Number of the last change by which the own quotas of a limited tenant may cover more of its work than before,
        or (empty) by which any tenant may hold more or stop more for it. Later changes have higher numbers."""
        return self._eased.get(tenant, 0) if tenant in self._accounts else self._last_eased

    def eased_since(self, number: int) -> list[str]:
        """The limited tenants whose own quotas may cover more since the change of this number, the latest first."""
        return list(itertools.takewhile(lambda tenant: self._eased[tenant] > number, reversed(self._eased)))

    def basis(self, tenant: str) -> object:
        """An object that is another one after each change on which the right of one more job of a tenant may depend."""
        account = self._accounts.get(tenant)
        if account is None or account.bounded:
            return None if account is None else self._basis
        return account.basis

    def use(self, tenant: str, key: Key = None) -> int:
        """Amount that the jobs of a tenant hold, of a GPU type or of all."""
        return self._use.get(tenant, {}).get(key, 0)

    def counted(self, name: str, key: Key = None) -> int:
        """Amount that counts against a quota: of a group, what those below use of what they share."""
        return self.use(name, key) if self._tree is None or name not in self._tree else self._tree.use(name, key)

    def excess(self, name: str, key: Key = None) -> int:
        """Amount by which what counts against a quota is more than it, with what a group's members lend it; negative
        where it is less.
        """
        if self._tree is not None and name in self._tree:
            return self._tree.use(name, key) - self._tree.owned(name, key)
        return self.use(name, key) - self.quotas.nominal(name).get(key, UNLIMITED)

    def left(self, name: str, key: Key = None) -> int | None:
        """Amount that a tenant or group may hold in addition, borrowed ones included; None without a limit."""
        if self._tree is None or name not in self._tree:
            return None
        amount = self._tree.available(name, key)
        return amount if amount < UNLIMITED // 2 else None

    def free(self, tenant: str) -> dict[Key, int]:
        """Amounts that a tenant may hold in addition of each type, or of all, that is limited for it, borrowed ones
        included."""
        keys = self._accounts[tenant].nominal if tenant in self._accounts else ()
        return {key: amount for key in keys if (amount := self.left(tenant, key)) is not None}

    def right(self, tenant: str, tier: int, amounts: Amounts) -> Right:
        """Right by which one more job of a tenant would hold these amounts. Its own less important work does not
        count, as it is beyond the quota before the job is."""
        if self.short(tenant, tier, amounts) <= 0:
            return Right.WITHIN
        return Right.BORROWED if self.may_hold(tenant, amounts) else Right.OVER

    def may_hold(self, tenant: str, amounts: Amounts) -> bool:
        """Whether a tenant and the groups above it may hold these amounts in addition, borrowed ones included."""
        return _fits(amounts, self.free(tenant))

    def displaced(
        self, tenant: str, tier: int, amounts: Amounts, may_stop: Callable[[str], bool] = lambda name: True
    ) -> tuple[str, ...] | None:
        """The jobs beyond quotas that have to stop before one more job of a tenant may hold these amounts, as in Kueue:
        those of other tenants, then less important ones of its own, of each the least important and newest first; none
        that need not stop after all. None where that does not suffice.
        """
        if self._tree is None or self.may_hold(tenant, amounts):
            return ()
        tree, stopped = self._tree, list[str]()
        root = [tenant, *tree.path(tenant)][-1]
        others = [one for one in self._accounts if [one, *tree.path(one)][-1] == root]
        held = {name: self._held[name] for one in others for name in self._accounts[one].beyond if may_stop(name)}
        rank = [(one.tenant == tenant, -one.tier, -one.number, name) for name, one in held.items()]
        self.is_sound = False
        for *_, name in sorted(one for one in rank if not one[0] or -one[1] > tier):
            self._count(held[name], -1)
            stopped.append(name)
            if self.may_hold(tenant, amounts):
                break
        enough = self.may_hold(tenant, amounts)
        for name in stopped[-2::-1]:
            self._count(held[name], 1)
            if self.may_hold(tenant, amounts):
                stopped.remove(name)
            else:
                self._count(held[name], -1)
        for name in stopped:
            self._count(held[name], 1)
        self.is_sound = True
        return tuple(stopped) if enough else None

    def may_hold_without(self, tenant: str, amounts: Amounts, stopped: Iterable[str]) -> bool:
        """Whether a tenant and the groups above it may hold these amounts in addition once these jobs have stopped."""
        held = [self._held[name] for name in dict.fromkeys(stopped) if name in self._held]
        self.is_sound = False
        for one in held:
            self._count(one, -1)
        enough = self.may_hold(tenant, amounts)
        for one in held:
            self._count(one, 1)
        self.is_sound = True
        return enough

    def short(self, tenant: str, tier: int, amounts: Amounts) -> int:
        """Amount that the quotas of a tenant lack to cover one more job, of the type where it is most."""
        left = self._accounts[tenant].left(tier) if tenant in self._accounts else {}
        return max([of_key(amounts, key) - there for key, there in left.items()], default=0)

    def shares(self, tenant: str, weights: Mapping[str, float], mean_use: float | None = None) -> tuple[float, ...]:
        """Dominant shares of the groups above a tenant, the topmost first, and its own, without zeros at the end: the
        largest part, of the types that are limited for it, of what its siblings and it own, that it holds beyond its
        quota, over its weight.

        Args:
            weights: of tenants and groups; 1 unless given.
            mean_use: of the tenant over some time, of all types; it counts instead of what is beyond the quota now.
        """
        tree, found = self._tree, list[float]()
        path = [tenant, *(tree.path(tenant) if tree is not None and tenant in tree else ())]
        keys = self._accounts[tenant].nominal if tenant in self._accounts else {}
        for node, above in zip(path, [*path[1:], ""]):
            beyond: dict[Key, float] = {key: self.excess(node, key) for key in keys}
            if mean_use is not None and node == tenant:
                beyond = {None: mean_use}
            of = {key: tree.owned(above, key) if tree is not None and above else self._owned[key] for key in beyond}
            parts = [amount / max(1, of[key]) for key, amount in beyond.items()]
            found.append(max([0.0, *parts]) / weights.get(node, 1.0))
        while found and not found[0]:
            del found[0]
        return tuple(reversed(found))

    def standing(self, name: str) -> Right:
        """Right by which a job holds its GPUs now; within quotas where the ledger does not have it."""
        account = self._accounts.get(self._held[name].tenant) if name in self._held else None
        return Right.BORROWED if account is not None and name in account.beyond else Right.WITHIN
