"""The ledger: rights of jobs, against a slow reference that works them out again from the list of what is held."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.core.ledger import Ledger
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Key, Quotas
from mast_opt.core.ranks import Ranks, Reclaim, Right

Held = tuple[str, int, int, dict[str, int]]
"""Tenant, tier, number, amounts."""
TYPES = ("a", "b")


def of(amounts: dict[str, int], key: Key) -> int:
    return sum(amounts.values()) if key is None else amounts.get(key, 0)


def covered(jobs: dict[str, Held], tenant: str, nominal: dict[Key, int]) -> set[str]:
    """The jobs of a tenant within its quotas: by importance, then by age, each if what is left holds it."""
    left, found = dict(nominal), set()
    for name, (owner, _, _, amounts) in sorted(jobs.items(), key=lambda one: one[1][1:3]):
        if owner == tenant and all(of(amounts, key) <= left[key] for key in left):
            found.add(name)
            for key in left:
                left[key] -= of(amounts, key)
    return found


def random_quotas(rng: np.random.Generator) -> Quotas:
    found = Quotas()
    for tenant in ("t", "u"):
        for key in (None, *TYPES):
            if rng.random() < 0.5:
                found.set(tenant, key, Quota(int(rng.integers(0, 12))))
    return found


def shortages(ledger: Ledger) -> dict[str, tuple[int, ...]]:
    """What the quotas of limited tenants lack for more work of each tier and type."""
    return {
        tenant: tuple(ledger.short(tenant, tier, {kind: 9}) for tier in range(3) for kind in TYPES)
        for tenant in "tu"
        if ledger.is_limited(tenant)
    }


@pytest.mark.parametrize("seed", range(40))
def test_rights_follow_every_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ledger, jobs, known = Ledger(random_quotas(rng)), dict[str, Held](), dict[str, Right]()
    for number in range(300):
        before, short = ledger.eased(), shortages(ledger)
        if rng.random() < 0.03:
            ledger.set_quotas(random_quotas(rng))
        elif jobs and rng.random() < 0.45:
            name = str(rng.choice(list(jobs)))
            del jobs[name]
            known.pop(name)
            ledger.remove(name)
        else:
            amounts = {str(kind): int(rng.integers(0, 5)) for kind in rng.choice(TYPES, int(rng.integers(1, 3)), False)}
            tenant, tier = str(rng.choice(["t", "u", "v", ""])), int(rng.integers(3))
            right = ledger.right(tenant, tier, amounts)
            ledger.add(f"j{number}", tenant, tier, number, amounts)
            jobs[f"j{number}"] = tenant, tier, number, amounts
            known[f"j{number}"] = Right.WITHIN
            assert ledger.standing(f"j{number}") == right
        eased = ledger.eased_since(before)
        assert {
            tenant
            for tenant, amounts in shortages(ledger).items()
            if any(map(int.__lt__, amounts, short.get(tenant, ())))
        } <= {*eased}
        numbers = [ledger.eased(), *map(ledger.eased, eased), before]
        assert numbers == sorted(numbers, reverse=True)
        assert before not in map(ledger.eased, eased)
        for name in ledger.take_changes():
            known[name] = ledger.standing(name)
        for tenant in ("t", "u", "v", ""):
            within = covered(jobs, tenant, ledger.quotas.nominal(tenant))
            for name in (name for name, one in jobs.items() if one[0] == tenant):
                assert (ledger.standing(name) is Right.WITHIN) == (name in within)
                assert known[name] is ledger.standing(name), "a change was not reported"
        assert ledger.use("t") == sum(of(one[3], None) for one in jobs.values() if one[0] == "t")
    twin = ledger.copy()
    assert [twin.is_bounded(tenant) for tenant in "tuv"] == [ledger.is_bounded(tenant) for tenant in "tuv"]
    assert {name: twin.standing(name) for name in jobs} == {name: ledger.standing(name) for name in jobs}


def test_own_less_important_work_does_not_count() -> None:
    ledger = Ledger(Quotas({"t": {None: Quota(4)}}))
    ledger.add("small", "t", 2, 0, {"a": 1})
    assert ledger.right("t", 0, {"a": 4}) is Right.WITHIN
    assert ledger.right("t", 2, {"a": 4}) is Right.BORROWED
    ledger.add("large", "t", 0, 1, {"a": 4})
    assert (ledger.standing("small"), ledger.standing("large")) == (Right.BORROWED, Right.WITHIN)
    ledger.remove("large")
    assert ledger.standing("small") is Right.WITHIN


def test_a_tree_says_what_a_tenant_may_borrow() -> None:
    quotas = Quotas({"t": {None: Quota(2, borrowing=3)}, "u": {None: Quota(4, lending=1)}, "lab": {None: Quota(1, 0)}})
    for tenant in ("t", "u"):
        quotas.put_below(tenant, "lab")
    ledger = Ledger(quotas)
    assert ledger.free("t") == {None: 4}  # its own 2, 1 of the group and 1 that u lends
    assert [ledger.right("t", 0, {"a": mgpu}) for mgpu in (2, 4, 5)] == [Right.WITHIN, Right.BORROWED, Right.OVER]
    ledger.add("theirs", "u", 0, 0, {"a": 4})
    assert ledger.free("t") == {None: 3}


@pytest.mark.parametrize(
    ("above", "words"),
    [
        ({"t": "lab"}, "t is below lab, which has no quota"),
        ({"t": "u", "u": "t"}, "t is above itself: t below u below t"),
    ],
)
def test_trees_that_are_none_are_refused_by_name(above: dict[str, str], words: str) -> None:
    quotas = Quotas({"t": {None: Quota(1)}, "u": {None: Quota(1)}})
    for name, parent in above.items():
        quotas.put_below(name, parent)
    with pytest.raises(UsageError, match=words):
        Ledger(quotas)


def test_nobody_lends_more_than_there_is() -> None:
    with pytest.raises(UsageError, match="t: lending_limit is 2 GPUs, more than its quota of 1"):
        Quotas().set("t", None, Quota(1000, lending=2000))


def test_who_may_stop_work_that_borrows() -> None:
    """Levels of requests below the limit of a victim may stop it."""
    for reclaim, limits in ((Reclaim.ANY, (4, 5)), (Reclaim.LOWER_PRIORITY, (1, 2)), (Reclaim.NEVER, (0, 0))):
        ranks = Ranks(3, quotas=True, reclaim=reclaim)
        assert tuple(ranks.limit(tier, Right.BORROWED, preemptible=False) for tier in (1, 2)) == limits
    assert [ranks.level(1, right) for right in Right] == [1, 4, 7]


def test_a_debt_in_one_type_bars_no_work_of_another() -> None:
    quotas = Quotas({"t": {"a": Quota(4, 0), "b": Quota(4, 0)}})
    ledger = Ledger(quotas)
    ledger.add("large", "t", 0, 0, {"b": 4})
    ledger.set_quotas(Quotas({"t": {"a": Quota(0, 4), "b": Quota(1, 0)}}))
    assert ledger.right("t", 1, {"a": 2}) is Right.BORROWED
    assert ledger.right("t", 1, {"a": 2, "b": 1}) is Right.OVER
