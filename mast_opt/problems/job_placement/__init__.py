"""Job placement (MAST's fast path): which pending job runs where, and which running one makes room for it."""

from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement

__all__ = ["JobPlacement", "Plan"]
