"""GLPK as an independent reader of a ``.mod`` and an independent solver, and a Mip in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import swiglpk as glp

from mast_opt.problems.mip import Mip

INFINITE = 1e300
KINDS = {glp.GLP_CV: "continuous", glp.GLP_IV: "integer", glp.GLP_BV: "integer"}
RELATIVE = 1e-12
REWRITTEN = 1e-6
"""The same for files of CBC, whose numbers have twelve characters."""


@dataclass(frozen=True)
class Program:
    """A program by name: nothing in it depends on an order."""

    rows: dict[str, tuple[float, float]]
    """name → (lower, upper)"""
    columns: dict[str, tuple[float, float, str]]
    """name → (lower, upper, kind)"""
    entries: dict[tuple[str, str], float]
    """(row, column) → coefficient, zeros left out"""
    cost: dict[str, float]
    """column → objective coefficient, zeros left out"""
    constant: float


def statement(model: Path, data: Path) -> Program:
    """What GLPK makes of a .mod and a .dat."""
    program = _translated(model, data)
    try:
        return named(program)
    finally:
        glp.glp_delete_prob(program)


def optimum(model: Path, data: Path) -> float | None:
    """The optimal value as GLPK proves it; None where there is no plan."""
    program = _translated(model, data)
    try:
        return _solved(program)
    finally:
        glp.glp_delete_prob(program)


def stated(mip: Mip, columns: Sequence[str] = (), rows: Sequence[str] = ()) -> Program:
    """A Mip by name: its own names, unless others are given."""
    columns, rows = columns or list(mip.column_names()), rows or list(mip.row_names())
    assert len(set(columns)) == len(columns)
    assert len(set(rows)) == len(rows)
    kinds = ["integer" if integral else "continuous" for integral in mip.integral.tolist()]
    entries = {}
    for row, name in enumerate(rows):
        for at in range(mip.row_start[row], mip.row_start[row + 1]):
            entries[name, columns[mip.index[at]]] = float(mip.value[at])
    return Program(
        dict(zip(rows, zip(mip.row_lower.tolist(), mip.row_upper.tolist()))),
        dict(zip(columns, zip(mip.col_lower.tolist(), mip.col_upper.tolist(), kinds))),
        {where: value for where, value in entries.items() if value},
        {name: value for name, value in zip(columns, mip.cost.tolist()) if value},
        mip.offset,
    )


def assert_same(read: Program, built: Program, tiny: float = 0.0, *, rewritten: bool = False) -> None:
    """Equal entry by entry, but for what is GLPK's way of reading: a column that no row and no cost mentions may be
    left out. ``tiny``: costs up to this are 0, where a sum may leave a rounding error. ``rewritten``: a solver has
    written what it read, with fewer digits, and fixed columns as continuous ones."""
    relative = REWRITTEN if rewritten else RELATIVE
    assert _listed(read.rows.keys() ^ built.rows.keys()) == []
    mentioned = {column for _, column in built.entries} | built.cost.keys()
    assert _listed(read.columns.keys() - built.columns.keys()) == []
    assert _listed((built.columns.keys() - read.columns.keys()) & mentioned) == []
    for name, limits in read.rows.items():
        assert limits == built.rows[name] or limits == pytest.approx(built.rows[name], rel=relative, abs=0), name
    for name, (lower, upper, kind) in read.columns.items():
        low, high, whole = built.columns[name]
        assert kind == whole or (rewritten and lower == upper), name
        assert (lower, upper) == (low, high) or (lower, upper) == pytest.approx((low, high), rel=relative, abs=0), name
    assert read.entries == built.entries or read.entries == pytest.approx(built.entries, rel=relative, abs=0)
    cost = {
        name: (read.cost.get(name, 0.0), built.cost.get(name, 0.0)) for name in read.cost.keys() | built.cost.keys()
    }
    for name, (one, other) in cost.items():
        assert one == other or one == pytest.approx(other, rel=relative, abs=tiny), name
    assert read.constant == pytest.approx(built.constant, rel=relative, abs=0)


def _listed(names: Iterable[str]) -> list[str]:
    return sorted(names)[:8]


def _translated(model: Path, data: Path) -> object:
    glp.glp_term_out(glp.GLP_OFF)
    translator = glp.glp_mpl_alloc_wksp()
    try:
        assert glp.glp_mpl_read_model(translator, str(model), 0) == 0, "GLPK cannot read the .mod"
        assert glp.glp_mpl_read_data(translator, str(data)) == 0, "GLPK cannot read the .dat"
        assert glp.glp_mpl_generate(translator, None) == 0, "GLPK cannot generate the model"
        program = glp.glp_create_prob()
        glp.glp_mpl_build_prob(translator, program)
    finally:
        glp.glp_mpl_free_wksp(translator)
    return program


def _solved(program: object) -> float | None:
    options = glp.glp_iocp()
    glp.glp_init_iocp(options)
    options.presolve = glp.GLP_ON
    options.msg_lev = glp.GLP_MSG_OFF
    outcome = glp.glp_intopt(program, options)
    if outcome in (glp.GLP_ENOPFS, glp.GLP_EBOUND) or glp.glp_mip_status(program) == glp.GLP_NOFEAS:
        return None
    assert outcome == 0
    assert glp.glp_mip_status(program) == glp.GLP_OPT
    return float(glp.glp_mip_obj_val(program))


def named(program: object) -> Program:
    """Everything that GLPK holds, less the objective, which it also lists as a free row."""
    rows, columns, entries, cost = {}, {}, {}, {}
    for j in range(1, glp.glp_get_num_cols(program) + 1):
        name = glp.glp_get_col_name(program, j)
        kind = KINDS[glp.glp_get_col_kind(program, j)]
        columns[name] = (*_limits(glp.glp_get_col_lb(program, j), glp.glp_get_col_ub(program, j)), kind)
        if glp.glp_get_obj_coef(program, j):
            cost[name] = glp.glp_get_obj_coef(program, j)
    index, value = glp.intArray(len(columns) + 1), glp.doubleArray(len(columns) + 1)
    names = list(columns)
    for i in range(1, glp.glp_get_num_rows(program) + 1):
        row = glp.glp_get_row_name(program, i)
        if row == "total":
            continue
        rows[row] = _limits(glp.glp_get_row_lb(program, i), glp.glp_get_row_ub(program, i))
        for at in range(1, glp.glp_get_mat_row(program, i, index, value) + 1):
            if value[at]:
                entries[row, names[index[at] - 1]] = value[at]
    return Program(rows, columns, entries, cost, glp.glp_get_obj_coef(program, 0))


def _limits(lower: float, upper: float) -> tuple[float, float]:
    return (-float("inf") if lower < -INFINITE else lower, float("inf") if upper > INFINITE else upper)
