"""Data placement (Tetris): which region holds which replica, and where each workload runs."""

from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import DataPlacement, Links

__all__ = ["DataPlacement", "Links", "Plan"]
