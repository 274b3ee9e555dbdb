"""An instance of data placement as GLPK reads it: the .mod with the instance's .dat."""

from __future__ import annotations

from pathlib import Path

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.tables.mathprog import write_dat
from tests import mathprog

MODEL = Path(__file__).parents[2] / "models" / "data_placement.mod"


def statement(problem: DataPlacement, folder: Path) -> mathprog.Program:
    """What GLPK makes of the statement of the problem."""
    return mathprog.statement(MODEL, _data(problem, folder))


def optimum(problem: DataPlacement, folder: Path) -> float | None:
    """The optimal value as GLPK proves it; None where there is no plan."""
    return mathprog.optimum(MODEL, _data(problem, folder))


def _data(problem: DataPlacement, folder: Path) -> Path:
    data = folder / "instance.dat"
    write_dat(problem, data)
    return data
