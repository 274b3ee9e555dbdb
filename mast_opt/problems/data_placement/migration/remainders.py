"""Remainders of workloads that are too small to be moved: shares in thousandths leave hundredths of a GPU elsewhere."""

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.core.wording import noticed
from mast_opt.problems.data_placement.migration.workload_moves import Cell, matched, todays_cells
from mast_opt.problems.data_placement.plan import Plan, gpu_demand
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement

LEAST_MGPU = 1 * MILLI
LEAST_OF_GPUS, LEAST_OF_CORES = SHARE // 10, SHARE // 100
"""Shares from which on a part is moved although it has less than a GPU, and of work without GPUs."""


def without_remainders(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan without parts of work that are too small to be moved; the plan itself where there are none.

    A part is too small below one GPU and a tenth of its workload, or of work without GPUs below a hundredth. One that
    runs in a place of its own joins the largest other part in a place with room; one that goes from a place to another
    where the plan also has the workload stays. Neither adds overload that is shown. Work that reads remotely is left as
    it is. On companies 1 to 5 of ``benchmarks/companies.py`` with 13 splittable workloads it leaves 0, 0, 2, 0 and 0
    such parts; programs for other shares left the same.
    """
    p, away = problem, np.zeros((len(problem.workloads), len(problem.regions)), np.bool_)
    np.logical_or.at(away, p.reads.workload, ~plan.place[p.reads.dataset])
    then: dict[int, dict[Cell, int]] = {}
    for w, r, k, share in zip(*(column.tolist() for column in plan.rows("run")), strict=True):
        then.setdefault(w, {})[r, k] = share
    split = [w for w, cells in then.items() if len(cells) > 1]
    if not split:
        return plan
    now, changed, load = todays_cells(p, plan, of=split), False, _Load(p, plan)
    for w in split:
        cells = then[w]
        if not any(away[w, r] for r, _ in cells):
            changed = _joined(p, load, w, cells) | _stayed(p, load, w, now.get(w, {}), cells) | changed
    if not changed:
        return plan
    rows = sorted((w, *cell, share) for w, cells in then.items() for cell, share in cells.items() if share)
    return plan.with_rows(run=list(np.array(rows, np.int64).reshape(-1, 4).T.copy()))


def _joined(p: DataPlacement, load: "_Load", workload: int, cells: dict[Cell, int]) -> bool:
    """Let small parts of a workload join larger ones; returns whether any did."""
    parts = len(cells)
    for cell in [cell for cell, share in cells.items() if small(p, workload, cell, share)]:
        others = sorted((other for other in cells if other != cell), key=lambda one: (-cells[one], one))
        best = next((other for other in others if load.moved(workload, cell, other, cells[cell])), None)
        if best is not None:
            cells[best] += cells.pop(cell)
    return len(cells) < parts


def _stayed(p: DataPlacement, load: "_Load", workload: int, now: dict[Cell, int], cells: dict[Cell, int]) -> bool:
    """Let small parts of a workload stay that would go from one of its places to another; returns whether any did."""
    before = dict(cells)
    for piece in matched(now, cells)[1]:
        source, target, share = piece.source, piece.target, piece.share
        if source is None or target is None or source not in cells or not small(p, workload, target, share):
            continue
        if load.moved(workload, target, source, share):
            cells[source] += share
            cells[target] -= share
    return cells != before


def small(p: DataPlacement, workload: int, cell: Cell, share: int) -> bool:
    """Whether a part of a workload is too small to be moved."""
    if cell[1] == len(p.gpu_types):
        return share < LEAST_OF_CORES
    return share < LEAST_OF_GPUS and int(p.option_mgpu[workload, cell[1]]) * share < LEAST_MGPU * SHARE


class _Load:
    """GPU demand of a plan while parts of work change place."""

    def __init__(self, problem: DataPlacement, plan: Plan) -> None:
        self.p, self.demand = problem, gpu_demand(problem, plan)

    def moved(self, workload: int, source: Cell, target: Cell, share: int) -> bool:
        """Move a share of a workload from a cell to another, unless that adds overload in a tier, as it is shown."""
        before, was = self._over((source, target)), self.demand
        self.demand = self.demand.copy()
        for (r, k), sign in ((source, -1), (target, 1)):
            if k < len(self.p.gpu_types):
                mgpu = sign * share * int(self.p.option_mgpu[workload, k]) / SHARE
                self.demand[r, k, self.p.workloads.tier[workload] :] += mgpu
        fits = all(now <= then for now, then in zip(self._over((source, target)), before, strict=True))
        self.demand = self.demand if fits else was
        return fits

    def _over(self, cells: tuple[Cell, ...]) -> list[float]:
        """GPUs above the supply of these cells by tier, as they are shown."""
        found = np.zeros(self.demand.shape[2])
        for r, k in cells:
            if k < len(self.p.gpu_types):
                found += np.maximum(self.demand[r, k] - self.p.regions.supply_mgpu[r, k], 0)
        return [noticed(gpus, "gpus") for gpus in (found / MILLI).tolist()]
