"""Work without GPUs, where more are asked than there are, on the way to a data-placement plan and after it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.core.wording import NOTICED, noticed
from mast_opt.problems.data_placement.migration.workload_moves import Cell, todays_cells
from mast_opt.problems.data_placement.plan import Plan
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
    found = (
        (*(int(column[n]) for column in (work, region, kind)), float(asked[n]) / MILLI, amount)
        for n, amount in zip(order.tolist(), missing.tolist(), strict=True)
        if amount >= NOTICED
    )
    return _rows(p, found, {})


def _rows(
    p: DataPlacement, found: Iterable[tuple[int, int, int, float, float]], since: Mapping["_Key", int]
) -> tuple[Waiting, ...]:
    """Rows of (workload, region, type, GPUs that it asks for, GPUs of these that it does not get)."""
    rows = (
        Waiting(
            *(p.workloads.labels[w], p.tiers[p.workloads.tier[w]], p.regions.labels[r], p.gpu_types[k]),
            *(asked, missing, since.get((w, (r, k)), 0)),
        )
        for w, r, k, asked, missing in found
    )
    return tuple(sorted(rows, key=lambda one: (one.tier, -one.missing, one.what)))


@dataclass(frozen=True)
class Waits:
    """Work without GPUs on the way to a plan."""

    waiting: tuple[Waiting, ...]
    """The most important first, once the plan is carried out."""
    gets: tuple[tuple[tuple[str, str, str], int], ...]
    """((work, region, GPU type), day on which work that waits there at the beginning does so no longer)"""
    starts: tuple[Move, ...]
    """Steps by which such work gets GPUs where it waits, with the wave that frees them."""
    stops: tuple[Move, ...]
    """Steps by which work loses GPUs where it runs to more important work, with the wave in which that comes."""
    idle: frozenset[int]
    """Positions of the steps of work that has no GPUs where it comes from."""
    over: Mapping[int | None, float]
    """Day on which work moves → GPUs over the supply after it; None for today."""


def waits(problem: DataPlacement, plan: Plan, moves: Sequence[Move], waiting: Sequence[Waiting] | None) -> Waits:
    """Work that waits on the way to a plan, wave by wave: as ``waiting_work``, but GPUs stay with work that has them.

    Args:
        problem: the instance.
        plan: a plan of it.
        moves: the steps to the plan.
        waiting: the work that waits at the beginning; None for that which does today by ``waiting_work``.
    """
    p, way = problem, _Gpus(problem, todays_cells(problem, plan), waiting)
    work = {name: w for w, name in enumerate(p.workloads.labels)}
    since, first = {key: way.since.get(key, 0) for key in way.missing()}, way.missing().keys()
    gets: dict[_Key, int] = {}
    due, lost_to_others = defaultdict[_Key, float](float), defaultdict[_Key, float](float)
    starts, stops, idle = list[Move](), list[Move](), set[int]()
    over: dict[int | None, float] = {None: way.over()}
    for wave, group in groupby(enumerate(moves), key=lambda pair: pair[1].wave):
        of_work = [(at, one) for at, one in group if one.what in work and one.share is not None]
        entered, left = _crossings(p, work, [one for _, one in of_work])
        day = of_work[0][1].day if of_work else None
        stopped = {key for key in left if (waiting is not None or key in lost_to_others) and not way.runs(key)}
        idle |= {at for at, one in of_work if stopped & _crossings(p, work, [one])[1].keys()}
        for key, (more, lost) in way.changed(entered, left).items():
            if way.waits(key) and way.noticed(key, lost):
                stops.append(_waiting(p, wave, "stop", key, lost, day))
                lost_to_others[key] += lost
                due[key], more = 0.0, 0.0
            if way.waits(key):
                since.setdefault(key, day or 0)
                gets.pop(key, None)
            elif since.pop(key, None) is not None:
                gets[key] = day or 0
            due[key] += more
            waits_today = waiting is not None and key in first
            again = due[key] if waits_today else min(due[key], lost_to_others.get(key, 0.0))
            if way.noticed(key, again):
                starts.append(_waiting(p, wave, "start", key, again, day))
                due[key] = 0.0
                lost_to_others[key] -= again
        if of_work:
            over[day or 0] = way.over()
    last = set(plan.run_workload.tolist())
    named = [((p.workloads.labels[w], p.regions.labels[r], p.gpu_types[k]), w, (r, k)) for w, (r, k) in first]
    return Waits(
        _rows(p, ((w, *cell, *amounts) for (w, cell), amounts in way.missing().items()), since),
        tuple((name, gets[w, cell]) for name, w, cell in sorted(named) if (w, cell) in gets and w in last),
        tuple(starts),
        tuple(stops),
        frozenset(idle),
        over,
    )


_Key = tuple[int, Cell]
"""(workload, place)"""


class _Gpus:
    """GPUs, in thousandths, that work asks for and has in each place while others come and go."""

    def __init__(
        self, p: DataPlacement, cells: Mapping[int, Mapping[Cell, int]], waiting: Sequence[Waiting] | None
    ) -> None:
        self.p, self.since = p, dict[_Key, int]()
        self.asked: dict[Cell, dict[int, float]] = defaultdict(dict)
        self.has: dict[Cell, dict[int, float]] = defaultdict(dict)
        for w, runs in sorted(cells.items()):
            for cell, share in runs.items():
                if cell[1] < len(p.gpu_types) and share:
                    self.asked[cell][w] = self._mgpu(w, cell, share)
        if waiting is None:
            for cell in list(self.asked):
                self.has[cell] = self._divided(cell, dict.fromkeys(self.asked[cell], 0.0))
            return
        self.has |= {cell: dict(work) for cell, work in self.asked.items()}
        work, regions = ({name: n for n, name in enumerate(one.labels)} for one in (p.workloads, p.regions))
        for one in waiting:
            w, cell = work[one.what], (regions[one.region], p.gpu_types.index(one.gpu_type))
            self.since[w, cell] = one.day
            self.has[cell][w] -= one.missing * MILLI

    def changed(self, entered: Mapping[_Key, int], left: Mapping[_Key, int]) -> dict[_Key, tuple[float, float]]:
        """Let shares of work enter and leave places; returns what work there has more, without what entered, and what
        it has lost to other work."""
        found: dict[_Key, tuple[float, float]] = {}
        for cell in {cell for _, cell in (*entered, *left)}:
            asked, before = self.asked[cell], dict(self.has[cell])
            for sign, shares in ((1, entered), (-1, left)):
                for (w, at), share in shares.items():
                    if at == cell:
                        asked[w] = asked.get(w, 0.0) + sign * self._mgpu(w, cell, share)
            self.has[cell] = self._divided(cell, before)
            found |= {
                (w, cell): (
                    amount - before.get(w, 0.0) - self._mgpu(w, cell, entered.get((w, cell), 0)),
                    before.get(w, 0.0) - self._mgpu(w, cell, left.get((w, cell), 0)) - amount,
                )
                for w, amount in self.has[cell].items()
            }
        return found

    def over(self) -> float:
        """GPUs that are asked for above the supply."""
        free = ((self.p.regions.supply_mgpu[cell], sum(asked.values())) for cell, asked in self.asked.items())
        return sum(max(float(asked - there), 0.0) for there, asked in free) / MILLI

    def runs(self, key: _Key) -> bool:
        """Whether work has any GPUs in a place."""
        return self.has[key[1]].get(key[0], 0.0) > 0.0

    def waits(self, key: _Key) -> bool:
        """Whether work has too few GPUs in a place."""
        w, cell = key
        return self.noticed(key, self.asked[cell].get(w, 0.0) - self.has[cell].get(w, 0.0))

    def noticed(self, key: _Key, mgpu: float) -> bool:
        """Whether an amount is a GPU, or all that the workload needs where that is less."""
        w, (_, k) = key
        return mgpu >= max(min(MILLI, int(self.p.option_mgpu[w, k])) - 1e-6, 1e-6)

    def missing(self) -> dict[_Key, tuple[float, float]]:
        """Work that waits → GPUs that it asks for, and those that it does not get."""
        keys = [(w, cell) for cell, work in self.asked.items() for w in work]
        return {
            (w, cell): (self.asked[cell][w] / MILLI, (self.asked[cell][w] - self.has[cell][w]) / MILLI)
            for w, cell in keys
            if self.waits((w, cell))
        }

    def _divided(self, cell: Cell, before: Mapping[int, float]) -> dict[int, float]:
        """GPUs of a place for the work there: by tier, then what it has already, then those that were there, the
        largest first."""
        asked, left = self.asked[cell], float(self.p.regions.supply_mgpu[cell])
        if sum(asked.values()) <= left:
            return dict(asked)
        tier, has = self.p.workloads.tier, dict[int, float]()
        order = sorted(asked, key=lambda w: (tier[w], w not in before, -asked[w], w))
        for _, group in groupby(order, key=lambda w: int(tier[w])):
            works = list(group)
            for most in ({w: min(before.get(w, 0.0), asked[w]) for w in works}, asked):
                for w in works:
                    more = max(min(most[w] - has.get(w, 0.0), left), 0.0)
                    has[w], left = has.get(w, 0.0) + more, left - more
        return has

    def _mgpu(self, w: int, cell: Cell, share: int) -> float:
        """Thousandths of a GPU that a share of a workload asks for in a place."""
        return int(self.p.option_mgpu[w, cell[1]]) * share / SHARE


def _crossings(p: DataPlacement, work: Mapping[str, int], moves: Sequence[Move]) -> tuple[Counter[_Key], Counter[_Key]]:
    """Shares of work that enter and leave places with GPUs by these steps, in thousandths."""
    regions, types = ({name: n for n, name in enumerate(labels)} for labels in (p.regions.labels, p.gpu_types))
    entered: Counter[_Key] = Counter()
    left: Counter[_Key] = Counter()
    for one in moves:
        share, kind = round((one.share or 0.0) * SHARE), one.from_type if one.target else one.gpu_type
        if one.source is not None and kind is not None:
            left[work[one.what], (regions[one.source], types[kind])] += share
        if one.target is not None and one.gpu_type is not None:
            entered[work[one.what], (regions[one.target], types[one.gpu_type])] += share
    return entered, left


def stops_first(moves: Sequence[Move], marked: Sequence[Move]) -> list[Move]:
    """The steps with work that stops in the wave before the first step of its day that takes its place.

    Args:
        moves: steps to a plan.
        marked: the same, of which those of work that gets no GPUs where it goes are stops.
    """
    placed = []
    for one, mark in zip(moves, marked, strict=True):
        place = one.source, one.from_type
        taken = [other.wave for other in marked if other.day == one.day and (other.target, other.gpu_type) == place]
        stops = mark.action == "stop" and one.target is not None and min(taken, default=one.wave) < one.wave
        placed.append(((min(taken), -1) if stops else (one.wave, 0), one))
    return _in_waves(placed)


def with_waits(moves: Sequence[Move], found: Waits) -> list[Move]:
    """The steps with those by which work stops for others, in the wave before, and starts where it waits, after the
    deletions of the wave after the one that frees its GPUs; in a wave of their own where that one is another day's."""
    days = {one.wave: one.day for one in moves}
    after = ((one.wave + 1, 0) if days.get(one.wave + 1) == one.day else (one.wave, 1) for one in found.starts)
    placed = [*zip(after, found.starts, strict=True), *(((one.wave, -1), one) for one in found.stops)]
    return _in_waves([*placed, *(((one.wave, 0), one) for one in moves)])


