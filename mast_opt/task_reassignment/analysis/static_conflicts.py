"""Static infeasibility checks of task reassignment: limits that no plan can meet, seen without solving."""

from __future__ import annotations

import numpy as np

from mast_opt.core.verdict import Conflict
from mast_opt.task_reassignment.problem import TaskReassignment


def conflicts(problem: TaskReassignment) -> tuple[Conflict, ...]:
    """Resources short in total, processes too large, services too numerous or too local, lost dependencies."""
    return (
        *_resources(problem),
        *_processes(problem),
        *_transient(problem),
        *_services(problem),
        *_dependencies(problem),
    )


def _resources(problem: TaskReassignment) -> list[Conflict]:
    asked, offered = problem.need.sum(axis=0), problem.capacity.sum(axis=0)
    return [
        Conflict(
            "capacity",
            (name,),
            f"all processes together need {asked[k]:,} of {name}, all machines together have {offered[k]:,}",
        )
        for k, name in enumerate(problem.resources)
        if asked[k] > offered[k]
    ]


def _processes(problem: TaskReassignment) -> list[Conflict]:
    """Looks only at processes that need more of some resource than half of the machines have."""
    middle = np.median(problem.capacity, axis=0)
    large = np.flatnonzero((problem.need > middle).any(axis=1))
    return [
        Conflict(
            "capacity",
            (problem.processes[p],),
            f"no machine has the capacity for process {problem.processes[p]} even when it is empty",
        )
        for p in large.tolist()
        if not (problem.capacity >= problem.need[p]).all(axis=1).any()
    ]


def _transient(problem: TaskReassignment) -> list[Conflict]:
    over = np.argwhere((problem.held > problem.capacity) & problem.transient)
    return [
        Conflict(
            "capacity",
            (problem.machines[m], problem.resources[k]),
            f"machine {problem.machines[m]} holds {problem.held[m, k]:,} of {problem.resources[k]} and has a capacity "
            f"of {problem.capacity[m, k]:,}; the resource is transient, so moving processes away does not help",
        )
        for m, k in over.tolist()
    ]


def _services(problem: TaskReassignment) -> list[Conflict]:
    size, machines = problem.service_size, len(problem.machines)
    locations = len(np.unique(problem.location))
    crowded = [
        Conflict("conflict", (name,), f"service {name} has {size[s]} processes for {machines} machines, one on each")
        for s, name in enumerate(problem.services)
        if size[s] > machines
    ]
    local = [
        Conflict(
            "spread",
            (name,),
            f"service {name} must run in {problem.spread_min[s]} locations; it has {size[s]} processes and there are "
            f"{locations} locations",
        )
        for s, name in enumerate(problem.services)
        if size[s] > 0 and problem.spread_min[s] > min(int(size[s]), locations)
    ]
    return crowded + local


def _dependencies(problem: TaskReassignment) -> list[Conflict]:
    size = problem.service_size
    lost = np.flatnonzero((size[problem.dependent] > 0) & (size[problem.dependency] == 0))
    return [
        Conflict(
            "dependency",
            (problem.services[problem.dependent[d]], problem.services[problem.dependency[d]]),
            f"service {problem.services[problem.dependent[d]]} depends on "
            f"{problem.services[problem.dependency[d]]}, which has no processes",
        )
        for d in lost.tolist()
    ]
