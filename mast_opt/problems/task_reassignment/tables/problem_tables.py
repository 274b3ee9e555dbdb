"""Tables of task-reassignment instances and plans, an example, and the way between them and the problem or the plan."""

import numpy as np

from mast_opt.core.arrays import exact_column_sums
from mast_opt.core.errors import Fault, InstanceError, PlanError
from mast_opt.problems.kind.header import Header
from mast_opt.problems.kind.schema import Axis, Schema, Table, Tables, integer, label, need, supply
from mast_opt.problems.kind.stated_columns import arrays_of, left_out, stated_tables
from mast_opt.problems.task_reassignment import entities
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment

SCHEMA = Schema(
    axes=(
        Axis("resource", "resources"),
        Axis("machine", "machines"),
        Axis("service", "services"),
        Axis("process", "processes"),
        Axis("location"),
        Axis("neighbourhood"),
        Axis("move_group"),
    ),
    tables=(
        entities.Resources.table("resource", help="what processes need and machines have: cores, memory, disk, …"),
        entities.Machines.table("machine", help="a machine that runs processes"),
        Table(
            "capacities",
            (
                label("machine", "machine"),
                label("resource", "resource"),
                supply("capacity", 1, help="hard limit, in the resource's unit; a machine without a row has none"),
                supply("safety", 1, required=False, help="use up to here costs nothing; empty = capacity"),
            ),
            key=("machine", "resource"),
            help="how much of each resource a machine has",
        ),
        entities.Services.table("service", help="a set of processes, no two of them on one machine"),
        entities.Dependencies.table(
            "dependencies",
            required=False,
            help="each process of the service has a process of the needed one in its neighbourhood",
        ),
        entities.Processes.table("process", help="a running task"),
        Table(
            "needs",
            (
                label("process", "process"),
                label("resource", "resource"),
                need("amount", 1, help="in the resource's unit; no row = 0"),
            ),
            key=("process", "resource"),
            help="how much of each resource a process holds",
        ),
        entities.Balances.table(
            "balances", required=False, help="free amounts that should stand in a proportion on every machine"
        ),
        Table(
            "move_costs",
            (
                label("src", "move_group"),
                label("dst", "move_group"),
                integer("cost", help="cost of moving a process from one to the other; no row = 0"),
            ),
            key=("src", "dst"),
            required=False,
            help="what moves between groups of machines cost",
        ),
    ),
)

PLAN_SCHEMA = Schema(
    axes=SCHEMA.axes,
    tables=(
        Table(
            "assignments",
            (label("process", "process"), label("machine", "machine")),
            key=("process",),
            help="the machine of each process",
        ),
    ),
)


EXAMPLE = {
    "resources": (("cores", False, 1), ("disk", True, 2)),
    "machines": (
        ("m1", "hall-1", "pod-1", "east", True),
        ("m2", "hall-1", "pod-2", "east", True),
        ("m3", "hall-2", "pod-2", "west", True),
    ),
    "capacities": (
        ("m1", "cores", 64, 48),
        ("m1", "disk", 1000, None),
        ("m2", "cores", 64, 48),
        ("m2", "disk", 1000, 800),
        ("m3", "cores", 32, 24),
        ("m3", "disk", 2000, 1600),
    ),
    "services": (("web", 2), ("store", 1)),
    "dependencies": (("web", "store"),),
    "processes": (
        ("web-1", "web", "m1", 1),
        ("web-2", "web", "m2", 1),
        ("store-1", "store", "m1", 5),
        ("store-2", "store", "m2", 5),
    ),
    "needs": (
        ("web-1", "cores", 24),
        ("web-2", "cores", 24),
        ("store-1", "cores", 30),
        ("store-1", "disk", 700),
        ("store-2", "cores", 8),
        ("store-2", "disk", 300),
    ),
    "balances": (("cores", "disk", 10, 1),),
    "move_costs": (("east", "west", 10), ("west", "east", 10)),
}


LARGEST = 2**53
"""Costs and loads up to here are exact both as int64 and as float64."""