def over_after(moves: Sequence[Move], found: Waits) -> tuple[OverAfter, ...]:
    """GPUs over the supply today and after each day of these steps; nothing where there are none at any time."""
    days, over = sorted({one.day for one in moves if one.day is not None}), found.over[None]
    rows = [OverAfter(None, 0, over)]
    for day in days:
        over = found.over.get(day, over)
        rows.append(OverAfter(day, sum(one.day == day for one in moves), over))
    return tuple(rows) if days and any(noticed(one.gpus, "gpus") for one in rows) else ()


def _in_waves(placed: Sequence[tuple[tuple[int, int], Move]]) -> list[Move]:
    """Steps in order with their waves renumbered, deletions first."""
    waves = {wave: n for n, wave in enumerate(sorted({wave for wave, _ in placed}))}
    ordered = sorted(placed, key=lambda pair: (pair[0], pair[1].action != "delete"))
    return [replace(one, wave=waves[wave]) for wave, one in ordered]


def _waiting(p: DataPlacement, wave: int, action: str, key: _Key, mgpu: float, day: int | None) -> Move:
    """Step by which work stops or starts where it waits, in the wave of what takes or frees its GPUs."""
    w, (r, k) = key
    name, region, share = p.workloads.labels[w], p.regions.labels[r], mgpu / int(p.option_mgpu[w, k])
    amount, kind = mgpu / MILLI, p.gpu_types[k]
    missing = amount if action == "stop" else 0.0
    return Move(
        *(wave, action, name, region, region, amount, day),
        unit="GPUs",
        share=share,
        gpu_type=kind,
        from_type=kind,
        gpus_missing=missing,
    )
