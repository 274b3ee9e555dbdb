"""``solve``: formulate, run, decode, verify. Nothing reaches the user that the verifier has not seen."""

from mast_opt.solving.dispatch import lawful_today, solve, solver_names, verify
from mast_opt.solving.kernel_compilation import warm_up
from mast_opt.solving.solution import Solution, Stage, write_plan

__all__ = ["Solution", "Stage", "lawful_today", "solve", "solver_names", "verify", "warm_up", "write_plan"]
