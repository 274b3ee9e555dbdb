"""Remainders of workloads that are too small to be moved: shares in thousandths leave hundredths of a GPU elsewhere."""

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MILLI
from mast_opt.problems.data_placement.migration.workload_moves import Cell, matched, todays_cells
from mast_opt.problems.data_placement.plan import Plan, gpu_demand
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.data_placement.verification.verifier import verify

LEAST_MGPU = 1 * MILLI
LEAST_OF_GPUS, LEAST_OF_CORES = SHARE // 10, SHARE // 100
"""Shares from which on a part is moved although it has less than a GPU, and of work without GPUs."""
_Change = tuple[int, Cell, Cell, int]
"""(workload, from, to, share)"""
SLACK = 2e-4
"""Relative increase of the objective for which others give way."""
MOST_WORKLOADS, MOST_EXCHANGES = 2_000, 20
"""Most workloads of an instance in which others give way, and for how many of them."""
NOTHING_MGPU = 1e-6
"""Overload that is rounding."""


def without_remainders(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan without parts of work that are too small to be moved; the plan itself where there are none.

    A part is too small below one GPU and a tenth of its workload, or of work without GPUs below a hundredth. One that
    runs in a place of its own joins the largest other part in a place with room; one that goes from a place to another
    where the plan also has the workload stays. Neither adds overload: where a place is full, a share of another split
    workload gives way to another of its places, if the plan stays as good but for ``SLACK``. Work that reads remotely
    is left as it is. On companies 1 to 5 of ``benchmarks/companies.py`` with 13 splittable workloads it leaves 0, 0, 2,
    0 and 0 such parts; programs for other shares left the same.
    """
    plan = _without(problem, plan)
    if problem.objective.lexicographic or len(problem.workloads) > MOST_WORKLOADS:
        return plan
    worth: float | None = None
    for w in _with_small_parts(problem, plan)[:MOST_EXCHANGES]:
        other = _without(problem, plan, w)
        if other is not plan:
            worth, then = verify(problem, plan).objective if worth is None else worth, verify(problem, other)
            if then.ok and then.objective <= worth + SLACK * abs(worth):
                plan = other
    return plan


def _with_small_parts(p: DataPlacement, plan: Plan) -> list[int]:
    """Split workloads with parts that are too small to be moved."""
    split = np.unique(plan.run_workload[plan.run_share < SHARE]).tolist()
    now = todays_cells(p, plan, of=split)
    load = _Load(p, plan, _split(plan, split), now)
    return [w for w in split if load.small_parts(w, load.split[w])]


def _split(plan: Plan, workloads: list[int]) -> dict[int, dict[Cell, int]]:
    """Place → share, of each of these workloads."""
    then: dict[int, dict[Cell, int]] = {w: {} for w in workloads}
    rows = np.isin(plan.run_workload, workloads)
    for w, r, k, share in zip(*(column[rows].tolist() for column in plan.rows("run")), strict=True):
        then[w][r, k] = share
    return then


def _without(problem: DataPlacement, plan: Plan, exchanged: int | None = None) -> Plan:
    """The plan without such parts; of one workload alone where others give way for it."""
    p, away = problem, np.zeros((len(problem.workloads), len(problem.regions)), np.bool_)
    np.logical_or.at(away, p.reads.workload, ~plan.place[p.reads.dataset])
    then: dict[int, dict[Cell, int]] = {}
    for w, r, k, share in zip(*(column.tolist() for column in plan.rows("run")), strict=True):
        then.setdefault(w, {})[r, k] = share
    split = [w for w, cells in then.items() if len(cells) > 1]
    if not split:
        return plan
    local = {w: then[w] for w in split if not any(away[w, r] for r, _ in then[w])}
    load, changed = _Load(p, plan, {} if exchanged is None else local, todays_cells(p, plan, of=split)), False
    for w, cells in local.items() if exchanged is None else [(exchanged, local.get(exchanged, {}))]:
        changed = _joined(p, load, w, cells) | _stayed(p, load, w, load.now.get(w, {}), cells) | changed
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

    def __init__(
        self, problem: DataPlacement, plan: Plan, split: dict[int, dict[Cell, int]], now: dict[int, dict[Cell, int]]
    ) -> None:
        self.p, self.demand, self.split, self.now = problem, gpu_demand(problem, plan), split, now

    def moved(self, workload: int, source: Cell, target: Cell, share: int) -> bool:
        """Move a share of a workload from a cell to another, unless that adds overload in a tier; where the target is
        full, with the least share of another split workload that goes from there."""
        return self._all_moved((workload, source, target, share)) or self._exchanged(workload, source, target, share)

    def _exchanged(self, workload: int, source: Cell, target: Cell, share: int) -> bool:
        """Move a share together with one of another workload that gives way."""
        p, (r, k) = self.p, target
        if k == len(p.gpu_types):
            return False
        free = p.regions.supply_mgpu[r, k] - self.demand[r, k, p.workloads.tier[workload] :].max()
        need = share * int(p.option_mgpu[workload, k]) - SHARE * max(float(free), 0.0)
        for other, cells in self.split.items():
            if other == workload or target not in cells:
                continue
            way = max(int(-(-need // int(p.option_mgpu[other, k]))), 1)
            if small(p, other, target, cells[target] - way):
                continue
            for cell in sorted(cells, key=lambda one: one != source):
                changes = (workload, source, target, share), (other, target, cell, way)
                if cell != target and self._fewer_parts(changes) and self._all_moved(*changes):
                    cells[target] -= way
                    cells[cell] += way
                    return True
        return False

    def _fewer_parts(self, changes: tuple[_Change, ...]) -> bool:
        """Whether workloads have fewer small parts to move once these shares move."""
        before = after = 0
        for workload, source, target, share in changes:
            cells = self.split[workload]
            then = {**cells, source: cells[source] - share, target: cells[target] + share}
            before, after = before + self.small_parts(workload, cells), after + self.small_parts(workload, then)
        return after < before

    def small_parts(self, workload: int, cells: dict[Cell, int]) -> int:
        """Number of a workload's parts that are too small to be moved, and move."""
        pieces = matched(self.now.get(workload, {}), {cell: share for cell, share in cells.items() if share})[1]
        return sum(one.target is not None and small(self.p, workload, one.target, one.share) for one in pieces)

    def _all_moved(self, *changes: _Change) -> bool:
        """Move shares of workloads from cells to others, unless that adds overload in a tier."""
        touched = tuple(dict.fromkeys(cell for _, source, target, _ in changes for cell in (source, target)))
        before, was = self._over(touched), self.demand
        self.demand = self.demand.copy()
        for workload, source, target, share in changes:
            for (r, k), sign in ((source, -1), (target, 1)):
                if k < len(self.p.gpu_types):
                    mgpu = sign * share * int(self.p.option_mgpu[workload, k]) / SHARE
                    self.demand[r, k, self.p.workloads.tier[workload] :] += mgpu
        fits = bool((self._over(touched) <= before + NOTHING_MGPU).all())
        self.demand = self.demand if fits else was
        return fits

    def _over(self, cells: tuple[Cell, ...]) -> NDArray[np.float64]:
        """[P] demand above the supply of these cells, in milli-GPUs."""
        found = np.zeros(self.demand.shape[2])
        for r, k in cells:
            if k < len(self.p.gpu_types):
                found += np.maximum(self.demand[r, k] - self.p.regions.supply_mgpu[r, k], 0)
        return found
