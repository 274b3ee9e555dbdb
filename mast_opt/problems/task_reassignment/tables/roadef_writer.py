"""Writer of the ROADEF/EURO challenge 2012 text format (task reassignment): instances and plans (see ``roadef``)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment


def write_model(problem: TaskReassignment, path: Path) -> None:
    """Write a model file. Raises UsageError for what the format cannot say."""
    path.write_text(model_text(problem), encoding="ascii")


def write_assignment(problem: TaskReassignment, plan: Plan, path: Path) -> None:
    """Write the new assignment as an assignment file: machine numbers in process order."""
    path.write_text(assignment_text(plan.machine), encoding="ascii")


def assignment_text(machine: Ints) -> str:
    """The content of an assignment file: the machine of every process, in their order."""
    return " ".join(map(str, machine.tolist())) + "\n"


def model_text(problem: TaskReassignment) -> str:
    """The content of a model file.

    Raises:
        UsageError: the objective weights are not whole numbers, the objective is lexicographic, or balance goals do not
            count on some machine.
    """
    p = problem
    weight = {name: _whole(name, value) for name, value in p.objective.weights.items()}
    if p.objective.lexicographic:
        raise UsageError("the challenge's format has no lexicographic objectives; write tables instead")
    if len(p.balances.target) and not p.machines.balanced.all():
        raise UsageError("the challenge's format has no machines without balance goals; write tables instead")
    order = np.argsort(p.dependencies.service, kind="stable")
    count = np.bincount(p.dependencies.service, minlength=len(p.services))
    needed = np.split(p.dependencies.needs[order], np.cumsum(count)[:-1])
    cost = p.move_groups.move_cost[np.ix_(p.machines.move_group, p.machines.move_group)].copy()
    np.fill_diagonal(cost, 0)
    machines = np.concatenate(
        [p.machines.neighbourhood[:, None], p.machines.location[:, None], p.machines.capacity, p.machines.safety, cost],
        axis=1,
    )
    processes = np.concatenate([p.processes.service[:, None], p.processes.need, p.processes.move_cost[:, None]], axis=1)
    balances = [p.balances.first, p.balances.second, p.balances.target, p.balances.weight * weight["balance"]]
    lines = [
        *_section(np.stack([p.resources.transient.astype(np.int64), p.resources.load_weight * weight["load"]], axis=1)),
        *_section(machines),
        *_section([[spread, len(row), *row.tolist()] for spread, row in zip(p.services.spread_min.tolist(), needed)]),
        *_section(processes),
        *_section(np.stack(balances, axis=1)),
        " ".join(str(weight[name]) for name in ("process_move", "service_move", "machine_move")),
    ]
    return "\n".join(lines) + "\n"


def _section(rows: Ints | list[list[int]]) -> Iterable[str]:
    yield str(len(rows))
    for row in rows:
        yield " ".join(map(str, row))


def _whole(name: str, weight: float) -> int:
    if weight != int(weight):
        raise UsageError(f"the weight of {name} is {weight:g}; the challenge's format takes whole numbers only")
    return int(weight)
