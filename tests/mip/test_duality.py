"""Prices of rows: those that a solver states and those of the dual prove the same bound."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip, MipBuilder
from mast_opt.problems.mip.duality import dual_program, row_prices

PARAMS = SolveParams(gap=1e-9)


def program(seed: int) -> Mip:
    """A feasible, bounded linear program with rows and columns of every sort, in uneven units."""
    rng = np.random.default_rng(seed)
    m = MipBuilder("random")
    point = rng.integers(0, 4, 6).astype(float)
    upper = np.where(rng.random(6) < 0.5, point + 2, np.inf)
    x = m.columns("x", [[str(at) for at in range(6)]], lower=-1.0, upper=upper)
    matrix = rng.integers(-3, 6, (5, 6)) * 10.0 ** rng.integers(-2, 3, (5, 1))
    value = matrix @ point
    lower = np.where(rng.random(5) < 0.6, value - np.abs(value) * 0.1, -np.inf)
    rows = m.rows(
        "row", [[str(at) for at in range(5)]], lower=lower, upper=np.where(rng.random(5) < 0.7, value, np.inf)
    )
    rows.add(np.arange(5)[:, None], x[None, :], matrix)
    m.term("cost", x, rng.integers(1, 9, 6), 3.0)
    return m.build({"cost": 1.0})


def bound(mip: Mip, price: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """What the prices prove: Σ price · limit, and each column at the better of its bounds."""
    matrix = np.zeros(mip.shape)
    for row in range(mip.shape[0]):
        span = slice(mip.row_start[row], mip.row_start[row + 1])
        matrix[row, mip.index[span]] = mip.value[span]
    left = mip.cost - price @ matrix
    left[np.abs(left) < 1e-9] = 0.0
    total = mip.offset
    for values, lower, upper in ((price, mip.row_lower, mip.row_upper), (left, mip.col_lower, mip.col_upper)):
        for value, low, high in zip(values.tolist(), lower.tolist(), upper.tolist(), strict=True):
            if abs(value) > 1e-12:
                total += value * (low if value > 0 else high)
    return total


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("seed", range(4))
def test_prices_prove_the_optimum(seed: int, solver: str) -> None:
    mip, backend = program(seed), backends.get(solver)
    result = backend.solve(mip, PARAMS)
    assert result.status is Status.OPTIMAL
    assert result.objective is not None
    assert (result.row_price is not None) == (solver == "highs")
    price = row_prices(backend.solve, mip, result, PARAMS)
    assert bound(mip, price) == pytest.approx(result.objective, rel=1e-7, abs=1e-7)


def test_whole_columns_have_no_prices() -> None:
    m = MipBuilder("whole")
    m.term("cost", m.columns("x", [["a"]], upper=1, integral=True))
    mip = m.build({"cost": 1.0})
    assert backends.get("highs").solve(mip, PARAMS).row_price is None
    with pytest.raises(UsageError, match="whole columns"):
        dual_program(mip)
