"""Programs whose coefficients lie far apart: scaling must bring no bound and no limit under a solver's tolerance."""

from __future__ import annotations

import pytest

from mast_opt import backends
from mast_opt.core.solve_result import Status
from tests.backends.conformance import EXACT
from tests.backends.programs import INF, program
from tests.backends.wide_programs import stable

OPEN = ("highs", "cbc", "scip", "cpsat")


@pytest.mark.parametrize("solver", OPEN)
def test_a_continuous_column_with_a_small_share_of_its_row(solver: str) -> None:
    """Scaled by the largest coefficient of its row alone, ``b`` would have a range of 7e-7."""
    mip = program(
        [4.0, -2.0, -6.0],
        [([5e6, 1.0, 0.0], -INF, 1e7)],
        lower=[-1, 0, 0],
        upper=[2, 3, 3],
        integral=[True, False, True],
    )
    result = backends.get(solver).solve(mip, EXACT)
    assert (result.status, result.objective) == (Status.OPTIMAL, pytest.approx(-28.0))


@pytest.mark.parametrize("solver", ("highs", "scip"))
def test_stable_optima(solver: str) -> None:
    """Against enumeration in rational numbers, where the coefficients of a row are at most 1e5 apart."""
    checked = 0
    for wide in stable(seed=1, count=60):
        if wide.spread() > 1e5:
            continue
        checked += 1
        minimum, result = wide.minimum(), backends.get(solver).solve(wide.mip(), EXACT)
        if minimum is None:
            assert result.status is Status.INFEASIBLE, wide
        else:
            assert result.status is Status.OPTIMAL, wide
            assert result.objective == pytest.approx(float(minimum), rel=1e-3, abs=1e-3), wide
    assert checked > 15
