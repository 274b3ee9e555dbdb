"""Costs in dollars of each run and each replica, for whoever decides: formulation, tetris and the default weights.

A price that depends on the workload, its option, the dataset or the region is added here and nowhere else among them.
What crosses links depends on sources too, and is only in ``most_usd``.
"""

from collections.abc import Mapping

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.units import HOURS_A_MONTH, MB_PER_TB, MICRO, MILLI
from mast_opt.problems.data_placement.plan import Plan, read_positions
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement


def run_usd(problem: DataPlacement) -> FloatArray:
    """[O, R] running cost of all of a workload on each option in each region, USD a month."""
    p = problem
    gpu_usd = np.append(p.regions.gpu_price_micro / MICRO, np.zeros((len(p.regions), 1)), axis=1)
    hourly = p.options.mgpu[:, None] / MILLI * gpu_usd.T[p.options.gpu_type]
    output_tb = p.workloads.output_mb[p.options.workload, None] / MB_PER_TB
    return np.asarray(hourly * HOURS_A_MONTH + output_tb * (p.regions.storage_price_micro / MICRO))


def replica_usd(problem: DataPlacement) -> tuple[FloatArray, FloatArray]:
    """[I, R] running cost of a replica, USD a month, and [I, R] migration cost of it, USD: 0 where it is today."""
    p = problem
    size_tb = p.datasets.size_mb[:, None] / MB_PER_TB
    arriving = size_tb * (p.regions.copy_price_micro / MICRO)
    return size_tb * (p.regions.storage_price_micro / MICRO), np.where(p.datasets.stored, 0.0, arriving)


def most_usd(problem: DataPlacement) -> tuple[float, float]:
    """The highest bill of a plan with one replica of each dataset, in USD a month, and in USD once.

    Everything is where it costs most, and all reads and copies cross the most expensive link.
    """
    p = problem
    run = np.zeros(len(p.workloads))
    np.maximum.at(run, p.options.workload, run_usd(p).max(axis=1))
    stored, arriving = (usd.max(axis=1).sum() for usd in replica_usd(p))
    link = 0.0 if p.links is None else p.links.price_usd_per_tb.max(initial=0.0) / MB_PER_TB
    read = link * p.remote_reads * p.reads.mb_per_day.sum() * HOURS_A_MONTH / 24
    return float(run.sum() + stored + read), float(arriving + link * p.datasets.size_mb.sum())


def with_cheapest_sources(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan with each copy from the region that holds the dataset today and has the cheapest link with room for it.

    Large datasets come first; of links at one price, the one that is used least. The plan stays as it is where a copy
    fits no link whole, and where the copies cost no less.
    """
    p = problem
    if p.links is None:
        return plan
    price, most, room = link_prices(p), link_capacity(p), link_room(p, plan)
    chosen: list[tuple[int, int, int]] = []
    stored = p.datasets.stored
    new = np.argwhere(plan.place & ~stored & stored.any(axis=1, keepdims=True)).tolist()
    for i, r in sorted(new, key=lambda pair: (-int(p.datasets.size_mb[pair[0]]), *pair)):
        size = SHARE * int(p.datasets.size_mb[i])
        holders = [q for q in np.flatnonzero(stored[i]).tolist() if size <= room.get((q, r), -1)]
        if not holders:
            return plan
        best = min(holders, key=lambda q: (price[q, r], -room[q, r] / max(most[q, r], 1), q))
        room[best, r] -= size
        chosen.append((i, best, r))
    columns = np.array(sorted(chosen), np.int64).reshape(-1, 3).T
    cheaper = plan.with_rows(copy=(*columns, np.full(len(chosen), SHARE, np.int64)))
    return cheaper if copies_usd(p, cheaper) < copies_usd(p, plan) * (1 - 1e-9) else plan


def link_capacity(problem: DataPlacement) -> dict[tuple[int, int], int]:
    """(source, target) → what the link carries in the days that copies may take, in thousandths of a MB."""
    rates = [] if problem.links is None else problem.links.capacity_mb_per_day.tolist()
    return {end: SHARE * int(mb * problem.days) for end, mb in zip(link_prices(problem), rates, strict=True)}


def link_room(problem: DataPlacement, plan: Plan) -> dict[tuple[int, int], int]:
    """MB a day of ``link_capacity`` that the plan's remote reads leave."""
    room = link_capacity(problem)
    read = read_positions(problem, plan.remote_workload, plan.remote_dataset)
    volume = np.multiply(problem.reads.mb_per_day[read], plan.remote_share, dtype=object) * problem.days
    for q, r, mb in zip(plan.remote_source.tolist(), plan.remote_target.tolist(), volume.tolist(), strict=True):
        room[q, r] = room.get((q, r), 0) - mb
    return room


def link_prices(problem: DataPlacement) -> Mapping[tuple[int, int], float]:
    """(source, target) → USD a TB over the link; none without links."""
    if problem.links is None:
        return {}
    ends = zip(problem.links.source.tolist(), problem.links.target.tolist(), strict=True)
    return dict(zip(ends, problem.links.price_usd_per_tb.tolist(), strict=True))


def copies_usd(problem: DataPlacement, plan: Plan) -> float:
    """USD for the plan's copies over links."""
    price, rows = link_prices(problem), zip(*(column.tolist() for column in plan.rows("copy")), strict=True)
    volume = ((price.get((q, r), 0.0), int(problem.datasets.size_mb[i]) * share) for i, q, r, share in rows)
    return float(sum(usd * kb for usd, kb in volume)) / SHARE / MB_PER_TB
