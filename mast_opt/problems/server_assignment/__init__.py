"""Server assignment (RAS): which servers form which cluster, surviving the loss of a failure domain."""

from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import ServerAssignment

__all__ = ["Plan", "ServerAssignment"]
