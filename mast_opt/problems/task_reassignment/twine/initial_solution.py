"""Initial solution of twine (task reassignment): an assignment that the search can begin with."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine.state import spare, untracked_violations


def initial_assignment(problem: TaskReassignment, machine: Ints) -> Ints:
    """The start, repaired: no two processes of a service on a machine, and no transient resource short.

    As few processes as possible move. Today's assignment, repaired, where that leaves fewer violations; the search
    has to repair what is left.
    """
    begin = _within_transient_capacity(problem, _without_conflicts(problem, machine))
    if machine is problem.processes.initial or not untracked_violations(problem, begin):
        return begin
    today = initial_assignment(problem, problem.processes.initial)
    return min(begin, today, key=lambda one: untracked_violations(problem, one))


def _without_conflicts(problem: TaskReassignment, machine: Ints) -> Ints:
    """Processes that share a machine with one of their own service go elsewhere.

    Each goes to the machine without its service where the largest share of the capacity is left after it, transient
    resources that it leaves behind included; it stays where none has room for what it needs of these.
    """
    p = problem
    pair = p.processes.service * len(p.machines) + machine
    _, first = np.unique(pair, return_index=True)
    crowded = np.setdiff1d(np.arange(len(machine)), first)
    if not len(crowded):
        return machine
    machine = machine.copy()
    held = np.zeros_like(p.machines.capacity)
    np.add.at(held, machine, p.processes.need)
    away = np.flatnonzero(machine != p.processes.initial)
    np.add.at(held, p.processes.initial[away], p.processes.need[away] * p.resources.transient)
    for process in crowded.tolist():
        left = p.machines.capacity - held - p.processes.need[process]
        possible = (left[:, p.resources.transient] >= 0).all(axis=1)
        possible[p.processes.initial[process]] = True
        possible[machine[p.processes.service == p.processes.service[process]]] = False
        score = np.where(possible, (left / np.maximum(p.machines.capacity, 1)).min(axis=1), -np.inf)
        target = int(score.argmax())
        if np.isneginf(score[target]):
            continue
        source = int(machine[process])
        stays = p.resources.transient & (source == p.processes.initial[process])
        held[source] -= p.processes.need[process] * ~stays
        held[target] += p.processes.need[process] * ~(p.resources.transient & (target == p.processes.initial[process]))
        machine[process] = target
    return machine


def _within_transient_capacity(problem: TaskReassignment, machine: Ints) -> Ints:
    """Send processes home where a transient resource is short, those that need most of it first, and only where nothing
    of their service runs: their need of it is reserved at home anyway."""
    p = problem
    room = spare(p, machine)
    short = np.flatnonzero((room < 0).any(axis=1))
    if not len(short):
        return machine
    machine = machine.copy()
    need = p.processes.need[:, p.resources.transient]
    for m in short.tolist():
        guests = np.flatnonzero((machine == m) & (p.processes.initial != m))
        share = (need[guests] / np.maximum(-room[m], 1) * (room[m] < 0)).max(axis=1)
        for guest in guests[np.argsort(-share, kind="stable")].tolist():
            home = p.processes.initial[guest]
            helps = (need[guest, room[m] < 0] > 0).any()
            if helps and not (machine[p.processes.service == p.processes.service[guest]] == home).any():
                machine[guest] = home
                room[m] += need[guest]
    return machine
