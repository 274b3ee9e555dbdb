"""``solve``: formulate, run, decode, verify. Nothing reaches the user that the verifier has not seen."""

from mast_opt.planner.solving.background import SolveRun, start
from mast_opt.planner.solving.dispatch import solve, verify
from mast_opt.planner.solving.kernel_compilation import warm_up
from mast_opt.planner.solving.one_solver import feasible_current_plan
from mast_opt.planner.solving.request import solver_names
from mast_opt.planner.solving.resolving import resolve
from mast_opt.planner.solving.solution import CrossCheck, Reuse, Solution, Stage, write_plan_folder
from mast_opt.planner.solving.solver_list import SolverInfo, solvers

__all__ = [
    "CrossCheck",
    "Reuse",
    "Solution",
    "SolveRun",
    "SolverInfo",
    "Stage",
    "feasible_current_plan",
    "resolve",
    "solve",
    "solver_names",
    "solvers",
    "start",
    "verify",
    "warm_up",
    "write_plan_folder",
]
