"""Static infeasibility checks of task reassignment: limits that no plan can meet, seen without solving."""

import numpy as np

from mast_opt.core.verdict import Conflict
from mast_opt.problems.task_reassignment.problem import TaskReassignment


def conflicts(problem: TaskReassignment) -> tuple[Conflict, ...]:
    """Conflicts of resources short in total, processes that fit no machine, transient resources over capacity, services
    with too many processes or too few locations, and dependencies on empty services."""
    return (
        *_resources(problem),
        *_processes(problem),
        *_transient(problem),
        *_services(problem),
        *_dependencies(problem),
    )


def _resources(problem: TaskReassignment) -> list[Conflict]:
    """Conflicts of resources: all processes need more than all machines have."""
    asked, offered = problem.processes.need.sum(axis=0), problem.machines.capacity.sum(axis=0)
    return [
        Conflict(
            "capacity",
            (name,),
            f"all processes together need {asked[k]:,} of {name}, but all machines together have {offered[k]:,}",
        )
        for k, name in enumerate(problem.resources.labels)
        if asked[k] > offered[k]
    ]


def _processes(problem: TaskReassignment) -> list[Conflict]:
    """Conflicts of processes that fit no machine. Only processes above the median capacity of some resource are
    checked, so some may be missed."""
    middle = np.median(problem.machines.capacity, axis=0)
    large = np.flatnonzero((problem.processes.need > middle).any(axis=1))
    return [
        Conflict(
            "capacity",
            (problem.processes.labels[p],),
            f"no machine has the capacity for process {problem.processes.labels[p]} even when it is empty",
        )
        for p in large.tolist()
        if not (problem.machines.capacity >= problem.processes.need[p]).all(axis=1).any()
    ]


def _transient(problem: TaskReassignment) -> list[Conflict]:
    """Conflicts of transient resources: a machine holds more today than its capacity."""
    machines, resources = problem.machines, problem.resources
    over = np.argwhere((problem.held > machines.capacity) & resources.transient)
    return [
        Conflict(
            "capacity",
            (machines.labels[m], resources.labels[k]),
            f"machine {machines.labels[m]} holds {problem.held[m, k]:,} of {resources.labels[k]} and has a capacity "
            f"of {machines.capacity[m, k]:,}; the resource is transient, so moving processes away does not help",
        )
        for m, k in over.tolist()
    ]


def _services(problem: TaskReassignment) -> list[Conflict]:
    """Conflicts of services: more processes than machines, or more locations than there are."""
    size, machines = problem.service_size, len(problem.machines)
    fewest, locations = problem.services.spread_min, len(np.unique(problem.machines.location))
    crowded = [
        Conflict("conflict", (name,), f"service {name} has {size[s]} processes for {machines} machines, one on each")
        for s, name in enumerate(problem.services.labels)
        if size[s] > machines
    ]
    local = [
        Conflict(
            "spread",
            (name,),
            f"service {name} must run in {fewest[s]} locations; it has {size[s]} processes and there are {locations} "
            "locations",
        )
        for s, name in enumerate(problem.services.labels)
        if size[s] > 0 and fewest[s] > min(int(size[s]), locations)
    ]
    return crowded + local


def _dependencies(problem: TaskReassignment) -> list[Conflict]:
    """Conflicts of dependencies: the service that is needed has no process."""
    size = problem.service_size
    lost = np.flatnonzero((size[problem.dependencies.service] > 0) & (size[problem.dependencies.needs] == 0))
    return [
        Conflict(
            "dependency",
            (
                problem.services.labels[problem.dependencies.service[d]],
                problem.services.labels[problem.dependencies.needs[d]],
            ),
            f"service {problem.services.labels[problem.dependencies.service[d]]} depends on "
            f"{problem.services.labels[problem.dependencies.needs[d]]}, which has no processes",
        )
        for d in lost.tolist()
    ]
