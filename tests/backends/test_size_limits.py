"""Free packages of commercial solvers refuse large programs; the error must say how large, and who can help."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.errors import SizeLimitExceeded
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.mip import Mip, MipBuilder
from tests.solvers import here

COMMERCIAL = ("gurobi", "xpress", "copt", "cplex")


def large(columns: int = 20_001) -> Mip:
    """A program that presolve cannot shrink below any free size: random rows of three columns."""
    rng = np.random.default_rng(0)
    m = MipBuilder("large")
    x = m.columns("x", [[str(i) for i in range(columns)]], upper=1, integral=True)
    chosen = rng.integers(0, columns, (columns, 3))
    m.rows("row", [[str(i) for i in range(columns)]], lower=1).add(np.arange(columns)[:, None], chosen)
    m.term("cost", x, rng.random(columns) + 0.5)
    return m.build({"cost": 1.0})


@pytest.mark.parametrize("name", here(COMMERCIAL))
def test_a_free_licence_refuses_with_numbers_and_a_way_out(name: str) -> None:
    """A full licence, where there is one, has to take the program."""
    answer = answered(backends.get(name), large())
    if isinstance(answer, SolveResult):
        assert answer.status in (Status.OPTIMAL, Status.FEASIBLE, Status.NO_SOLUTION)
        return
    assert "20,001 rows × 20,001 columns" in str(answer)
    assert name in str(answer)
    assert "highs" in str(answer)


def answered(backend: Backend, mip: Mip) -> SolveResult | SizeLimitExceeded:
    try:
        return backend.solve(mip, SolveParams(time_limit_s=1.0))
    except SizeLimitExceeded as error:
        return error
