"""Analysis hooks of task reassignment: what can be asked of it beyond a plan.

Elastic program of task reassignment: every hard limit in words, as rows, to be moved or given up.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.errors import UsageError
from mast_opt.core.verdict import Violation
from mast_opt.core.wording import named
from mast_opt.problems.kind.analysis_hooks import (
    PLAUSIBLE_GROWTH,
    Alternative,
    AnalysisHooks,
    Change,
    Decisions,
    ElasticLimits,
    ElasticProgram,
    row_limits,
)
from mast_opt.problems.kind.scenario_values import factors, grown, positions, records, reweighted, whole
from mast_opt.problems.task_reassignment.formulation.formulation import base
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.tables.problem_tables import faults

RULE = 1.0
"""Cost in a repair of one location less or a dependency given up; making a machine's capacity larger by that of an
average one costs 1. Repairs never give up that processes run, and each of a service on a machine of its own."""


def relief(problem: TaskReassignment) -> ElasticProgram:
    """The program and its limits; none of them closes a column."""
    p, formulation = problem, base(problem)
    rows = {block.name: block for block in formulation.mip.rows}
    every = np.arange(len(p.processes))
    listed_conflict = rows["conflict"].cells
    listed_dependency = rows["dependency"].cells
    assert listed_conflict is not None
    assert listed_dependency is not None
    services, pairs = _spread_services(p), _pairs(p)
    limits = (
        _capacity(p, rows["capacity"].ids.ravel()),
        replace(
            row_limits(
                "spread",
                "lower",
                np.full(len(services), RULE),
                services,
                rows["spread"].ids,
                lambda s: f"service {p.services.labels[s]} in at least {p.services.spread_min[s]} locations",
                lambda s, fewer: (
                    f"let service {p.services.labels[s]} run in {p.services.spread_min[s] - round(fewer)} locations"
                ),
                _fewer_locations,
                per_unit=1.0,
            ),
            whole=True,
        ),
        row_limits(
            "dependency",
            "upper",
            np.full(len(pairs), RULE),
            pairs,
            rows["dependency"].ids,
            lambda pair: f"service {_ends(p, pair)[0]} needs {_ends(p, pair)[1]} in its neighbourhood",
            lambda pair, _: f"let service {_ends(p, pair)[0]} run without {_ends(p, pair)[1]} nearby",
            _without_dependencies,
            position_of_row=p.processes.service[listed_dependency[0]] * len(p.services) + listed_dependency[1],
        ),
        row_limits(
            "conflict",
            "upper",
            np.full(len(np.unique(listed_conflict[0])), np.inf),
            np.unique(listed_conflict[0]),
            rows["conflict"].ids,
            lambda s: f"the {p.service_size[s]} processes of {p.services.labels[s]} on machines of their own",
            position_of_row=listed_conflict[0],
        ),
        ElasticLimits(
            "assigned",
            "lower",
            np.full(len(every), np.inf),
            describe=lambda members: (
                f"{named('process', [p.processes.labels[m] for m in members], 'processes')} must run"
            ),
            row_member=every,
            row=rows["assigned"].ids,
        ),
    )
    return ElasticProgram.of(formulation.mip, limits, formulation.decode)


def _capacity(p: TaskReassignment, rows: IntArray) -> ElasticLimits:
    """[M, K] machine after machine; what is transient is also held by what moves away."""
    resources = len(p.resources)
    mean = np.maximum(p.machines.capacity.mean(axis=0), 1.0) if len(p.machines) else np.ones(resources)

    def called(member: int) -> str:
        m, k = divmod(member, resources)
        return f"{p.resources.labels[k]} of machine {p.machines.labels[m]}"

    def amount(member: int) -> str:
        m, k = divmod(member, resources)
        held = f", {p.held[m, k]:,} held by what runs there now" if p.resources.transient[k] else ""
        return f"{p.machines.capacity[m, k]:,}{held}"

    def more(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
        capacity = problem.machines.capacity.copy()
        for member, units in amounts.items():
            capacity[divmod(member, resources)] += round(units)
        return replace(problem, machines=replace(problem.machines, capacity=capacity))

    limits = row_limits(
        "capacity",
        "upper",
        np.tile(1 / mean, len(p.machines)),
        np.arange(len(rows)),
        rows,
        lambda member: f"{called(member)} ({amount(member)})",
        lambda member, units: f"raise {called(member)} by {round(units):,}",
        more,
        per_unit=1.0,
    )
    return replace(limits, whole=True)


def _spread_services(p: TaskReassignment) -> Ints:
    """Services of a task reassignment that have to be spread over several locations."""
    services: Ints = np.flatnonzero((p.services.spread_min > 1) & (p.service_size > 0))
    return services


def _fewer_locations(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
    """The task reassignment with some services spread over fewer locations."""
    fewest = problem.services.spread_min.copy()
    for service, units in amounts.items():
        fewest[service] -= round(units)
    return replace(problem, services=replace(problem.services, spread_min=fewest))


def _pairs(p: TaskReassignment) -> Ints:
    """Dependencies as dependent · S + dependency, ascending; those on the service itself say nothing."""
    other = p.dependencies.service != p.dependencies.needs
    pairs: Ints = np.unique(p.dependencies.service[other] * len(p.services) + p.dependencies.needs[other])
    return pairs


def _ends(p: TaskReassignment, pair: int) -> tuple[str, str]:
    """Names of the dependent service and of the one that it needs."""
    dependent, dependency = divmod(pair, len(p.services))
    return p.services.labels[dependent], p.services.labels[dependency]


def _without_dependencies(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
    """Members are dependent · S + dependency."""
    pairs = problem.dependencies.service * len(problem.services) + problem.dependencies.needs
    return replace(problem, dependencies=problem.dependencies.rows(~np.isin(pairs, list(amounts))))


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


MACHINES = 200
"""Machines that are looked at for one process: those that it leaves with most room, and the one that runs it today."""


def now(problem: TaskReassignment, plan: Plan, process: int) -> str:
    """Present machine of a process in a plan, in words."""
    return f"on {problem.machines.labels[int(plan.machine[process])]}"


def alternatives(problem: TaskReassignment, plan: Plan, process: int) -> tuple[Alternative, ...]:
    """The process on each other machine; in a large cluster on those with most room for it."""
    found = []
    for m in _roomy(problem, plan, process).tolist():
        machine = plan.machine.copy()
        machine[process] = m
        home = " (where it runs today)" if m == problem.processes.initial[process] else ""
        found.append(Alternative(f"on {problem.machines.labels[m]}{home}", problem.machines.labels[m], Plan(machine)))
    return tuple(found)


def _roomy(problem: TaskReassignment, plan: Plan, process: int) -> Ints:
    """Machines with most room left for a process, which runs elsewhere."""
    p = problem
    left = (p.machines.safety - p.used(plan.machine) - p.processes.need[process]) / np.maximum(p.machines.capacity, 1)
    order = np.argsort(-left.min(axis=1, initial=np.inf), kind="stable")
    order = order[order != plan.machine[process]]
    home = int(p.processes.initial[process])
    chosen = order[:MACHINES]
    if home != plan.machine[process] and home not in chosen:
        chosen = np.append(chosen[: MACHINES - 1], home)
    return np.sort(chosen)


def phrase(problem: TaskReassignment, violation: Violation) -> str:
    """A broken limit: what it is, how large, and by how much it is exceeded."""
    index, over, limit = violation.index, violation.amount, violation.limit
    if violation.constraint == "capacity":
        return f"{index[1]} of machine {index[0]} ({limit:,.0f}) would be exceeded by {over:,.0f}"
    if violation.constraint == "conflict":
        return f"machine {index[1]} runs another process of {index[0]}"
    if violation.constraint == "spread":
        return f"service {index[0]} would run in {limit - over:,.0f} of the {limit:,.0f} locations that it needs"
    if violation.constraint == "dependency":
        return f"{' would lack '.join(index[:2])} in its neighbourhood"
    return str(violation)


def _heaviest(problem: TaskReassignment) -> list[int]:
    """Those that need the largest part of what all machines have of some resource."""
    share = problem.processes.need / np.maximum(problem.machines.capacity.sum(axis=0), 1)
    order: list[int] = np.argsort(-share.max(axis=1, initial=0), kind="stable").tolist()
    return order


QUESTIONS = AnalysisHooks(
    relief=relief,
    choices=(Decisions("process", lambda problem: problem.processes.labels, _heaviest, now, alternatives, phrase),),
    changes=CHANGES,
    moved=moved,
)
