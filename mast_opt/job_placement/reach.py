"""How many tasks a server could hold if everything that may be stopped for them were: limits that no plan exceeds."""

from __future__ import annotations

import numpy as np

from mast_opt.job_placement.cells import Cells, unique_rows
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import CLUSTER, CPU, GPU, MEMORY, RACK, SERVER, WHOLE, Bools, Ints


def room_by_tier(problem: JobPlacement) -> Ints:
    """[S, 3, P] what is free, and what victims less important than tier p hold."""
    p = problem
    room = np.repeat(p.free[:, :, None], len(p.tiers), axis=2)
    for tier in range(len(p.tiers)):
        rows = p.preemptible[p.held_job] & (p.running_tier[p.held_job] > tier)
        np.add.at(room[:, :, tier], p.held_server[rows], p.held[rows])
    return room


def most_tasks(problem: JobPlacement, cells: Cells) -> Ints:
    """[c] for each (job, server), no more tasks than this can run there, and never more than the job has."""
    p, need = problem, cells.need
    room = room_by_tier(p)[cells.server, :, p.queue_tier[cells.job]]
    whole = room[:, GPU] // WHOLE // np.maximum(need[:, GPU] // WHOLE, 1)
    shared = room[:, GPU] // np.maximum(need[:, GPU], 1)
    most = np.where(need[:, GPU] >= WHOLE, whole, np.where(need[:, GPU] > 0, shared, p.tasks[cells.job]))
    for resource in (CPU, MEMORY):
        fits = room[:, resource] // np.maximum(need[:, resource], 1)
        most = np.where(need[:, resource] > 0, np.minimum(most, fits), most)
    return np.minimum(most, p.tasks[cells.job])


def possible_options(problem: JobPlacement, cells: Cells) -> Bools:
    """[o] for each (job, cluster, type): might all tasks fit, within the level that the job must stay within?"""
    p, c = problem, cells
    most = most_tasks(p, c)
    tasks, within = p.tasks[c.option_job], p.within[c.option_job]
    place = {SERVER: c.server, RACK: p.server_rack[c.server], CLUSTER: np.zeros(len(c.server), np.int64)}
    possible = np.zeros(len(c.option_job), np.bool_)
    for level, where in place.items():
        pairs, at = unique_rows(c.option, where)
        total = np.zeros(len(pairs), np.int64)
        np.add.at(total, at, most)
        best = np.zeros(len(possible), np.int64)
        np.maximum.at(best, pairs[:, 0], total)
        of_level = within == level
        possible[of_level] = (best >= tasks)[of_level]
    return possible
