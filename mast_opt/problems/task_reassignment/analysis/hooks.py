"""Analysis hooks of task reassignment: what can be asked of it beyond a plan."""

from __future__ import annotations

import numpy as np

from mast_opt.core.verdict import Violation
from mast_opt.problems.kind.analysis_hooks import Alternative, AnalysisHooks, Decisions
from mast_opt.problems.task_reassignment.analysis.elastic_program import relief
from mast_opt.problems.task_reassignment.analysis.scenarios import CHANGES, moved
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment

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
    p = problem
    use = np.zeros_like(p.machines.capacity)
    np.add.at(use, plan.machine, p.processes.need)
    left = (p.machines.safety - use - p.processes.need[process]) / np.maximum(p.machines.capacity, 1)
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
