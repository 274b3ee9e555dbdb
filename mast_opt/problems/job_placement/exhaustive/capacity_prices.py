"""Prices of capacity (exhaustive+repair): the linear relaxation per server, whose duals the certificate holds.

Columns: a job in a place, its tasks on a server of the place, a stop. Rows: one place a job, all tasks in it, capacity
of each server by tier and resource. GPUs, racks and all terms of several jobs are left out: what the certificate proves
is computed by its checker from the prices alone.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Ints
from mast_opt.problems.job_placement.verification.certificate import CapacityBound, CapacityPrices
from mast_opt.problems.mip import Mip, unnamed
from mast_opt.problems.search.interface import MipSolver


def capacity_prices(
    problem: JobPlacement, bound: CapacityBound, solver: MipSolver, params: SolveParams
) -> CapacityPrices | None:
    """The duals of the capacity rows at the optimum of the relaxation; None where the solver found none."""
    problem = problem.standing
    cells = _cells(problem, bound)
    if not len(cells.server):
        return None
    result = solver(_program(problem, bound, cells), params)
    if result.row_price is None:
        return None
    shape = len(problem.servers), len(problem.tiers), 3
    return CapacityPrices(np.maximum(-result.row_price[: np.prod(shape)], 0.0).reshape(shape))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Jobs with servers, and with places."""

    job: Ints
    """Job of each cell, [c]."""
    server: Ints
    most: Ints
    need: Ints
    """[c, 3]"""
    option: Ints
    """[c] a job with a place."""
    option_job: Ints
    """Job of each option, [o]."""
    option_price: FloatArray


def _cells(problem: JobPlacement, bound: CapacityBound) -> _Cells:
    """Cells of the pricing program: which job fits on which server, how often, and at what price."""
    every = [bound.places(j) for j in range(len(problem.jobs))]
    cells, options = ([len(getattr(places, name)) for places in every] for name in ("server", "price"))
    start = np.repeat(np.cumsum(options) - options, cells)
    job = np.arange(len(every))
    return _Cells(
        job=np.repeat(job, cells),
        server=np.concatenate([places.server for places in every]),
        most=np.concatenate([places.most for places in every]),
        need=np.concatenate([places.need for places in every]),
        option=start + np.concatenate([places.place for places in every]),
        option_job=np.repeat(job, options),
        option_price=np.concatenate([places.price for places in every]),
    )


def _program(problem: JobPlacement, bound: CapacityBound, cells: _Cells) -> Mip:
    """Columns: options, cells, victims; rows: capacity by server, tier and resource, then gangs, then admission."""
    p, tiers = problem, len(problem.tiers)
    options, count = len(cells.option_job), len(cells.server)
    capacity = len(p.servers) * tiers * 3
    victims = np.flatnonzero(p.running.preemptible)
    column_of = np.full(len(p.running), -1)
    column_of[victims] = options + count + np.arange(len(victims))
    held = np.flatnonzero(p.running.preemptible[p.allocations.running])
    column = column_of[p.allocations.running[held]]
    cell_tier, held_tier = p.queue_tier[cells.job], p.running.tier[p.allocations.running[held]]
    rows, columns, values = [], [], []
    for tier in range(tiers):
        uses, frees = np.flatnonzero(cell_tier >= tier), np.flatnonzero(held_tier > tier)
        for resource in range(3):
            at = tier * 3 + resource
            rows += [cells.server[uses] * tiers * 3 + at, p.allocations.server[held[frees]] * tiers * 3 + at]
            columns += [options + uses, column[frees]]
            values += [cells.need[uses, resource], -p.held[held[frees], resource]]
    rows += [capacity + cells.option, capacity + np.arange(options), capacity + options + cells.option_job]
    columns += [options + np.arange(count), np.arange(options), np.arange(options)]
    values += [np.ones(count), -p.jobs.tasks[cells.option_job], np.ones(options)]
    shape = capacity + options + len(p.jobs), options + count + len(victims)
    entries = np.concatenate(values).astype(np.float64)
    matrix = csr_array((entries, (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    matrix.eliminate_zeros()
    free = np.repeat(p.free[:, None, :], tiers, axis=1).ravel()
    gain = bound.rejected[cells.option_job] - cells.option_price
    return unnamed(
        "job_placement_prices",
        matrix,
        np.concatenate([-gain, np.zeros(count), bound.stopped[victims]]),
        col_upper=np.concatenate([np.ones(options), cells.most, np.ones(len(victims))]),
        row_lower=np.concatenate([np.full(capacity, -np.inf), np.zeros(options), np.full(len(p.jobs), -np.inf)]),
        row_upper=np.concatenate([free, np.zeros(options), np.ones(len(p.jobs))]),
    )
