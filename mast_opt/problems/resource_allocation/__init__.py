"""Resource allocation: how much of which resources each running job gets in the next round."""

from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

__all__ = ["Plan", "ResourceAllocation"]
