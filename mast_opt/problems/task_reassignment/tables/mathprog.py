"""GNU MathProg data of task-reassignment instances: for ``models/task_reassignment.mod``, glpsol and other readers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mast_opt.problems.kind.mathprog import section, write_data
from mast_opt.problems.task_reassignment.problem import TaskReassignment

AXES: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("resources", "machines", "locations", "neighbourhoods", "move_groups", "services", "processes"), ()
)


def write_dat(problem: TaskReassignment, path: Path) -> None:
    """Write the data section that, with the .mod, states this problem. The objective is the weighted one."""
    write_data(problem, path, "task_reassignment.mod", AXES, _sections)


def _sections(p: TaskReassignment) -> Iterator[Iterator[str]]:
    """Machines, services and processes, and what costs, as the .mod declares them."""
    yield from _machines(p)
    yield from _processes(p)
    yield from _costs(p)
    yield iter(["end;"])


def _machines(p: TaskReassignment) -> Iterator[Iterator[str]]:
    """Data sections of resources, machines and their groups."""
    resource, machine, group = np.array(p.resources.labels), np.array(p.machines.labels), np.array(p.move_groups.labels)
    location, neighbourhood = np.array(p.locations), np.array(p.neighbourhoods)
    yield section(
        "param : RESOURCE : transient load_weight",
        resource,
        p.resources.transient.astype(np.int64),
        p.resources.load_weight,
    )
    yield section("set LOCATION", location)
    yield section("set NEIGHBOURHOOD", neighbourhood)
    yield section("set GROUP", group)
    yield section(
        "param : MACHINE : location neighbourhood move_group balanced",
        machine,
        location[p.machines.location],
        neighbourhood[p.machines.neighbourhood],
        group[p.machines.move_group],
        p.machines.balanced.astype(np.int64),
    )
    yield section(
        "param : capacity_of safety",
        np.repeat(machine, len(resource)),
        np.tile(resource, len(machine)),
        p.machines.capacity.ravel(),
        p.machines.safety.ravel(),
    )
    src, dst = np.nonzero(p.move_groups.move_cost)
    yield section("param group_move_cost", group[src], group[dst], p.move_groups.move_cost[src, dst])


def _processes(p: TaskReassignment) -> Iterator[Iterator[str]]:
    """Data sections of services, dependencies and processes."""
    service, process, resource = np.array(p.services.labels), np.array(p.processes.labels), np.array(p.resources.labels)
    yield section("param : SERVICE : spread_min", service, p.services.spread_min)
    yield section("set DEPENDS", service[p.dependencies.service], service[p.dependencies.needs])
    yield section(
        "param : PROCESS : service initial move_cost",
        process,
        service[p.processes.service],
        np.array(p.machines.labels)[p.processes.initial],
        p.processes.move_cost,
    )
    who, what = np.nonzero(p.processes.need)
    yield section("param need", process[who], resource[what], p.processes.need[who, what])


def _costs(p: TaskReassignment) -> Iterator[Iterator[str]]:
    """Data sections of balance goals and costs of moves."""
    resource = np.array(p.resources.labels)
    yield section(
        "param : GOAL : first second target balance_weight",
        np.array([f"b{goal}" for goal in range(len(p.balances.target))], str),
        resource[p.balances.first],
        resource[p.balances.second],
        p.balances.target,
        p.balances.weight,
    )
    weights = p.objective.weights
    yield section("param weight", np.array(list(weights)), np.array(list(weights.values()), float))
