"""Work that has no GPUs once a data-placement plan is carried out, where more are asked than there are."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.core.wording import NOTICED, noticed
from mast_opt.problems.data_placement.migration.workload_moves import Cell, todays_cells
from mast_opt.problems.data_placement.plan import Plan, lacking_gpus
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.kind.migration_plan import Move, OverAfter, Waiting


def waiting_work(problem: DataPlacement, plan: Plan) -> tuple[Waiting, ...]:
    """Work that has fewer GPUs than it asks for, the most important first.

    The GPUs of a region and type go to the tiers in their order; within a tier to work that runs there today, then to
    the work that asks for most.
    """
    p, kinds = problem, len(problem.gpu_types)
    on = plan.run_type < kinds
    work, region, kind, share = (column[on] for column in plan.rows("run"))
    asked, tier, cell = p.option_mgpu[work, kind] * share / SHARE, p.workloads.tier[work], region * kinds + kind
    now = todays_cells(p, plan)
    moves = np.array(
        [(r, k) not in now.get(w, {}) for w, r, k in zip(work.tolist(), region.tolist(), kind.tolist(), strict=True)],
        np.bool_,
    )
    order = np.lexsort((work, -asked, moves, tier, cell))
    before = np.cumsum(asked[order]) - asked[order]
    begins = np.searchsorted(cell[order], cell[order])
    free = p.regions.supply_mgpu[region, kind][order] - (before - before[begins])
    missing = (asked[order] - np.clip(free, 0.0, asked[order])) / MILLI
    found = [
        Waiting(
            p.workloads.labels[work[n]],
            p.tiers[tier[n]],
            p.regions.labels[region[n]],
            p.gpu_types[kind[n]],
            float(asked[n]) / MILLI,
            amount,
        )
        for n, amount in zip(order.tolist(), missing.tolist(), strict=True)
        if amount >= NOTICED
    ]
    return tuple(sorted(found, key=lambda one: (one.tier, -one.missing, one.what)))


def waits(
    problem: DataPlacement, plan: Plan, moves: Sequence[Move]
) -> tuple[Mapping[str, int], tuple[tuple[str, int], ...]]:
    """The days between which work waits on the way to a plan.

    Returns:
        Work that waits once the steps are done → day since which it does, 0 for work that waits today; and the work
        that waits today and then does not, with the day on which it gets its GPUs.
    """
    p, cells = problem, todays_cells(problem, plan)
    last = {one.what for one in waiting_work(p, plan)}
    first = {one.what for one in waiting_work(p, _with_runs(plan, cells))}
    since, before = dict.fromkeys(first & last, 0), first
    gets: dict[str, int] = {}
    for day, then in _replayed(p, plan, moves) if first or last else ():
        now = {one.what for one in waiting_work(p, then)}
        since |= dict.fromkeys(now - before, day)
        gets |= dict.fromkeys((before - now) & first, day)
        before = now
    runs_then = {p.workloads.labels[w] for w in np.unique(plan.run_workload).tolist()}
    return since, tuple((name, day) for name, day in sorted(gets.items()) if name in runs_then - last)


def over_after(problem: DataPlacement, plan: Plan, moves: Sequence[Move]) -> tuple[OverAfter, ...]:
    """GPUs over the supply today, and once the steps of each day on which work moves are done; none without."""
    p = problem
    now = float(lacking_gpus(p, _with_runs(plan, todays_cells(p, plan))).sum())
    by_day = {day: float(lacking_gpus(p, then).sum()) for day, then in _replayed(p, plan, moves)}
    days = sorted({one.day for one in moves if one.day is not None})
    rows, over = [OverAfter(None, 0, now)], now
    for day in days:
        over = by_day.get(day, over)
        rows.append(OverAfter(day, sum(one.day == day for one in moves), over))
    return tuple(rows) if len(rows) > 1 and any(noticed(one.gpus, "gpus") for one in rows) else ()


def _replayed(p: DataPlacement, plan: Plan, moves: Sequence[Move]) -> Iterator[tuple[int, Plan]]:
    """The day of each wave in which work moves, and the plan with the runs of the state after it."""
    cells = todays_cells(p, plan)
    work, regions = ({name: n for n, name in enumerate(one.labels)} for one in (p.workloads, p.regions))
    types = {name: k for k, name in enumerate((*p.gpu_types, None))}
    steps = [one for one in moves if one.what in work and one.share is not None]
    for _, group in groupby(steps, key=lambda one: one.wave):
        wave = list(group)
        for one in wave:
            runs, share = cells[work[one.what]], round((one.share or 0.0) * SHARE)
            for place, kind, sign in (
                (one.source, one.from_type if one.target else one.gpu_type, -1),
                (one.target, one.gpu_type, 1),
            ):
                if place is not None:
                    cell = regions[place], types[kind]
                    runs[cell] = runs.get(cell, 0) + sign * share
        yield wave[0].day or 0, _with_runs(plan, cells)


def _with_runs(plan: Plan, cells: Mapping[int, Mapping[Cell, int]]) -> Plan:
    """The plan with the runs of these places."""
    rows = sorted((w, *cell, share) for w, runs in cells.items() for cell, share in runs.items() if share > 0)
    return plan.with_rows(run=list(np.array(rows, np.int64).reshape(-1, 4).T.copy()))
