"""Remainders of workloads that are too small to be moved: shares in thousandths leave hundredths of a GPU elsewhere."""

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MILLI
from mast_opt.problems.data_placement.migration.workload_moves import Cell, matched, todays_cells
from mast_opt.problems.data_placement.plan import Plan, shown_demand
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement

LEAST_MGPU = 1 * MILLI
LEAST_OF_GPUS, LEAST_OF_CORES = SHARE // 10, SHARE // 100
"""Shares from which on a part is moved although it has less than a GPU, and of work without GPUs."""


def without_remainders(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan without parts of work that are too small to be moved; the plan itself where there are none.

    A part is too small below one GPU and a tenth of its workload, or of work without GPUs below a hundredth. One that
    runs in a place of its own joins the largest other part in a place with room; one that goes from a place to another
    where the plan also has the workload stays. Work that reads remotely is left as it is.
    """
    p, away = problem, np.zeros((len(problem.workloads), len(problem.regions)), np.bool_)
    np.logical_or.at(away, p.reads.workload, ~plan.place[p.reads.dataset])
    then: dict[int, dict[Cell, int]] = {}
    for w, r, k, share in zip(*(column.tolist() for column in plan.rows("run")), strict=True):
        then.setdefault(w, {})[r, k] = share
    split = [w for w, cells in then.items() if len(cells) > 1]
    if not split:
        return plan
    now, changed = todays_cells(p, plan, of=split), False
    room = p.regions.supply_mgpu - shown_demand(p, plan)[:, :, -1]
    for w in split:
        cells = then[w]
        if any(away[w, r] for r, _ in cells):
            continue
        for cell in [cell for cell, share in cells.items() if _small(p, w, cell, share)]:
            others = [other for other in cells if other != cell]
            if others:
                share = cells.pop(cell)
                best = max(others, key=lambda other: (_fits(p, room, w, other, share), cells[other], other))
                cells[best] += share
                changed = True
        for piece in matched(now.get(w, {}), cells)[1]:
            if piece.source in cells and piece.target is not None and _small(p, w, piece.target, piece.share):
                cells[piece.source] += piece.share
                cells[piece.target] -= piece.share
                changed = True
    if not changed:
        return plan
    rows = sorted((w, *cell, share) for w, cells in then.items() for cell, share in cells.items() if share)
    return plan.with_rows(run=list(np.array(rows, np.int64).reshape(-1, 4).T.copy()))


def _small(p: DataPlacement, workload: int, cell: Cell, share: int) -> bool:
    """Whether a part of a workload is too small to be moved."""
    if cell[1] == len(p.gpu_types):
        return share < LEAST_OF_CORES
    return share < LEAST_OF_GPUS and int(p.option_mgpu[workload, cell[1]]) * share < LEAST_MGPU * SHARE


def _fits(p: DataPlacement, room: NDArray[np.float64], workload: int, cell: Cell, share: int) -> bool:
    """Whether a part of a workload finds GPUs in a cell."""
    r, k = cell
    return k == len(p.gpu_types) or bool(room[r, k] * SHARE >= int(p.option_mgpu[workload, k]) * share)
