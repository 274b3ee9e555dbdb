"""GPUs over the supply day by day on the way to a data-placement plan."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from mast_opt.core.wording import noticed
from mast_opt.problems.data_placement.migration.workload_moves import Cell, todays_cells
from mast_opt.problems.data_placement.plan import Plan, lacking_gpus
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.kind.migration_plan import Move, OverAfter


def over_after(
    problem: DataPlacement, plan: Plan, moves: Sequence[Move], others: Sequence[Move]
) -> tuple[OverAfter, ...]:
    """GPUs over the supply today, and once the steps of each day on which work moves are done; none without. The
    others, stops and starts of waiting work, are steps of their day and change nothing."""
    p = problem
    now = float(lacking_gpus(p, _with_runs(plan, todays_cells(p, plan))).sum())
    by_day = {day: float(lacking_gpus(p, then).sum()) for day, then in _replayed(p, plan, moves)}
    days = sorted({one.day for one in moves if one.day is not None})
    rows, over = [OverAfter(None, 0, now)], now
    for day in days:
        over = by_day.get(day, over)
        rows.append(OverAfter(day, sum(one.day == day for one in (*moves, *others)), over))
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
