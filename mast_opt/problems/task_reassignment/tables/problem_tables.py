"""The tables of task-reassignment instances and plans, and the way between them and the problem."""

from __future__ import annotations

import numpy as np

from mast_opt.core.errors import InstanceError
from mast_opt.problems.kind.header import Header
from mast_opt.problems.kind.schema import Axis, Schema, Table, Tables, integer, label, need, supply
from mast_opt.problems.kind.stated_columns import arrays_of, cells_of
from mast_opt.problems.task_reassignment.entities import (
    Balances,
    Dependencies,
    Machines,
    MoveGroups,
    Processes,
    Resources,
    Services,
)
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.tables.consistency import faults

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
        Table(
            "resources",
            (label("resource", "resource"), *Resources.columns()),
            key=("resource",),
            rows_required=True,
            help="what processes need and machines have: cores, memory, disk, …",
        ),
        Table(
            "machines",
            (label("machine", "machine"), *Machines.columns()),
            key=("machine",),
            rows_required=True,
            help="a machine that runs processes",
        ),
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
        Table(
            "services",
            (label("service", "service"), *Services.columns()),
            key=("service",),
            rows_required=True,
            help="a set of processes, no two of them on one machine",
        ),
        Table(
            "dependencies",
            Dependencies.columns(),
            key=("service", "needs"),
            required=False,
            help="each process of the service has a process of the needed one in its neighbourhood",
        ),
        Table(
            "processes",
            (label("process", "process"), *Processes.columns()),
            key=("process",),
            rows_required=True,
            help="a running task",
        ),
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
        Table(
            "balances",
            Balances.columns(),
            key=("first", "second", "target"),
            required=False,
            help="free amounts that should stand in a proportion on every machine",
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
        resources=Resources(labels=resources, **arrays_of(Resources, tables, "resources")),
        machines=Machines(
            labels=machines,
            **arrays_of(Machines, tables, "machines")
            | {"move_group": np.where(grouped, tables.get("machines", "move_group"), len(groups) - 1)},
            capacity=grid("capacities", "machine", "resource", stated, by_resource),
            safety=grid("capacities", "machine", "resource", safety, by_resource),
        ),
        locations=axes["location"],
        neighbourhoods=axes["neighbourhood"],
        move_groups=MoveGroups(
            labels=groups,
            move_cost=grid("move_costs", "src", "dst", tables.get("move_costs", "cost"), (len(groups), len(groups))),
        ),
        services=Services(labels=axes["service"], **arrays_of(Services, tables, "services")),
        processes=Processes(
            labels=processes,
            **arrays_of(Processes, tables, "processes"),
            need=grid("needs", "process", "resource", tables.get("needs", "amount"), (len(processes), len(resources))),
        ),
        dependencies=Dependencies(**arrays_of(Dependencies, tables, "dependencies")),
        balances=Balances(**arrays_of(Balances, tables, "balances")),
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
    axes = problem_axes(p)
    values = {
        "resources": {"resource": np.arange(len(p.resources)), **cells_of(p.resources, axes)[0]},
        "machines": {
            "machine": np.arange(len(p.machines)),
            **cells_of(p.machines, axes)[0],
            "move_group": np.where(grouped, p.machines.move_group, 0),
        },
        "capacities": {
            "machine": capacity_at[0],
            "resource": capacity_at[1],
            "capacity": p.machines.capacity[capacity_at],
            "safety": p.machines.safety[capacity_at],
        },
        "services": {"service": np.arange(len(p.services)), **cells_of(p.services, axes)[0]},
        "dependencies": cells_of(p.dependencies, axes)[0],
        "processes": {"process": np.arange(len(p.processes)), **cells_of(p.processes, axes)[0]},
        "needs": {"process": need_at[0], "resource": need_at[1], "amount": p.processes.need[need_at]},
        "balances": cells_of(p.balances, axes)[0],
        "move_costs": {"src": cost_at[0], "dst": cost_at[1], "cost": p.move_groups.move_cost[cost_at]},
    }
    present = {"machines": {"move_group": grouped}}
    missing = frozenset(
        name for name in ("dependencies", "balances", "move_costs") if not len(next(iter(values[name].values())))
    )
    return header, Tables(axes, values, present, missing)


def problem_axes(problem: TaskReassignment) -> dict[str, tuple[str, ...]]:
    """The labels of every axis of the instance's tables."""
    return {
        "resource": problem.resources.labels,
        "machine": problem.machines.labels,
        "service": problem.services.labels,
        "process": problem.processes.labels,
        "location": problem.locations,
        "neighbourhood": problem.neighbourhoods,
        "move_group": tuple(group for group in problem.move_groups.labels if group),
    }
