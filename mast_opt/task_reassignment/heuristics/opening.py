"""An assignment that the search can begin with: no two processes of a service on a machine."""

from __future__ import annotations

import numpy as np

from mast_opt.task_reassignment.problem import Ints, TaskReassignment


def opening(problem: TaskReassignment, machine: Ints) -> Ints:
    """The assignment, with processes that share a machine with one of their own service sent elsewhere.

    Each goes to the machine without its service where the largest share of the capacity is left after it, transient
    resources that it leaves behind included; it stays where there is none.
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
        taken = np.zeros(len(p.machines), np.bool_)
        taken[machine[p.service == p.service[process]]] = True
        left = (p.capacity - held - p.need[process]) / np.maximum(p.capacity, 1)
        score = np.where(taken, -np.inf, left.min(axis=1))
        target = int(score.argmax())
        if np.isneginf(score[target]):
            continue
        source = int(machine[process])
        stays = p.transient & (source == p.initial[process])
        held[source] -= p.need[process] * ~stays
        held[target] += p.need[process] * ~(p.transient & (target == p.initial[process]))
        machine[process] = target
    return machine
