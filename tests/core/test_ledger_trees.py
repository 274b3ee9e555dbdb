"""Rights in random trees of quotas, against a reference that recomputes everything from the list of jobs."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.ledger import Ledger
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Key, Quotas
from mast_opt.core.ranks import Right
from tests.core.test_ledger import TYPES, Held, covered, of

KEYS: tuple[Key, ...] = (None, *TYPES)


def random_tree(rng: np.random.Generator) -> Quotas:
    """Tenants at the leaves of up to four levels of groups, some below none; limits of every kind."""
    groups = [f"g{n}" for n in range(int(rng.integers(0, 6)))]
    found = Quotas()
    for at, name in enumerate([*groups, *(f"t{n}" for n in range(int(rng.integers(1, 6))))]):
        for key in KEYS:
            if rng.random() < 0.6 or (key is None and name in groups):
                nominal = int(rng.integers(0, 9))
                borrowing = int(rng.integers(0, 6)) if rng.random() < 0.5 else None
                lending = int(rng.integers(0, nominal + 1)) if rng.random() < 0.4 else None
                found.set(name, key, Quota(nominal, borrowing, lending))
        above = groups[:at] if name in groups else groups
        if above and found.limits(name) and rng.random() < 0.8:
            found.put_below(name, str(rng.choice(above)))
    return found


def beyond(quotas: Quotas, jobs: list[Held], key: Key) -> dict[str, int]:
    """Amount that each node uses beyond what it owns and may borrow, where that is limited, if these jobs run."""
    use: dict[str, int] = {}
    for owner, _, _, held in jobs:
        use[owner] = use.get(owner, 0) + of(held, key)
    rows = quotas.rows()
    parent = {name: above for name, _, _, above in rows}
    stated = {name: quota for name, of_key, quota, _ in rows if of_key == key}

    def below(node: str) -> list[str]:
        return [name for name, above in parent.items() if above == node]

    def owned(node: str) -> int:
        return stated.get(node, Quota(0)).nominal + sum(owned(one) - kept(one) for one in below(node))

    def kept(node: str) -> int:
        lending = stated.get(node, Quota(0)).lending
        return 0 if lending is None else max(0, owned(node) - lending)

    def used(node: str) -> int:
        return use.get(node, 0) + sum(max(0, used(one) - kept(one)) for one in below(node))

    limits = {node: stated.get(node, Quota(0)).borrowing for node in parent}
    return {node: used(node) - owned(node) - most for node, most in limits.items() if most is not None}


def rights_of(
    quotas: Quotas, jobs: dict[str, Held], tenant: str, tier: int, amounts: dict[str, int]
) -> tuple[Right, ...]:
    """The right of one more job, from the list of those that run. Where a group uses more than it may since a quota was
    lowered, this debt may bar what borrows below it, as in Kueue, even if it would not add to the debt.
    """
    nominal = quotas.nominal(tenant)
    asked: Held = (tenant, tier, 10**6, amounts)
    as_important = {name: one for name, one in jobs.items() if one[1] <= tier}
    if "asked" in covered({**as_important, "asked": asked}, tenant, nominal) or not nominal:
        return (Right.WITHIN,)
    path, above = [tenant], {name: parent for name, _, _, parent in quotas.rows()}
    while above.get(path[-1]):
        path.append(above[path[-1]])
    found: tuple[Right, ...] = (Right.BORROWED,)
    for key in nominal:
        before, after = (beyond(quotas, run, key) for run in ([*jobs.values()], [*jobs.values(), asked]))
        if any(after[node] > max(0, before[node]) for node in path if node in after):
            return (Right.OVER,)
        if any(before.get(node, 0) > 0 for node in path):
            found = (Right.BORROWED, Right.OVER)
    return found


def history(seed: int, steps: int) -> set[Right]:
    """Add and remove jobs and change quotas at random; returns the rights that were seen."""
    rng = np.random.default_rng(seed)
    quotas, jobs, seen = random_tree(rng), dict[str, Held](), set[Right]()
    ledger = Ledger(quotas)
    for number in range(steps):
        if rng.random() < 0.05:
            quotas = random_tree(rng)
            ledger.set_quotas(quotas)
        elif jobs and rng.random() < 0.4:
            name = str(rng.choice(list(jobs)))
            del jobs[name]
            ledger.remove(name)
        amounts = {str(kind): int(rng.integers(0, 5)) for kind in rng.choice(TYPES, int(rng.integers(1, 3)), False)}
        tenant, tier = f"t{rng.integers(6)}", int(rng.integers(3))
        found = ledger.right(tenant, tier, amounts)
        assert found in rights_of(quotas, jobs, tenant, tier, amounts), (seed, number)
        seen.add(found)
        if found is not Right.OVER:
            jobs[f"j{number}"] = tenant, tier, number, amounts
            ledger.add(f"j{number}", tenant, tier, number, amounts)
        for owner in {one[0] for one in jobs.values()}:
            within = covered(jobs, owner, quotas.nominal(owner))
            for name in (name for name, one in jobs.items() if one[0] == owner and quotas.nominal(owner)):
                assert (ledger.standing(name) is Right.WITHIN) == (name in within), (seed, number)
    return seen


def stops(seed: int, steps: int) -> int:
    """Start jobs at random, with the stops that this takes, while quotas stay: no node of the tree ever uses more than
    it owns and may borrow, and no stop is superfluous. Returns the number of stops.
    """
    rng = np.random.default_rng(seed)
    quotas, jobs, count = random_tree(rng), dict[str, Held](), 0
    ledger = Ledger(quotas)
    for number in range(steps):
        tenant, tier = f"t{rng.integers(6)}", int(rng.integers(3))
        amounts = {str(kind): int(rng.integers(0, 5)) for kind in rng.choice(TYPES, int(rng.integers(1, 3)), False)}
        right, displaced = ledger.right(tenant, tier, amounts), ledger.displaced(tenant, tier, amounts)
        assert displaced == () or right is not Right.BORROWED
        if right is Right.OVER or displaced is None:
            continue
        for kept in displaced:
            rest = [one for name, one in jobs.items() if name not in displaced or name == kept]
            after = [beyond(quotas, [*rest, (tenant, tier, number, amounts)], key) for key in KEYS]
            assert any(amount > 0 for by_node in after for amount in by_node.values()), (seed, number, kept)
        for name in displaced:
            assert ledger.standing(name) is Right.BORROWED
            assert jobs[name][0] != tenant or jobs[name][1] > tier
            ledger.remove(name)
            del jobs[name]
        jobs[f"j{number}"] = tenant, tier, number, amounts
        ledger.add(f"j{number}", tenant, tier, number, amounts)
        for key in KEYS:
            assert all(amount <= 0 for amount in beyond(quotas, [*jobs.values()], key).values()), (seed, number)
        count += len(displaced)
    return count


def test_work_within_its_quota_stops_what_borrows_before_a_limit_is_passed() -> None:
    assert sum(stops(seed, 40) for seed in range(120)) > 20


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_random_trees_are_as_a_reference_has_them(first: int) -> None:
    assert set[Right]().union(*(history(seed, 30) for seed in range(first, first + 25))) == set(Right)
