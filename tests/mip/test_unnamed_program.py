"""Programs from sparse matrices."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from mast_opt.core.solve_result import SolveParams
from mast_opt.problems import backends
from mast_opt.problems.mip import unnamed

MATRIX = csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))


def test_one_value_stands_for_all() -> None:
    mip = unnamed("piece", MATRIX, [1.0, 2.0, 3.0], col_upper=4, integral=[True, False, False], row_lower=[1.0, 2.0])
    assert mip.shape == (2, 3)
    assert mip.col_lower.tolist() == [0, 0, 0]
    assert mip.col_upper.tolist() == [4, 4, 4]
    assert mip.integral.tolist() == [True, False, False]
    assert mip.row_upper.tolist() == [np.inf, np.inf]
    assert mip.activity(np.array([1.0, 1.0, 1.0])).tolist() == [3, 3]
    assert not any(getattr(mip, name).flags.writeable for name in ("cost", "col_upper", "row_lower", "value", "index"))
    assert (mip.column_name(2), mip.row_name(1)) == ("#2", "#1")


def test_solvers_take_it() -> None:
    mip = unnamed("piece", MATRIX, [1.0, 2.0, 3.0], row_lower=[1.0, 2.0])
    assert backends.get("highs").solve(mip, SolveParams()).objective == 1 + 4 / 3


def test_the_arrays_are_its_own() -> None:
    cost = np.ones(3)
    mip = unnamed("piece", MATRIX, cost)
    cost[0] = 5
    assert mip.cost.tolist() == [1, 1, 1]
    assert MATRIX.data.flags.writeable
