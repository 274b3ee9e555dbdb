"""Initial solution of twine (task reassignment): an assignment that the search can begin with."""

from __future__ import annotations

import numpy as np

from mast_opt.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.task_reassignment.twine.state import spare, untracked_violations


def initial_assignment(problem: TaskReassignment, machine: Ints) -> Ints:
    """The start, repaired: no two processes of a service on a machine, and no transient resource short.

    As few processes as possible move. Today's assignment, repaired, where that leaves fewer violations; the search
    has to repair what is left.
    """
    begin = _within_transient_capacity(problem, _without_conflicts(problem, machine))
    if machine is problem.initial or not untracked_violations(problem, begin):
        return begin
    today = initial_assignment(problem, problem.initial)
    return min(begin, today, key=lambda one: untracked_violations(problem, one))


def _without_conflicts(problem: TaskReassignment, machine: Ints) -> Ints:
    """Processes that share a machine with one of their own service go elsewhere.

    Each goes to the machine without its service where the largest share of the capacity is left after it, transient
    resources that it leaves behind included; it stays where none has room for what it needs of these.
    """
    p = problem
    pair = p.service * len(p.machines) + machine
    _, first = np.unique(pair, return_index=True)
    crowded = np.setdiff1d(np.arange(len(machine)), first)
    if not len(crowded):
        return machine
    machine = machine.copy()
    held = np.zeros_like(p.capacity)
    np.add.at(held, machine, p.need)
    away = np.flatnonzero(machine != p.initial)
    np.add.at(held, p.initial[away], p.need[away] * p.transient)
    for process in crowded.tolist():
        left = p.capacity - held - p.need[process]
        possible = (left[:, p.transient] >= 0).all(axis=1)
        possible[p.initial[process]] = True
        possible[machine[p.service == p.service[process]]] = False
        score = np.where(possible, (left / np.maximum(p.capacity, 1)).min(axis=1), -np.inf)
        target = int(score.argmax())
        if np.isneginf(score[target]):
            continue
        source = int(machine[process])
        stays = p.transient & (source == p.initial[process])
        held[source] -= p.need[process] * ~stays
        held[target] += p.need[process] * ~(p.transient & (target == p.initial[process]))
        machine[process] = target
    return machine


def _within_transient_capacity(problem: TaskReassignment, machine: Ints) -> Ints:
    """Where a transient resource is short, processes go home that run elsewhere, those that need most of it first and
    only where nothing of their service runs: what they need of it at home is held there as it is."""
    p = problem
    room = spare(p, machine)
    short = np.flatnonzero((room < 0).any(axis=1))
    if not len(short):
        return machine
    machine = machine.copy()
    need = p.need[:, p.transient]
    for m in short.tolist():
        guests = np.flatnonzero((machine == m) & (p.initial != m))
        share = (need[guests] / np.maximum(-room[m], 1) * (room[m] < 0)).max(axis=1)
        for guest in guests[np.argsort(-share, kind="stable")].tolist():
            home = p.initial[guest]
            helps = (need[guest, room[m] < 0] > 0).any()
            if helps and not (machine[p.service == p.service[guest]] == home).any():
                machine[guest] = home
                room[m] += need[guest]
    return machine
