"""Workload subproblems of tetris's Lagrangian relaxation: prices of reads take their step, then what each runs.

One pass does both, so that the prices, the largest array, are looked at once. Loops are short and touch few arrays:
then the compiler has the processor take many regions at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import compiled, kernel
from mast_opt.core.prefetch import fetch_row
from mast_opt.problems.data_placement.problem import Bools
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.dual_step import Multipliers
from mast_opt.problems.data_placement.tetris.lagrangian.mir_rows import MirRows
from mast_opt.problems.data_placement.tetris.lagrangian.projections import BARRED, NONE, SINGLE, least, simplex_shift

AHEAD = 8
"""Reads ahead of which what is known of their datasets is fetched."""


@by_reference
class PrimalIterate(NamedTuple):
    """Current point of the first-order method."""

    run: Singles
    """[O, R+1]"""
    runs: Singles
    """[W, R] Σ of the options, extrapolated."""
    place: Singles
    """[I, R]"""
    places: Singles
    """[I, R] the same, extrapolated."""
    asked: Singles
    """[I, R] what a replica saves its readers, at the prices of the last pass over the workloads."""


@by_reference
class RowPrices(NamedTuple):
    """Prices of the limits of the regions."""

    gpu: Singles
    """[C + 1, R] for one of each class."""
    cpu: Singles
    """[A, R] for a millicore of each app, with its quota."""
    held: Singles
    """[R] for an MB."""
    new: Singles
    """[R] for an MB that is not there today."""


class Loads(NamedTuple):
    """Loads that the runs put on the regions."""

    demand: FloatArray
    """[C + 1, R] of each class of GPU work, the last being work without GPUs."""
    cpu: FloatArray
    """[A, R] of each app."""
    output: FloatArray
    """Output of the runs by region, [R]."""


@kernel
def _step_read(
    price: Singles,
    n: int,
    runs: Singles,
    w: int,
    places: Singles,
    i: int,
    pace: np.float32,
    cap: np.float32,
    regions: int,
) -> None:
    """Dual step of the rows ``local`` of one read."""
    for r in range(regions):
        new = price[n, r] + pace * (runs[w, r] - places[i, r])
        new = new if new > NONE else NONE
        price[n, r] = new if new < cap else cap


@kernel
def _add_row(table: Singles, row: int, total: Singles, regions: int) -> None:
    for r in range(regions):
        total[r] += table[row, r]


@kernel
def _add_to_row(total: Singles, row: int, table: Singles, n: int, regions: int) -> None:
    for r in range(regions):
        total[row, r] += table[n, r]


@kernel
def _region_costs(
    a: TetrisArrays,
    prices: Multipliers,
    charges: RowPrices,
    splittable: Bools,
    point: PrimalIterate,
    cap: Singles,
    read_pace: np.float32,
    w: int,
    reads: Singles,
) -> np.float32:
    """Charge w in every region whatever its option, less what staying is worth; returns the cost of leaving."""
    regions = len(reads)
    cpu, output = SINGLE(a.cpu_need[w]), SINGLE(a.output[w])
    own = a.app[w]
    for r in range(regions):
        reads[r] = cpu * charges.cpu[own, r] + output * charges.held[r]
    if len(prices.work_lift) > 0:
        for r in range(regions):
            reads[r] += SINGLE(prices.work_lift[w, r])
    last = len(a.read_dataset) - 1
    for n in range(a.read_start[w], a.read_start[w + 1]):
        coming = a.read_dataset[min(n + AHEAD, last)]
        fetch_row(point.asked, coming)
        i = a.read_dataset[n]
        if read_pace > NONE:
            fetch_row(point.places, coming)
            _step_read(prices.read, n, point.runs, w, point.places, i, read_pace, cap[n], regions)
        _add_row(prices.read, n, reads, regions)
        _add_to_row(point.asked, i, prices.read, n, regions)
    leave = 0.0
    for c in range(a.today_start[w], a.today_start[w + 1]):
        leave += a.today_share[c] * a.move_price[w]
        share = 1.0 if splittable[w] else a.today_share[c]
        reads[a.today_region[c]] -= SINGLE(share * a.move_price[w])
    leave += a.typed_share[w] * a.retype_price[w]
    return SINGLE(leave)


@kernel
def _option_costs(
    a: TetrisArrays,
    o: int,
    amount: np.float32,
    gpu: Singles,
    own: int,
    reads: Singles,
    leave: np.float32,
    kept: np.float32,
    refuse: np.float32,
    cost: Singles,
    at: int,
) -> None:
    regions = len(reads)
    for r in range(regions):
        price = reads[r] + (leave - kept) + amount * gpu[own, r] + SINGLE(a.run_price[o, r])
        cost[at + r] = price if a.option_region[o, r] else BARRED
    cost[at + regions] = refuse + leave if a.option_region[o, regions] else BARRED


@kernel
def _cell_costs(
    a: TetrisArrays,
    gangs: MirRows,
    prices: Multipliers,
    charges: RowPrices,
    splittable: Bools,
    point: PrimalIterate,
    cap: Singles,
    read_pace: np.float32,
    w: int,
    cost: Singles,
    reads: Singles,
) -> int:
    """Price of every option in every region; returns how many there are."""
    leave, at = _region_costs(a, prices, charges, splittable, point, cap, read_pace, w, reads), 0
    for o in range(a.option_start[w], a.option_start[w + 1]):
        amount, refuse = SINGLE(gangs.option_amount[o]), SINGLE(a.refuse_price[w])
        share = 1.0 if splittable[w] and a.kept_share[o] > 0 else a.kept_share[o]
        kept = SINGLE(share * a.retype_price[w])
        _option_costs(a, o, amount, charges.gpu, gangs.option_class[o], reads, leave, kept, refuse, cost, at)
        at += len(reads) + 1
    return at


@kernel
def _go_down(run: Singles, o: int, pace: np.float32, cost: Singles, at: int, columns: int) -> None:
    """Costs become where the runs would be without limits."""
    for r in range(columns):
        cost[at + r] = run[o, r] - pace * cost[at + r]


@kernel
def _place_greedily(run: Singles, o: int, shift: np.float32, values: Singles, at: int, columns: int) -> None:
    """Values become runs, and then the extrapolated ones."""
    for r in range(columns):
        new = values[at + r] - shift
        new = new if new > NONE else NONE
        values[at + r] = new + new - run[o, r]
        run[o, r] = new


@kernel
def _ask_gpus(demand: FloatArray, own: int, amount: float, values: Singles, at: int, regions: int) -> None:
    for r in range(regions):
        demand[own, r] += values[at + r] * amount


@kernel
def _ask_cores(total: FloatArray, own: int, runs: Singles, w: int, amount: float, regions: int) -> None:
    for r in range(regions):
        total[own, r] += runs[w, r] * amount


@kernel
def _ask_room(total: FloatArray, runs: Singles, w: int, amount: float, regions: int) -> None:
    for r in range(regions):
        total[r] += runs[w, r] * amount


@kernel
def _add_option(runs: Singles, w: int, values: Singles, at: int, regions: int) -> None:
    for r in range(regions):
        runs[w, r] += values[at + r]


@kernel
def _step_workload(
    a: TetrisArrays,
    gangs: MirRows,
    pace: np.float32,
    point: PrimalIterate,
    w: int,
    cost: Singles,
    cells: int,
    loads: Loads,
) -> None:
    """Move the runs of w by a step, from its costs in ``cost``."""
    regions = point.runs.shape[1]
    first, last, columns = a.option_start[w], a.option_start[w + 1], regions + 1
    for o in range(first, last):
        _go_down(point.run, o, pace, cost, (o - first) * columns, columns)
    shift = simplex_shift(cost, cells)
    point.runs[w, :] = NONE
    for o in range(first, last):
        at = (o - first) * columns
        _place_greedily(point.run, o, shift, cost, at, columns)
        _add_option(point.runs, w, cost, at, regions)
        _ask_gpus(loads.demand, gangs.option_class[o], gangs.option_amount[o], cost, at, regions)
    _ask_cores(loads.cpu, a.app[w], point.runs, w, np.float64(a.cpu_need[w]), regions)
    if a.output[w] > 0:
        _ask_room(loads.output, point.runs, w, np.float64(a.output[w]), regions)


@kernel
def _widest(a: TetrisArrays) -> int:
    widest = 1
    for w in range(len(a.tier)):
        widest = max(widest, a.option_start[w + 1] - a.option_start[w])
    return widest


@compiled
def workload_pass(
    a: TetrisArrays,
    gangs: MirRows,
    prices: Multipliers,
    charges: RowPrices,
    splittable: Bools,
    point: PrimalIterate,
    pace: Singles,
    cap: Singles,
    read_pace: np.float32,
    moves: bool,
) -> tuple[float, Loads]:
    """Dual step of the reads' prices by ``read_pace`` (0: none), then primal step of the runs by ``pace`` [W].

    Returns Σ_w cheapest cell at the new prices, and the loads of the extrapolated point. Unless the point ``moves``,
    only its ``asked`` changes, and there are no loads.
    """
    regions = a.supply.shape[0]
    loads = Loads(np.zeros((len(charges.gpu), regions)), np.zeros(charges.cpu.shape), np.zeros(regions))
    cost, reads = np.zeros(_widest(a) * (regions + 1), np.float32), np.zeros(regions, np.float32)
    point.asked[:] = NONE
    total = 0.0
    for w in range(len(a.tier)):
        cells = _cell_costs(a, gangs, prices, charges, splittable, point, cap, read_pace, w, cost, reads)
        cheapest = least(cost, cells) if cells > 0 else BARRED
        if cheapest < BARRED:
            total += np.float64(cheapest)
            if moves:
                _step_workload(a, gangs, pace[w], point, w, cost, cells, loads)
    return total, loads
