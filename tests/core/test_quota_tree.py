"""Quota as one tree: what is available, against trying every amount."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.quota_tree import Quota, QuotaTree

KEY = "gpu"


def tree(parents: dict[str, str | None], **quotas: Quota) -> QuotaTree[str]:
    return QuotaTree(parents, {node: {KEY: quota} for node, quota in quotas.items()})


def test_what_a_queue_may_use_of_others() -> None:
    found = tree({"a": "all", "b": "all", "all": None}, a=Quota(4), b=Quota(10, lending=2))
    assert (found.available("a", KEY), found.most("a", KEY), found.available("b", KEY)) == (6, 6, 14)
    found.add("b", KEY, 9)  # 8 are its own, 1 is of the group
    assert (found.available("a", KEY), found.available("b", KEY)) == (5, 5)
    found.add("a", KEY, 5)
    assert (found.available("a", KEY), found.available("b", KEY)) == (0, 0)
    found.add("b", KEY, -9)
    assert (found.available("a", KEY), found.available("b", KEY)) == (1, 9)


def test_a_borrowing_limit_and_quota_of_a_group() -> None:
    found = tree({"a": "team", "team": "all", "all": None}, a=Quota(2, borrowing=3), team=Quota(1), all=Quota(50))
    assert found.available("a", KEY) == 5
    limited = tree({"a": "team", "team": "all", "all": None}, a=Quota(2), team=Quota(1, borrowing=1), all=Quota(50))
    assert limited.available("a", KEY) == 4


def test_a_lowered_quota_is_owed() -> None:
    found = tree({"a": None}, a=Quota(8))
    found.add("a", KEY, 12)
    assert found.available("a", KEY) == -4


def test_circles_are_refused() -> None:
    with pytest.raises(ValueError, match="above itself"):
        tree({"a": "b", "b": "c", "c": "b"})


def allowed(
    found: QuotaTree[str], parents: dict[str, str | None], quotas: dict[str, Quota], owned: dict[str, int]
) -> bool:
    """Whether no node uses more than it may, from what the leaves use."""
    uses: dict[str, int] = {}
    limits = {node: quotas[node].lending for node in parents}
    kept = {node: 0 if limit is None else max(0, owned[node] - limit) for node, limit in limits.items()}
    for node in sorted(parents, reverse=True):  # children have later names
        below = [child for child, above in parents.items() if above == node]
        uses[node] = sum(max(0, uses[child] - kept[child]) for child in below) if below else found.use(node, KEY)
        limit, above = quotas[node].borrowing, parents[node]
        if above is None and uses[node] > owned[node]:
            return False
        if above is not None and limit is not None:
            borrowed = max(0, uses[node] - kept[node]) - (owned[node] - kept[node])
            if borrowed > limit:
                return False
    return True


@pytest.mark.parametrize("seed", range(30))
def test_against_trying_every_amount(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents: dict[str, str | None] = {"n0": None}
    for at in range(1, 7):
        parents[f"n{at}"] = f"n{int(rng.integers(0, at))}"
    leaves = [node for node in parents if node not in parents.values()]

    def limit() -> int | None:
        return int(rng.integers(0, 6)) if rng.random() < 0.5 else None

    quotas = {node: Quota(int(rng.integers(0, 8)), limit(), limit()) for node in parents}
    quotas["n0"] = Quota(quotas["n0"].nominal)
    found = tree(parents, **quotas)
    owned = {node: found.owned(node, KEY) for node in parents}
    for _ in range(12):
        leaf = leaves[int(rng.integers(0, len(leaves)))]
        most = 0
        while True:
            found.add(leaf, KEY, most + 1)
            fits = allowed(found, parents, quotas, owned)
            found.add(leaf, KEY, -most - 1)
            if not fits:
                break
            most += 1
        assert found.available(leaf, KEY) == most
        found.add(leaf, KEY, int(rng.integers(0, most + 1)))
