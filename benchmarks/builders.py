"""What it costs to build a program with a modelling library and hand it to a solver: one library, one process.

    python benchmarks/builders.py --method linopy [--datasets 2000] [--workloads 3000] [--regions 20] [--seed 0]

The program is the base formulation of a data placement of family ``standard``. Every method ends with the same columns
and rows (a row with two limits may be two) in an object that could be solved next, and solves nothing:

    ours     ``formulation.base(problem)`` from the problem itself, scaling, and the hand-over of backend ``highs``
    bare     one ``highspy`` ``passModel`` of the arrays that ours hands over, which exist already
    linopy   labelled arrays, rows of like length together, then ``to_highspy``
    pulp     objects, then PuLP's own HiGHS interface up to before it solves
    pyomo    a concrete model of LinearExpressions, then appsi's HiGHS interface up to before it solves
    mathopt  objects, then ``export_model``, the message that its solvers get
    cpsat    ``new_int_var`` and ``LinearExpr.weighted_sum``; numbers in thousandths, as CP-SAT takes whole ones only

All but ours read finished numbers off our arrays, so that computing them is not counted against them. Before the clock
starts, the same method builds a small program. Memory is the growth of the highest resident size (Linux). Prints one
JSON object. linopy and Pyomo come with: pip install --group bench
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.model_building import Cost, bare, ours, quiet_highs, through_pulp
from mast_opt.problems.data_placement.generate import standard
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.mip import Mip

WIDE = 2**40
"""Bound of a whole-number column that has none."""
THOUSANDTHS = 1000.0


def through_linopy(mip: Mip) -> Any:
    import linopy
    import xarray as xr

    model = linopy.Model()
    names = np.zeros(mip.shape[1], np.int64)
    for whole in (False, True):
        columns = np.flatnonzero(mip.integral == whole)
        if not len(columns):
            continue
        coords = [("x", columns)]
        lower, upper = (xr.DataArray(bound[columns], coords=coords) for bound in (mip.col_lower, mip.col_upper))
        names[columns] = model.add_variables(lower, upper, integer=whole, name=f"x{int(whole)}").labels.values
    length = np.diff(mip.row_start)
    size_class = np.ceil(np.log2(np.maximum(length, 1))).astype(np.int64)
    sides = (
        ("==", mip.row_lower, mip.row_lower == mip.row_upper),
        ("<=", mip.row_upper, None),
        (">=", mip.row_lower, None),
    )
    equal = mip.row_lower == mip.row_upper
    for size in np.unique(size_class).tolist():
        for sign, limit, only in sides:
            chosen = (size_class == size) & (only if only is not None else np.isfinite(limit) & ~equal)
            rows = np.flatnonzero(chosen)
            if not len(rows):
                continue
            within = np.arange(1 << size)
            there = within < length[rows, None]
            at = np.where(there, mip.row_start[rows, None] + within, 0)
            terms = {
                "coeffs": (("row", "_term"), np.where(there, mip.value[at], np.nan)),
                "vars": (("row", "_term"), np.where(there, names[mip.index[at]], -1)),
            }
            left = linopy.LinearExpression(xr.Dataset(terms, coords={"row": rows}), model)
            right = xr.DataArray(limit[rows], coords=[("row", rows)])
            model.add_constraints(left, sign, right, name=f"{size}{sign}")
    costly = np.flatnonzero(mip.cost)
    priced = {"coeffs": (("_term",), mip.cost[costly]), "vars": (("_term",), names[costly])}
    model.add_objective(linopy.LinearExpression(xr.Dataset(priced), model))
    solver = linopy.io.to_highspy(model)
    return checked(solver.getNumCol(), mip, (model, solver))


def through_pyomo(mip: Mip) -> Any:
    import pyomo.environ as pyo
    from pyomo.contrib.appsi.solvers import Highs
    from pyomo.core.expr import LinearExpression

    model = pyo.ConcreteModel()
    lower, upper, whole = mip.col_lower.tolist(), mip.col_upper.tolist(), mip.integral.tolist()
    model.x = pyo.Var(
        range(len(lower)),
        bounds=lambda _, j: (lower[j], upper[j]),
        domain=lambda _, j: pyo.Integers if whole[j] else pyo.Reals,
    )
    columns = list(model.x.values())
    start, index, value = mip.row_start.tolist(), mip.index.tolist(), mip.value.tolist()
    row_lower, row_upper = mip.row_lower.tolist(), mip.row_upper.tolist()

    def row(_: Any, r: int) -> Any:
        entries = slice(start[r], start[r + 1])
        body = LinearExpression(linear_coefs=value[entries], linear_vars=[columns[j] for j in index[entries]])
        return row_lower[r], body, row_upper[r]

    model.rows = pyo.Constraint(range(len(row_lower)), rule=row)
    model.cost = pyo.Objective(expr=LinearExpression(linear_coefs=mip.cost.tolist(), linear_vars=columns))
    solver = Highs()
    solver.set_instance(model)
    return checked(solver._solver_model.getNumCol(), mip, (model, solver))


def through_mathopt(mip: Mip) -> Any:
    from ortools.math_opt.python import mathopt

    model = mathopt.Model(name="data_placement")
    bounds = zip(mip.col_lower.tolist(), mip.col_upper.tolist(), mip.integral.tolist(), strict=True)
    columns = [model.add_variable(lb=low, ub=high, is_integer=whole) for low, high, whole in bounds]
    start, index, value = mip.row_start.tolist(), mip.index.tolist(), mip.value.tolist()
    for r, (low, high) in enumerate(zip(mip.row_lower.tolist(), mip.row_upper.tolist(), strict=True)):
        row = model.add_linear_constraint(lb=low, ub=high)
        for at in range(start[r], start[r + 1]):
            row.set_coefficient(columns[index[at]], value[at])
    for column, cost in zip(columns, mip.cost.tolist(), strict=True):
        if cost:
            model.objective.set_linear_coefficient(column, cost)
    message = model.export_model()
    return checked(len(message.variables.ids), mip, (model, message))


def through_cpsat(mip: Mip) -> Any:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    bounds = [np.clip(bound, -WIDE, WIDE).round().astype(np.int64).tolist() for bound in (mip.col_lower, mip.col_upper)]
    columns = [model.new_int_var(low, high, "") for low, high in zip(*bounds, strict=True)]
    start, index = mip.row_start.tolist(), mip.index.tolist()
    value = (mip.value * THOUSANDTHS).round().astype(np.int64).tolist()
    limits = [
        np.clip(limit * THOUSANDTHS, -(2.0**60), 2.0**60).astype(np.int64) for limit in (mip.row_lower, mip.row_upper)
    ]
    for r, (low, high) in enumerate(zip(limits[0].tolist(), limits[1].tolist(), strict=True)):
        entries = slice(start[r], start[r + 1])
        row = cp_model.LinearExpr.weighted_sum([columns[j] for j in index[entries]], value[entries])
        model.add_linear_constraint(row, low, high)
    model.minimize(cp_model.LinearExpr.weighted_sum(columns, mip.cost.tolist()))
    return checked(len(model.proto.variables), mip, model)


def checked(columns: int, mip: Mip, what: Any) -> Any:
    """What was built, with its number of columns looked at."""
    if columns != mip.shape[1]:
        raise RuntimeError(f"{columns} columns were handed over; expected {mip.shape[1]}")
    return what


METHODS: dict[str, Callable[[Mip], Any]] = {
    "bare": bare,
    "linopy": through_linopy,
    "pulp": through_pulp,
    "pyomo": through_pyomo,
    "mathopt": through_mathopt,
    "cpsat": through_cpsat,
}


def instance(datasets: int, workloads: int, regions: int, seed: int) -> DataPlacement:
    return standard(np.random.default_rng(seed), datasets=datasets, workloads=workloads, regions=regions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=["ours", *METHODS], required=True)
    parser.add_argument("--datasets", type=int, default=2_000)
    parser.add_argument("--workloads", type=int, default=3_000)
    parser.add_argument("--regions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    small = instance(20, 30, 3, chosen.seed)
    problem = instance(chosen.datasets, chosen.workloads, chosen.regions, chosen.seed)
    _, scaled = ours(small)
    if chosen.method == "ours":
        cost = Cost.of(lambda: ours(problem))
        mip = ours(problem)[1].mip
    else:
        METHODS[chosen.method](scaled.mip)
        mip = ours(problem)[1].mip
        cost = Cost.of(lambda: METHODS[chosen.method](mip))
    rows, columns = mip.shape
    size = {"rows": rows, "columns": columns, "entries": len(mip.value)}
    spent = {"wall_s": round(cost.wall_s, 4), "cpu_s": round(cost.cpu_s, 4), "memory_mb": round(cost.memory_mb, 1)}
    print(json.dumps({**size, **spent, "highs": quiet_highs().version()}))


if __name__ == "__main__":
    main()
