"""Parameters of the methods: they steer the iterations, and are recorded."""

from __future__ import annotations

import pytest

import mast_opt
from mast_opt.core.solve_result import Limit, Status
from tests.resource_allocation.support import small


@pytest.mark.parametrize("policy", ["nash", "harmonic", "finish-time-fairness"])
def test_an_iteration_that_is_cut_short_says_so(policy: str) -> None:
    problem = small(1, policy)
    whole = mast_opt.solve(problem, gap=1e-9)
    short = mast_opt.solve(problem, gap=1e-9, params={"most_rounds": 1, "first_tangents": 2})
    assert short.status is Status.FEASIBLE
    assert short.limit is Limit.OTHER
    assert "1 rounds (most_rounds)" in short.message
    assert short.params == {"most_rounds": 1, "first_tangents": 2}
    assert whole.gap is not None
    assert short.gap is not None
    assert whole.gap <= 1e-6 < short.gap
