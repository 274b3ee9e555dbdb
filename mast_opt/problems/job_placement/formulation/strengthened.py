"""Strengthened job-placement MIP: rows that the linear relaxation lacks, as tasks of several GPUs do not split.

For a width of w GPUs, a server holds no more than floor(its free GPUs / w) tasks at least that wide, each counted
floor(its width / w) times. That is a valid row for every w (Chvátal–Gomory); it cuts off three quarters of a task of
four GPUs on three free ones. Where victims may free more, an integer column ``slots`` stands for that floor.
"""

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.job_placement.formulation.domain_reduction import most_tasks, possible_options
from mast_opt.problems.job_placement.formulation.formulation import PerServer, state
from mast_opt.problems.job_placement.movable_jobs import MovableJobs
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Ints
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.mip import frozen


def strong(problem: JobPlacement) -> Formulation[Plan]:
    """The base formulation with one more block of rows and tighter bounds; the same plans and optima."""
    statement = state(problem)
    widths = _widths(statement)
    slots = _slot_rows(statement, widths)
    base = statement.finished()
    upper = base.mip.col_upper.copy()
    upper[statement.count] = most_tasks(statement.movers, statement.cells)
    upper[statement.assign] = possible_options(statement.movers, statement.options)
    mip = replace(base.mip, col_upper=frozen(upper))

    def encode(plan: Plan) -> FloatArray:
        x = base.encode(plan)
        x[slots] = _floors(statement.movers, plan, widths)
        return x

    return Formulation(mip, base.decode, encode)


@dataclass(frozen=True, eq=False)
class Widths:
    """(server, tier, width) for which some job of just that tier could put a task of that width on the server."""

    server: Ints
    tier: Ints
    width: Ints
    """GPUs, at least 2."""


def _widths(statement: PerServer) -> Widths:
    """Widths of tasks of several GPUs on each server and tier, for rows that strengthen the MIP."""
    c = statement.cells
    wide = np.flatnonzero(c.need[:, GPU] > WHOLE)
    rows = np.stack([c.server[wide], statement.job_tier[wide], c.need[wide, GPU] // WHOLE], axis=1)
    rows = np.unique(rows, axis=0)
    return Widths(rows[:, 0], rows[:, 1], rows[:, 2])


def _slot_rows(statement: PerServer, widths: Widths) -> IntArray:
    """wide: Σ_{j: tier ≥ p, gpus ≥ w} floor(gpus[j] / w) · count[j,s] ≤ slots[s,p,w];
    slot: w · slots[s,p,w] ≤ free GPUs + what victims of tier > p and moved jobs free."""
    p, c, m = statement.p, statement.cells, statement.m
    labels = tuple(str(width) for width in range(int(widths.width.max(initial=0)) + 1))
    axes, at = [p.servers.labels, statement.tiers, labels], [widths.server, widths.tier, widths.width]
    most = p.servers.supply[widths.server, GPU] // WHOLE // np.maximum(widths.width, 1)
    slots = m.columns("slots", axes, at, upper=most, integral=True)
    wide = m.rows("wide", axes, at, upper=0)
    slot = m.rows("slot", axes, at, upper=p.free[widths.server, GPU])
    everything = np.arange(len(widths.server))
    wide.add(everything, slots, -1)
    slot.add(everything, slots, widths.width * WHOLE)

    row, cell = _pairs(widths.server, c.server, len(p.servers))
    mgpu = c.need[cell, GPU] // WHOLE
    counts = (statement.job_tier[cell] >= widths.tier[row]) & (mgpu >= widths.width[row])
    row, cell, mgpu = row[counts], cell[counts], mgpu[counts]
    wide.add(row, statement.count[cell], mgpu // widths.width[row])

    freed = statement.freed()
    row, entry = _pairs(widths.server, freed.server, len(p.servers))
    gives = (freed.below[entry] > widths.tier[row]) & (freed.held[entry, GPU] > 0)
    row, entry = row[gives], entry[gives]
    slot.add(row, freed.column[entry], -freed.held[entry, GPU])
    return slots


def _pairs(rows: Ints, entries: Ints, servers: int) -> tuple[Ints, Ints]:
    """All (row, entry) whose servers are the same."""
    order = np.argsort(entries, kind="stable")
    number = np.bincount(entries, minlength=servers)
    first = np.cumsum(number) - number
    count = number[rows]
    row = np.repeat(np.arange(len(rows)), count)
    step = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, order[first[rows[row]] + step]


def _floors(movers: MovableJobs, plan: Plan, widths: Widths) -> Ints:
    """Tasks of each width that fit on each server next to what a plan leaves running."""
    p = movers.problem
    moved = movers.moved(plan)
    room = p.free[:, GPU, None] + np.zeros(len(p.tiers), np.int64)
    for tier in range(len(p.tiers)):
        rows = (moved | (plan.preempt & (p.running.tier > tier)))[p.allocations.running]
        np.add.at(room[:, tier], p.allocations.server[rows], p.held[rows, GPU])
    floors: Ints = room[widths.server, widths.tier] // WHOLE // widths.width
    return floors
