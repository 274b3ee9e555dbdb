"""What several tests of server assignment do."""

from __future__ import annotations

from pathlib import Path

from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.tables.mathprog import write_dat
from tests import mathprog

MODEL = Path(__file__).parents[2] / "models" / "server_assignment.mod"
RELATIVE = 1e-6
"""To which solver and verifier agree on an objective."""


def proven(mip: Mip) -> SolveResult:
    """The optimum that HiGHS proves; there always is one."""
    result = backends.get("highs").solve(mip, SolveParams(gap=0.0, threads=1))
    assert result.status is Status.OPTIMAL, result
    return result


def statement(problem: ServerAssignment, folder: Path) -> mathprog.Program:
    """What GLPK makes of the .mod with the problem's data."""
    write_dat(problem, folder / "instance.dat")
    return mathprog.statement(MODEL, folder / "instance.dat")


def glpk_optimum(problem: ServerAssignment, folder: Path) -> float | None:
    write_dat(problem, folder / "instance.dat")
    return mathprog.optimum(MODEL, folder / "instance.dat")
