"""Builders: problems of every kind from Python calls, one entity at a time, each checked when it is added."""

from mast_opt.planner.builders.data_placement import DataPlacementBuilder
from mast_opt.planner.builders.job_placement import JobPlacementBuilder
from mast_opt.planner.builders.resource_allocation import ResourceAllocationBuilder
from mast_opt.planner.builders.server_assignment import ServerAssignmentBuilder
from mast_opt.planner.builders.task_reassignment import TaskReassignmentBuilder

__all__ = [
    "DataPlacementBuilder",
    "JobPlacementBuilder",
    "ResourceAllocationBuilder",
    "ServerAssignmentBuilder",
    "TaskReassignmentBuilder",
]
