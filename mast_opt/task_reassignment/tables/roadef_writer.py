"""Writer of the ROADEF/EURO challenge 2012 text format (task reassignment): instances and plans (see ``roadef``)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import Ints, TaskReassignment


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
    if len(p.balance_target) and not p.balanced.all():
        raise UsageError("the challenge's format has no machines without balance goals; write tables instead")
    order = np.argsort(p.dependent, kind="stable")
    count = np.bincount(p.dependent, minlength=len(p.services))
    needed = np.split(p.dependency[order], np.cumsum(count)[:-1])
    cost = p.group_move_cost[np.ix_(p.move_group, p.move_group)].copy()
    np.fill_diagonal(cost, 0)
    machines = np.concatenate([p.neighbourhood[:, None], p.location[:, None], p.capacity, p.safety, cost], axis=1)
    processes = np.concatenate([p.service[:, None], p.need, p.move_cost[:, None]], axis=1)
    balances = [p.balance_first, p.balance_second, p.balance_target, p.balance_weight * weight["balance"]]
    lines = [
        *_section(np.stack([p.transient.astype(np.int64), p.load_weight * weight["load"]], axis=1)),
        *_section(machines),
        *_section([[spread, len(row), *row.tolist()] for spread, row in zip(p.spread_min.tolist(), needed)]),
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
