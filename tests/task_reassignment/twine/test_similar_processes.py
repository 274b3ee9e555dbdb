"""Partners that need almost the same: the nearest ones by what an exchange changes."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.problems.task_reassignment.twine.instance_arrays import alike
from mast_opt.problems.task_reassignment.twine.params import OperatorParams

PARAMS = OperatorParams()
PARTNERS = PARAMS.similar_processes


def test_the_nearest_come_first() -> None:
    price = np.random.default_rng(0).integers(0, 1000, (200, 3)).astype(np.float64)
    apart = np.abs(price[:, None] - price).sum(axis=2)
    partners = alike(price, PARAMS)
    assert partners.shape == (200, PARTNERS)
    at = np.arange(200)[:, None]
    np.fill_diagonal(apart, np.inf)
    assert np.array_equal(apart[at, partners], np.sort(apart, axis=1)[:, :PARTNERS])


def test_equals_are_no_partners_and_take_turns() -> None:
    """Twenty processes of three sizes: everybody has one partner of each other size, and all serve as one."""
    price = np.repeat([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]], [8, 8, 4], axis=0)
    partners = alike(price, PARAMS)
    assert price[partners, 0].tolist() == [[2, 4]] * 8 + [[1, 4]] * 8 + [[2, 1]] * 4
    assert set(partners.ravel().tolist()) == set(range(20))


def test_where_all_are_equal_or_too_many_nobody_has_a_partner(monkeypatch: pytest.MonkeyPatch) -> None:
    assert alike(np.ones((5, 2)), PARAMS).shape == (5, 0)
    monkeypatch.setattr(OperatorParams, "similar_below", 4)
    assert alike(np.arange(10.0).reshape(5, 2), PARAMS).shape == (5, 0)
