"""``solve``: formulate, run, decode, verify. Nothing reaches the user that the verifier has not seen."""

from mast_opt.planner.solving.background import SolveRun, start
from mast_opt.planner.solving.dispatch import solve, verify
from mast_opt.planner.solving.kernel_compilation import warm_up
from mast_opt.planner.solving.one_solver import feasible_current_plan
from mast_opt.planner.solving.request import solver_names
from mast_opt.planner.solving.solution import CrossCheck, Solution, Stage, write_plan_folder
from mast_opt.planner.solving.solver_list import SolverInfo, solvers

__all__ = [
    "CrossCheck",
    "Solution",
    "SolveRun",
    "SolverInfo",
    "Stage",
    "feasible_current_plan",
    "solve",
    "solver_names",
    "solvers",
    "start",
    "verify",
    "warm_up",
    "write_plan_folder",
]
