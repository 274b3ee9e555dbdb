"""Readers of .lp and .mps files: what each makes of a program, by name.

A column that is fixed at 1 and called ``constant`` is how our files state the constant of the objective; that it is
there, and that the reader itself makes nothing a constant, shows in the ``Program`` that a reader gives.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import swiglpk as glp
from ortools.linear_solver.python import model_builder
from scipy.sparse import csc_array, csr_array

from mast_opt.problems import backends
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.export import lp, mps
from mast_opt.problems.mip.export.names import readable_names
from tests import mathprog
from tests.mathprog import INFINITE, Program


def written(mip: Mip, suffix: str) -> Program:
    """The program as our file should be read: its names, the constant as a column, no row without a limit."""
    rule = {".lp": lp.RULE, ".mps": mps.RULE}[suffix]
    columns, rows = (readable_names(blocks, rule)[0].to_list() for blocks in (mip.columns, mip.rows))
    program = mathprog.stated(mip, columns, rows)
    constant = {"constant": mip.offset} if mip.offset else {}
    program = replace(
        program,
        columns=program.columns | dict.fromkeys(constant, (1.0, 1.0, "continuous")),
        cost=program.cost | constant,
        constant=0.0,
    )
    return limited(program if suffix == ".mps" else _halved(program))


def _halved(program: Program) -> Program:
    """The program with two rows for each that has two limits."""
    twice = {row for row, (low, high) in program.rows.items() if -np.inf < low < high < np.inf}
    rows = {row: limits for row, limits in program.rows.items() if row not in twice}
    rows |= {f"{row}~lower": (program.rows[row][0], np.inf) for row in twice}
    rows |= {f"{row}~upper": (-np.inf, program.rows[row][1]) for row in twice}
    entries = {at: value for at, value in program.entries.items() if at[0] not in twice}
    doubled = {
        (f"{row}~{half}", column): value
        for (row, column), value in program.entries.items()
        for half in ("lower", "upper")
        if row in twice
    }
    return replace(program, rows=rows, entries=entries | doubled)


def limited(program: Program) -> Program:
    """The program without the rows that limit nothing, which not every reader keeps."""
    rows = {name: limits for name, limits in program.rows.items() if np.isfinite(limits).any()}
    entries = {at: value for at, value in program.entries.items() if at[0] in rows}
    return replace(program, rows=rows, entries=entries)


def by_highs(path: Path, worst: highspy.HighsStatus = highspy.HighsStatus.kOk) -> Program:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) in (highspy.HighsStatus.kOk, worst)
    model = solver.getLp()
    parts = (model.a_matrix_.value_, model.a_matrix_.index_, model.a_matrix_.start_)
    shape = (model.num_row_, model.num_col_)
    form = csr_array if model.a_matrix_.format_ == highspy.MatrixFormat.kRowwise else csc_array
    matrix = form(tuple(np.array(part) for part in parts), shape=shape).tocoo()
    whole = [kind == highspy.HighsVarType.kInteger for kind in model.integrality_] or [False] * model.num_col_
    return _program(
        zip(model.row_names_, model.row_lower_, model.row_upper_),
        zip(model.col_names_, model.col_lower_, model.col_upper_, whole, model.col_cost_),
        zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist()),
        model.offset_,
    )


def by_glpk(path: Path) -> Program:
    glp.glp_term_out(glp.GLP_OFF)
    program = glp.glp_create_prob()
    try:
        if path.suffix == ".mps":
            assert glp.glp_read_mps(program, glp.GLP_MPS_FILE, None, str(path)) == 0
        else:
            assert glp.glp_read_lp(program, None, str(path)) == 0
        return mathprog.named(program)
    finally:
        glp.glp_delete_prob(program)


def by_scip(path: Path) -> Program:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    entries, rows, columns = [], [], {}
    for at, column in enumerate(model.getVars()):
        bounds = (_infinite(column.getLbOriginal()), _infinite(column.getUbOriginal()))
        columns[column.name] = (at, *bounds, column.vtype() != "CONTINUOUS", column.getObj())
    for at, row in enumerate(model.getConss()):
        rows.append((row.name, _infinite(model.getLhs(row)), _infinite(model.getRhs(row))))
        entries += [(at, columns[name][0], value) for name, value in model.getValsLinear(row).items()]
    table = [(name, *column[1:]) for name, column in columns.items()]
    return _program(rows, table, entries, model.getObjoffset())


def by_cbc(path: Path) -> Program:
    """CBC cannot be asked what it has read, but it writes it again, and HiGHS reads that, warning of limits at 1e30."""
    cbc = backends.get("cbc")._path()  # type: ignore[attr-defined]
    command = [cbc, path.name, "-presolve", "off", "-export", "again.mps", "-quit"]
    subprocess.run(command, cwd=path.parent, check=True, capture_output=True)
    return by_highs(path.parent / "again.mps", highspy.HighsStatus.kWarning)


def by_ortools(path: Path) -> Program:
    model = model_builder.Model()  # type: ignore[no-untyped-call]
    read = model.import_from_mps_file if path.suffix == ".mps" else model.import_from_lp_file
    assert read(str(path))
    helper = model.helper
    rows, entries = range(helper.num_constraints()), []
    for row in rows:
        at, values = helper.constraint_var_indices(row), helper.constraint_coefficients(row)
        entries += [(row, column, value) for column, value in zip(at, values)]
    return _program(
        [(helper.constraint_name(i), helper.constraint_lower_bound(i), helper.constraint_upper_bound(i)) for i in rows],
        [
            (
                helper.var_name(j),
                helper.var_lower_bound(j),
                helper.var_upper_bound(j),
                helper.var_is_integral(j),
                helper.var_objective_coefficient(j),
            )
            for j in range(helper.num_variables())
        ],
        entries,
        helper.objective_offset(),
    )


def by_gurobi(path: Path) -> Program:
    import gurobipy

    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(str(path), env) as model:
        matrix = model.getA().tocoo()
        rows = model.getConstrs()
        names = [row.ConstrName for row in rows]
        limits = [_sided(row.Sense, row.RHS) for row in rows]
        ranges = {}
        columns = []
        for column in model.getVars():
            if column.VarName.startswith("MPS_Rg"):  # Gurobi has a column for the width of a row with two limits
                ranges[column.index] = column.UB
            columns.append((column.VarName, column.LB, column.UB, column.VType != "C", column.Obj))
        entries = []
        for row, column, value in zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist()):
            if column in ranges:
                upper = limits[row][1]
                limits[row] = (upper - ranges[column], upper)
            else:
                entries.append((row, column, value))
        program = _program([(name, *limit) for name, limit in zip(names, limits)], columns, entries, model.ObjCon)
    for column in ranges:
        del program.columns[columns[column][0]]
    return program


def by_copt(path: Path) -> Program:
    import coptpy

    env = coptpy.Envr(_quiet_copt(coptpy))
    model = env.createModel("m")
    model.setParam("Logging", 0)
    model.read(str(path))
    matrix = model.getA().tocoo()
    return _program(
        [(row.getName(), row.lb, row.ub) for row in model.getConstrs()],
        [(c.getName(), c.lb, c.ub, c.getType() != coptpy.COPT.CONTINUOUS, c.obj) for c in model.getVars()],
        zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist()),
        model.getAttr("ObjConst"),
    )


def _quiet_copt(coptpy: Any) -> Any:
    config = coptpy.EnvrConfig()
    config.set("nobanner", "1")
    return config


def by_cplex(path: Path) -> Program:
    import cplex

    with cplex.Cplex() as model:
        for stream in (model.set_results_stream, model.set_log_stream, model.set_warning_stream):
            stream(None)
        model.read(str(path))
        rows, columns = model.linear_constraints, model.variables
        limits = []
        for sense, rhs, span in zip(rows.get_senses(), rows.get_rhs(), rows.get_range_values()):
            limits.append(_sided(sense, rhs) if sense != "R" else (min(rhs, rhs + span), max(rhs, rhs + span)))
        kinds = (
            columns.get_types()
            if columns.get_num_integer() + columns.get_num_binary()
            else "C" * len(columns.get_names())
        )
        entries = [
            (row, column, value)
            for row, pair in enumerate(rows.get_rows())
            for column, value in zip(pair.ind, pair.val)
        ]
        return _program(
            [(name, *limit) for name, limit in zip(rows.get_names(), limits)],
            zip(
                columns.get_names(),
                columns.get_lower_bounds(),
                columns.get_upper_bounds(),
                [kind != "C" for kind in kinds],
                model.objective.get_linear(),
            ),
            entries,
            model.objective.get_offset(),
        )


def by_xpress(path: Path) -> Program:
    import xpress

    model = xpress.problem()
    model.setControl("outputlog", 0)
    model.readProb(str(path))
    rows, columns = model.attributes.rows, model.attributes.cols
    names = [[item.name for item in items] for items in (model.getConstraint(), model.getVariable())]
    start, index, value = model.getRows(0, rows - 1)
    counts = np.diff(start)
    sense, rhs, span = model.getRowType(0, rows - 1), model.getRHS(0, rows - 1), model.getRHSRange(0, rows - 1)
    limits = [_sided(s, b) if s != "R" else (b - r, b) for s, b, r in zip(sense, rhs, span)]
    kinds = model.getColType(0, columns - 1)
    return _program(
        [(name, *limit) for name, limit in zip(names[0], limits)],
        zip(
            names[1],
            model.getLB(0, columns - 1),
            model.getUB(0, columns - 1),
            [kind != "C" for kind in kinds],
            model.getObj(0, columns - 1),
        ),
        zip(np.repeat(np.arange(rows), counts).tolist(), [int(getattr(i, "index", i)) for i in index], value),
        -model.attributes.objrhs,
    )


REWRITING = frozenset({"cbc"})
"""Readers that are asked by way of a file which they write."""
OPEN_READERS: Mapping[str, Callable[[Path], Program]] = {
    "highs": by_highs,
    "glpk": by_glpk,
    "scip": by_scip,
    "cbc": by_cbc,
    "ortools": by_ortools,
}
COMMERCIAL: Mapping[str, tuple[str, Callable[[Path], Program]]] = {
    "gurobi": ("gurobipy", by_gurobi),
    "xpress": ("xpress", by_xpress),
    "copt": ("coptpy", by_copt),
    "cplex": ("cplex", by_cplex),
}
READERS = {**OPEN_READERS, **{name: read for name, (module, read) in COMMERCIAL.items() if find_spec(module)}}
"""Those of the open solvers, and of the others that are installed."""


def _program(
    rows: Iterable[tuple[str, float, float]],
    columns: Iterable[tuple[str, float, float, bool, float]],
    entries: Iterable[tuple[int, int, float]],
    constant: float,
) -> Program:
    """A program from its lists; entries by position."""
    table = list(columns)
    limits = {name: (_infinite(low), _infinite(high)) for name, low, high in rows}
    names = list(limits)
    kinds = {True: "integer", False: "continuous"}
    return Program(
        limits,
        {name: (_infinite(low), _infinite(high), kinds[whole]) for name, low, high, whole, _ in table},
        {(names[row], table[column][0]): value for row, column, value in entries if value},
        {name: cost for name, *_, cost in table if cost},
        constant,
    )


def _infinite(value: float) -> float:
    """1e20 and more is infinite to every solver here."""
    return float(np.sign(value) * np.inf) if abs(value) >= min(1e20, INFINITE) else float(value)


def _sided(sense: str, rhs: float) -> tuple[float, float]:
    sides = {"L": (-np.inf, rhs), "<": (-np.inf, rhs), "G": (rhs, np.inf), ">": (rhs, np.inf), "N": (-np.inf, np.inf)}
    return sides.get(sense, (rhs, rhs))
