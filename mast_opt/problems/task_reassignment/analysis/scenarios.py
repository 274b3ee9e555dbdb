"""Scenarios of task reassignment: what can happen to a cluster, as keys of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.kind.analysis_hooks import PLAUSIBLE_GROWTH, Change
from mast_opt.problems.kind.scenario_values import factors, grown, positions, records, reweighted, whole
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment
from mast_opt.problems.task_reassignment.tables.problem_tables import faults

MOST = int(np.iinfo(np.int64).max)


def drain_machines(problem: TaskReassignment, value: object) -> TaskReassignment:
    """The instance in which these machines have to be empty."""
    return _drained(problem, positions("drain_machines", "machine", problem.machines.labels, value))


def drain_locations(problem: TaskReassignment, value: object) -> TaskReassignment:
    """The instance in which all machines of these locations have to be empty."""
    lost = positions("drain_locations", "location", problem.locations, value)
    return _drained(problem, np.flatnonzero(np.isin(problem.machines.location, lost)).tolist())


def _drained(problem: TaskReassignment, machines: list[int]) -> TaskReassignment:
    """Whatever needs a resource that is not transient has to leave, and nothing comes that needs anything. What leaves
    still holds its transient resources there, as in every move; so what needs no others may stay. Balance goals do not
    count there."""
    capacity, safety, balanced = (
        problem.machines.capacity.copy(),
        problem.machines.safety.copy(),
        problem.machines.balanced.copy(),
    )
    capacity[machines] = np.where(problem.resources.transient, problem.held[machines], 0)
    safety[machines] = 0
    balanced[machines] = False
    return replace(problem, machines=replace(problem.machines, capacity=capacity, safety=safety, balanced=balanced))


def grow_demand(problem: TaskReassignment, value: object) -> TaskReassignment:
    """Needs of all processes, of all resources or by resource, times a factor, rounded up."""
    times = factors("grow_demand", "resource", problem.resources.labels, value)
    need = grown("grow_demand", problem.processes.need, times)
    return _exact("grow_demand", replace(problem, processes=replace(problem.processes, need=need)))


def add_capacity(problem: TaskReassignment, value: object) -> TaskReassignment:
    """Capacity and safety capacity of machines, by resource; below 0 takes away."""
    capacity, safety = problem.machines.capacity.copy(), problem.machines.safety.copy()
    axes = {"machine": problem.machines.labels, "resource": problem.resources.labels}
    for record in records("add_capacity", axes, "amount", value):
        cell = record.at["machine"], record.at["resource"]
        amount = whole("add_capacity.amount", record.amount)
        capacity[cell] += amount
        safety[cell] = min(max(int(safety[cell]) + amount, 0), MOST)
    if (capacity < 0).any():
        m, k = (int(part[0]) for part in np.nonzero(capacity < 0))
        raise UsageError(
            f"add_capacity takes more {problem.resources.labels[k]} from {problem.machines.labels[m]} than there is"
        )
    return _exact(
        "add_capacity", replace(problem, machines=replace(problem.machines, capacity=capacity, safety=safety))
    )


def _exact(key: str, problem: TaskReassignment) -> TaskReassignment:
    """The problem. Raises UsageError if its sums are no longer exact."""
    found = faults(problem)
    if found:
        raise UsageError(f"{key} makes the instance too large: {found[0]}")
    return problem


CHANGES = {
    "drain_machines": Change(
        drain_machines, 'drain_machines = ["m1"]', "machines to empty; what needs only transient resources may stay"
    ),
    "drain_locations": Change(drain_locations, 'drain_locations = ["hall-a"]', "locations to empty, likewise"),
    "grow_demand": Change(
        grow_demand,
        "grow_demand = { cpu = 1.2 }",
        "needs times a factor, of all or by resource",
        plausible=PLAUSIBLE_GROWTH,
    ),
    "add_capacity": Change(
        add_capacity, 'add_capacity = [{ machine = "m1", resource = "cpu", amount = 8 }]', "more capacity"
    ),
    "weights": Change(reweighted, "weights = { machine_move = 10 }", "other weights of terms of the objective"),
}


def moved(problem: TaskReassignment, scenario: TaskReassignment, before: Plan, after: Plan) -> Mapping[str, float]:
    """Amounts to move from one plan to another, by unit."""
    return {"reassigned_processes": float((before.machine != after.machine).sum())}
