"""Task reassignment (Twine): which machine runs which process; Google's machine reassignment problem."""

from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment

__all__ = ["Plan", "TaskReassignment"]
