"""First stage after a loss: running work that would only wait elsewhere, or read remotely, stays where it is."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.units import MILLI
from mast_opt.core.wording import NOTICED
from mast_opt.problems.data_placement.migration.remainders import small
from mast_opt.problems.data_placement.migration.waiting_work import waiting_work
from mast_opt.problems.data_placement.migration.workload_moves import Cell, todays_cells
from mast_opt.problems.data_placement.plan import Plan, gpu_demand, possible_remote
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.data_placement.verification.verifier import verify


def kept_runs(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan with work back where it runs today that would wait for GPUs or read remotely where the plan moves it.

    All of it goes back, or the part for which GPUs are free, unless that breaks a limit or some work of its tier or a
    more important one gets fewer GPUs.
    """
    p, now, best = problem, todays_cells(problem, plan), _missing(problem, plan)
    positions = {name: w for w, name in enumerate(p.workloads.labels)}
    idle = [positions[one.what] for one in waiting_work(p, plan)]
    for w in dict.fromkeys([*idle, *plan.remote_workload.tolist()]):
        then = _cells(plan, w)
        if w not in now or sum(now[w].values()) != SHARE or then == now[w]:
            continue
        for cells in (now[w], _filled(p, plan, w, now[w], then)):
            other = _with(p, plan, w, cells)
            missing = _missing(p, other)
            if cells != then and (missing <= best + NOTICED).all() and verify(p, other).ok:
                plan, best = other, missing
                break
    return _without_crumbs(p, plan)


def kept_replicas(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan with the replicas of today that it deletes, as far as they have room, those first whose datasets have
    fewest; the plan itself where that breaks a limit."""
    p, place = problem, plan.place.copy()
    outputs = p.workloads.output_mb[plan.run_workload] * plan.run_share
    used = np.array([outputs[plan.run_region == r].sum() for r in range(len(p.regions))])
    room = SHARE * (p.usable_storage_mb - p.datasets.size_mb @ place) - used
    copies = place.sum(axis=1)
    deleted = np.argwhere(p.datasets.stored & ~place & ~p.closed)
    for i, r in sorted(deleted.tolist(), key=lambda pair: (copies[pair[0]], p.datasets.size_mb[pair[0]], *pair)):
        if copies[i] < p.datasets.copies_max[i] and SHARE * p.datasets.size_mb[i] <= room[r]:
            place[i, r] = True
            copies[i] += 1
            room[r] -= SHARE * p.datasets.size_mb[i]
    if (place == plan.place).all():
        return plan
    far = ~place[plan.remote_dataset, plan.remote_target]
    kept = plan.with_rows(remote=[column[far] for column in plan.rows("remote")])
    kept = replace(kept, place=place)
    return kept if verify(p, kept).ok else plan


def _without_crumbs(p: DataPlacement, plan: Plan) -> Plan:
    """The plan with parts of work that are too small to be moved in the largest other part, also over the supply by
    less than a GPU, which a first stage may be; those that another limit keeps apart stay."""
    best = _missing(p, plan)
    parts = np.bincount(plan.run_workload, minlength=len(p.workloads))
    for w in np.flatnonzero(parts > 1).tolist():
        cells = _cells(plan, w)
        for cell in [cell for cell, share in cells.items() if small(p, w, cell, share)]:
            for other in sorted((one for one in cells if one != cell), key=lambda one: (-cells[one], one)):
                joined = {**cells, other: cells[other] + cells[cell]}
                del joined[cell]
                then = _with(p, plan, w, joined)
                if (_missing(p, then) < best + 1).all() and verify(p, then).ok:
                    plan, cells = then, joined
                    break
    return plan


def _cells(plan: Plan, w: int) -> dict[Cell, int]:
    """Place → share of a workload in a plan."""
    rows = plan.run_workload == w
    columns = (column[rows].tolist() for column in plan.rows("run")[1:])
    return {(r, k): share for r, k, share in zip(*columns, strict=True)}


def _filled(
    p: DataPlacement, plan: Plan, w: int, now: Mapping[Cell, int], then: Mapping[Cell, int]
) -> Mapping[Cell, int]:
    """The places of a workload with as much of it where it runs today as has free GPUs, if it may be split."""
    cells, demand = dict(then), gpu_demand(p, plan)[:, :, -1]
    for (r, k), share in now.items() if p.workloads.splittable[w] else ():
        if k == len(p.gpu_types):
            continue
        need = int(p.option_mgpu[w, k])
        room = int(max(float(p.regions.supply_mgpu[r, k] - demand[r, k]), 0.0) * SHARE // need)
        for other in [cell for cell in cells if cell not in now]:
            part = min(room, share - cells.get((r, k), 0), cells[other])
            if part * need >= MILLI * SHARE:
                cells[r, k] = cells.get((r, k), 0) + part
                cells[other] -= part
                room -= part
    return {cell: share for cell, share in cells.items() if share}


def _with(p: DataPlacement, plan: Plan, w: int, cells: Mapping[Cell, int]) -> Plan:
    """The plan with a workload in these places, which reads remotely what they do not hold."""
    others = plan.run_workload != w
    mine = np.array(sorted((w, *cell, share) for cell, share in cells.items()), np.int64).T
    kept = [np.concatenate([a[others], b]) for a, b in zip(plan.rows("run"), mine, strict=True)]
    remote = [column[plan.remote_workload != w] for column in plan.rows("remote")]
    joined = [np.concatenate([a, b]) for a, b in zip(remote, possible_remote(p, plan.place, tuple(mine)), strict=True)]
    return plan.with_rows(
        run=[column[np.lexsort(kept[2::-1])] for column in kept],
        remote=[column[np.lexsort(joined[3::-1])] for column in joined],
    )


def _missing(p: DataPlacement, plan: Plan) -> FloatArray:
    """[P] GPUs that work of each tier and of more important ones does not get, by the fewest with which it can run."""
    positions, found = {name: w for w, name in enumerate(p.workloads.labels)}, np.zeros(len(p.tiers))
    for one in waiting_work(p, plan):
        w = positions[one.what]
        whole = int(p.option_mgpu[w, p.gpu_types.index(one.gpu_type)])
        found[p.workloads.tier[w]] += one.missing * int(p.fewest_mgpu[w]) / whole
    return np.asarray(found.cumsum())
