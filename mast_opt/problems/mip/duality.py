"""Linear-programming duality: prices of a program's rows, by solving its dual where a solver does not state them.

    primal   min c·x    L ≤ A x ≤ U,  l ≤ x ≤ u
    dual     max L·a − U·b + l·d − u·e    Aᵀ(a − b) + d − e = c,   a, b, d, e ≥ 0, each only where its limit is finite

The price of a row is a − b: by how much the minimum rises with the row's limit.
"""

from collections.abc import Callable

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import BackendError, UsageError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems.mip.builder import MipBuilder
from mast_opt.problems.mip.program import Mip


def row_prices(
    solve: Callable[[Mip, SolveParams], SolveResult], mip: Mip, result: SolveResult, params: SolveParams
) -> FloatArray:
    """[rows] prices of a linear program that has been solved to its optimum.

    Args:
        solve: what has solved it, and solves the dual where that did not state prices.
        result: of the program.
        params: of the solve of the dual.

    Raises:
        UsageError: the program has whole columns.
        BackendError: the dual has no optimum.
    """
    if result.row_price is not None:
        return result.row_price
    dual, lower, upper = dual_program(mip)
    found = solve(dual, params)
    if found.status is not Status.OPTIMAL or found.x is None:
        raise BackendError(f"the dual of an optimal program ended {found.status.value}: {found.message}")
    price = np.zeros(len(mip.row_lower))
    price[lower] += found.x[: len(lower)]
    price[upper] -= found.x[len(lower) : len(lower) + len(upper)]
    return price


def dual_program(mip: Mip) -> tuple[Mip, IntArray, IntArray]:
    """The dual of a linear program as a program to be minimised, and the rows of its first and of its second columns.

    Raises:
        UsageError: the program has whole columns.
    """
    if mip.integral.any():
        raise UsageError(f"program {mip.name!r} has whole columns, and only linear programs have prices")
    rows, columns = mip.shape
    names, members = [str(at) for at in range(rows)], [str(at) for at in range(columns)]
    sides = [np.flatnonzero(np.isfinite(side)) for side in (mip.row_lower, mip.row_upper)]
    bounds = [np.flatnonzero(np.isfinite(side)) for side in (mip.col_lower, mip.col_upper)]
    m = MipBuilder(f"dual of {mip.name}")
    blocks = [m.columns(name, [names], [at]) for name, at in zip(("lower", "upper"), sides, strict=True)]
    left = [m.columns(name, [members], [at]) for name, at in zip(("above", "below"), bounds, strict=True)]
    balance = m.equals("balance", [members], value=mip.cost)
    row_of_entry = np.repeat(np.arange(rows), np.diff(mip.row_start))
    for block, at, sign in zip(blocks, sides, (1.0, -1.0), strict=True):
        place = np.full(rows, -1)
        place[at] = block
        there = place[row_of_entry] >= 0
        balance.add(mip.index[there], place[row_of_entry[there]], sign * mip.value[there])
    for block, at, sign in zip(left, bounds, (1.0, -1.0), strict=True):
        balance.add(at, block, sign)
    m.term("value", blocks[0], -mip.row_lower[sides[0]])
    m.term("value", blocks[1], mip.row_upper[sides[1]])
    m.term("value", left[0], -mip.col_lower[bounds[0]])
    m.term("value", left[1], mip.col_upper[bounds[1]])
    return m.build({"value": 1.0}), sides[0], sides[1]