def problem_from_tables(header: Header, tables: Tables) -> TaskReassignment:
    """The problem that the tables state. Raises InstanceError for what only the problem can see."""
    axes = tables.axes
    resources, machines, processes = axes["resource"], axes["machine"], axes["process"]

    def grid(table: str, row: str, column: str, values: Ints, shape: tuple[int, int]) -> Ints:
        full = np.zeros(shape, np.int64)
        full[tables.get(table, row), tables.get(table, column)] = values
        return full

    grouped = tables.has("machines", "move_group")
    groups = axes["move_group"] if grouped.all() else (*axes["move_group"], "")
    by_resource = (len(machines), len(resources))
    stated = tables.get("capacities", "capacity")
    safety = np.where(tables.has("capacities", "safety"), tables.get("capacities", "safety"), stated)
    problem = TaskReassignment(
        name=header.name,
        provenance=header.provenance,
        resources=entities.Resources(labels=resources, **arrays_of(entities.Resources, tables, "resources")),
        machines=entities.Machines(
            labels=machines,
            **arrays_of(entities.Machines, tables, "machines")
            | {"move_group": np.where(grouped, tables.get("machines", "move_group"), len(groups) - 1)},
            capacity=grid("capacities", "machine", "resource", stated, by_resource),
            safety=grid("capacities", "machine", "resource", safety, by_resource),
        ),
        locations=axes["location"],
        neighbourhoods=axes["neighbourhood"],
        move_groups=entities.MoveGroups(
            labels=groups,
            move_cost=grid("move_costs", "src", "dst", tables.get("move_costs", "cost"), (len(groups), len(groups))),
        ),
        services=entities.Services(labels=axes["service"], **arrays_of(entities.Services, tables, "services")),
        processes=entities.Processes(
            labels=processes,
            **arrays_of(entities.Processes, tables, "processes"),
            need=grid("needs", "process", "resource", tables.get("needs", "amount"), (len(processes), len(resources))),
        ),
        dependencies=entities.Dependencies(**arrays_of(entities.Dependencies, tables, "dependencies")),
        balances=entities.Balances(**arrays_of(entities.Balances, tables, "balances")),
        objective=header.objective,
    )
    found = faults(problem)
    if found:
        raise InstanceError(found)
    return problem


def problem_to_tables(problem: TaskReassignment) -> tuple[Header, Tables]:
    """The header and tables that ``build`` turns into this problem."""
    p = problem
    header = Header(p.kind, p.name, p.objective, {}, p.provenance)
    unnamed = p.move_groups.labels.index("") if "" in p.move_groups.labels else None
    grouped = np.ones(len(p.machines), np.bool_) if unnamed is None else p.machines.move_group != unnamed
    capacity_at, need_at, cost_at = (
        np.nonzero((p.machines.capacity > 0) | (p.machines.safety > 0)),
        np.nonzero(p.processes.need),
        np.nonzero(p.move_groups.move_cost),
    )
    axes = p.table_axes(SCHEMA)
    values, present = stated_tables(p, SCHEMA, axes)
    values["machines"]["move_group"] = np.where(grouped, p.machines.move_group, 0)
    present["machines"] = {"move_group": grouped}
    values |= {
        "capacities": {
            "machine": capacity_at[0],
            "resource": capacity_at[1],
            "capacity": p.machines.capacity[capacity_at],
            "safety": p.machines.safety[capacity_at],
        },
        "needs": {"process": need_at[0], "resource": need_at[1], "amount": p.processes.need[need_at]},
        "move_costs": {"src": cost_at[0], "dst": cost_at[1], "cost": p.move_groups.move_cost[cost_at]},
    }
    return header, Tables(axes, values, present, left_out(SCHEMA, values))


def plan_from_tables(problem: TaskReassignment, tables: Tables) -> Plan:
    """The plan that the table states. Raises PlanError where a process has no machine."""
    machine = np.full(len(problem.processes), -1, np.int64)
    machine[tables.get("assignments", "process")] = tables.get("assignments", "machine")
    left_out = np.flatnonzero(machine < 0).tolist()
    if left_out:
        raise PlanError(
            Fault("assignments", f"a row that gives process {problem.processes.labels[p]} a machine", column="process")
            for p in left_out
        )
    return Plan(machine)


def plan_to_tables(problem: TaskReassignment, plan: Plan) -> Tables:
    """The table that ``plan_from_tables`` turns into this plan."""
    values = {"assignments": {"process": np.arange(len(problem.processes)), "machine": plan.machine}}
    return Tables(problem.table_axes(SCHEMA), values)


def faults(problem: TaskReassignment) -> list[Fault]:
    """Sums and costs that could leave the range of exact integers, one fault for each kind of them."""
    p = problem
    use, capacity = exact_column_sums(p.processes.need), exact_column_sums(p.machines.capacity)
    load = sum(weight * total for weight, total in zip(p.resources.load_weight.tolist(), use, strict=True))
    goals = np.stack([p.balances.first, p.balances.second, p.balances.target, p.balances.weight], axis=1).tolist()
    balance = sum(
        weight * (target * (capacity[first] + use[first]) + capacity[second] + use[second])
        for first, second, target, weight in goals
    )
    moves = exact_column_sums(p.processes.move_cost[:, None])[0] + len(p.processes) * int(
        p.move_groups.move_cost.max(initial=0)
    )
    checks = (
        ("needs", "amount", max(use, default=0), "needs of one resource that add up to"),
        ("capacities", "capacity", max(capacity, default=0), "capacities of one resource that add up to"),
        ("resources", "load_weight", load, "loads that cost together"),
        ("balances", "weight", balance, "balances that cost together"),
        ("move_costs", "cost", moves, "moves that cost together"),
    )
    return [
        Fault(table, f"{what} at most 2^53, so that sums stay exact; use a larger unit", None, column, str(amount))
        for table, column, amount, what in checks
        if amount > LARGEST
    ]
