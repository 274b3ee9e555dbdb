"""A program with further columns and rows is the program next to them."""

from __future__ import annotations

import numpy as np

from mast_opt.core.solve_result import Status
from mast_opt.problems.mip import MipBuilder
from mast_opt.problems.mip.transforms import Extension, extended
from tests.data_placement.support import proven


def test_extended() -> None:
    m = MipBuilder("small")
    x = m.columns("x", [("a", "b")], upper=3, integral=True)
    m.rows("least", [], lower=5).add(0, x, 1)
    m.term("sum", x, [1.0, 2.0])
    mip = m.build({"sum": 1.0})
    assert proven(mip).objective == 7
    slack = Extension("slack", columns=1, col_upper=2.5, entries=[(np.array([0]), np.array([2]), 1.0)])
    wider = extended(mip, slack)
    assert proven(wider).objective == 3
    assert list(wider.column_names()) == ["x[a]", "x[b]", "slack[0]"]
    row = Extension("cap", rows=1, row_upper=0.0, entries=[(np.array([1]), np.array([2]), 1.0)])
    higher = extended(wider, row)
    assert proven(higher).objective == 7
    assert list(higher.row_names()) == ["least", "cap[0]"]
    low = Extension("cap", rows=1, row_upper=1.0, entries=[(np.array([1, 1]), np.array([0, 1]), np.array([1.0, 1.0]))])
    assert proven(extended(mip, low)).status is Status.INFEASIBLE
