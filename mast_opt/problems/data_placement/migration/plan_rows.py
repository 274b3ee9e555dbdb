"""Migration steps of a data-placement plan as rows: labels and words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from mast_opt.core.units import MB_PER_TB, MICRO, MILLI
from mast_opt.core.wording import RESTORE, counted, in_gpus, listed, named
from mast_opt.problems.data_placement.migration.lateness import lateness
from mast_opt.problems.data_placement.migration.planner import Steps, Stop, steps
from mast_opt.problems.data_placement.migration.remote_rows import remote_reads
from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.migration.steps import RunStep, Step
from mast_opt.problems.data_placement.migration.waiting_work import Waits, over_after, stops_first, waits, with_waits
from mast_opt.problems.data_placement.migration.workload_moves import todays_cells
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.prices import copies_usd, link_prices
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement
from mast_opt.problems.kind.migration_plan import Got, Move, Order, Stopped, Stuck, Waiting

MOST_NAMES = 5
"""Names in a sentence."""

Missing = Mapping[tuple[str, str | None, str | None], float]
"""(work, region, GPU type) → part of the GPUs that it asks for there, and does not get."""


def migration_plan(problem: DataPlacement, plan: Plan, waiting: Sequence[Waiting] | None = None) -> Order:
    """Deletions, moves of work and copies from today to the plan, in TB, GPUs and days; in this order in each wave, and
    each by its label.

    Args:
        problem: the instance.
        plan: a plan of it.
        waiting: the work that waits today, if that is known; its starts are steps then.
    """
    p, found = problem, steps(problem, plan)
    data = _data_moves(p, found)
    parts = (
        [move for move in data if move.target is None],
        _work_moves(p, found),
        [move for move in data if move.target],
    )
    ordered = (sorted(part, key=lambda move: (move.what, move.target or "")) for part in parts)
    moves = sorted(chain.from_iterable(ordered), key=lambda move: move.wave)
    moves = moves if data or not p.gone.any() else _by_tier(p, moves)
    marked = _marked(moves, waits(p, plan, moves, waiting))
    moves = stops_first(moves, marked)
    way = waits(p, plan, moves, waiting)
    moves = _marked(moves, way)
    moves = with_waits(moves, way)
    stuck = [
        Stuck(
            p.datasets.labels[blocked.dataset],
            p.regions.labels[blocked.region],
            f"{_tb(blocked.missing_mb)} of storage are missing there"
            if blocked.missing_mb
            else "remote reads take all of the links that could bring it"
            if blocked.full
            else "it waits for another dataset, or no region that holds it reaches this one",
        )
        for blocked in found.blocked
    ]
    for part in found.waiting:
        targets = sorted({piece.target[0] for piece in part.pieces if piece.target is not None})
        words = "its data is not there, or what it needs is not free"
        stuck.append(Stuck(p.workloads.labels[part.workload], ", ".join(p.regions.labels[r] for r in targets), words))
    return Order(
        tuple(moves),
        tuple(stuck),
        _relief(problem, found),
        "TB",
        found.proven,
        (*(_stopped(p, stop) for stop in found.stops), *_waiting_stops(moves), *_down(p, plan, found, _missing(way))),
        (*_notes(p, found), *_single_copies(p, found), *_other_sources(p, plan, found)),
        lost=_lost(p),
        late=lateness(p, plan, found),
        waiting=(way.waiting,),
        gets=_gets(p, found, way),
        remote=remote_reads(p, plan, moves),
        over_after=over_after(moves, way),
    )


def _marked(moves: Sequence[Move], way: Waits) -> list[Move]:
    """The steps with the GPUs that work does not get where it goes; work that waits where it is starts elsewhere."""
    missing = _missing(way)
    marked = [_with_missing(one, missing) for one in moves]
    return [
        replace(one, action="start") if one.action == "move" and at in way.idle else one
        for at, one in enumerate(marked)
    ]


def _missing(way: Waits) -> Missing:
    """Parts of the GPUs that work does not get once a plan is carried out."""
    return {(one.what, one.region, one.gpu_type): one.missing / one.gpus for one in way.waiting}


def _with_missing(move: Move, missing: Missing) -> Move:
    """The step of work with the GPUs that it does not get where it goes, from one on; where it gets none, running work
    takes a ``stop``, and other work ``waits``."""
    amount = (move.amount or 0.0) if move.share is not None and move.target else 0.0
    lacks = amount * missing.get((move.what, move.target, move.gpu_type), 0.0)
    if lacks < min(1.0, amount * (1 - 1e-6)) or not lacks:
        return move
    action = {"move": "stop", "start": "wait"}[move.action] if amount * (1 - 1e-6) <= lacks else move.action
    return replace(move, action=action, gpus_missing=lacks)


def _gets(p: DataPlacement, found: Steps, way: Waits) -> tuple[Got, ...]:
    """The work that waits today and gets GPUs, and where; with what is copied there before."""
    gets = []
    for (name, region, gpu_type), day in way.gets:
        starts = [run for run in found.runs if p.workloads.labels[run.workload] == name and run.target]
        starts = [run for run in starts if run.day == day and run.source and _name(p, run.source[0]) == region]
        rooms = [p.regions.labels[run.target[0]] for run in starts if run.target]
        gets.append(Got(name, region, gpu_type, day, rooms[0] if rooms else region, _arriving(p, found, starts)))
    return tuple(gets)


def _waiting_stops(moves: Sequence[Move]) -> list[Stopped]:
    """Rows of the running work that leaves its GPUs and gets none where it goes, or loses them where it is; a row for
    what a workload loses on a day until another one."""
    rows: dict[tuple[str, int, int | None], Stopped] = {}
    for at, one in enumerate(moves):
        if one.action == "stop" and one.target:
            place = one.what, one.target, one.gpu_type
            starts = [
                then.day or 0
                for then in moves[at + 1 :]
                if (then.action == "start" and _place(then) == place)
                or (then.action in ("start", "move") and (then.what, then.source, then.from_type) == place)
            ]
            days = min(starts) - (one.day or 0) if starts else None
            key = one.what, one.day or 0, days
            row = rows.get(key, Stopped(one.what, 0.0, 0.0, *key[1:]))
            share, amount = row.share + (one.share or 0.0), row.gpus + (one.amount or 0.0)
            rows[key] = replace(row, share=share, gpus=amount, gpus_missing=row.gpus_missing + one.gpus_missing)
    return list(rows.values())


def _place(move: Move) -> tuple[str, str | None, str | None]:
    """Work of a migration step, and where it goes."""
    return move.what, move.target, move.gpu_type


def _by_tier(p: DataPlacement, moves: Sequence[Move]) -> list[Move]:
    """The steps of work alone, with no start in an earlier wave than the starts of more important work on its day.

    A start takes room and frees none, so that it may be later within its day. In 30 losses of a region of 6 companies,
    5 of them of ``benchmarks/companies.py``, it puts the 2 late starts of tier 0 first, with no more waves and days.
    """
    tier = dict(zip(p.workloads.labels, p.workloads.tier.tolist(), strict=True))
    starts = [move for move in moves if move.action == "start"]
    later = []
    for move in moves:
        before = (one.wave for one in starts if one.day == move.day and tier[one.what] < tier[move.what])
        wave = max(before, default=0) if move.action == "start" else 0
        later.append(replace(move, wave=max(wave, move.wave)))
    waves = {wave: n for n, wave in enumerate(sorted({move.wave for move in later}))}
    return sorted(
        (replace(move, wave=waves[move.wave]) for move in later),
        key=lambda move: (move.wave, tier[move.what] if move.action == "start" else -1),
    )


def _data_moves(p: DataPlacement, found: Steps) -> list[Move]:
    """Rows of the copies, uploads and deletions of a migration."""
    price, there = link_prices(p), (p.regions.copy_price_micro / MICRO).tolist()
    return [
        Move(
            wave=step.wave,
            action="delete" if step.deletes else "copy" if step.source is not None else "upload",
            what=p.datasets.labels[step.dataset],
            source=p.regions.labels[step.region] if step.deletes else _name(p, step.source),
            target=None if step.deletes else p.regions.labels[step.region],
            amount=None if step.deletes else step.kb / MILLI / MB_PER_TB,
            day=step.day,
            days=step.days,
            hop=step.hop,
            unit="TB",
            usd=None if step.deletes else _tb_of(step) * (there[step.region] + _price(price, step)),
        )
        for step in found.steps
    ]


def _work_moves(p: DataPlacement, found: Steps) -> list[Move]:
    """Rows of the workloads that move, start or stop in a migration."""
    moves = []
    for run in found.runs:
        cell = run.target or run.source
        assert cell is not None
        moves.append(
            Move(
                wave=run.wave,
                action="stop" if run.target is None else "start" if run.source is None else "move",
                what=p.workloads.labels[run.workload],
                source=_name(p, run.source and run.source[0]),
                target=_name(p, run.target and run.target[0]),
                amount=_gpus(p, run),
                day=run.day,
                unit="GPUs",
                share=run.share / SHARE,
                gpu_type=_type(p, cell),
                from_type=_type(p, run.source) if run.source and run.target else None,
            )
        )
    return moves


def _gpus(p: DataPlacement, run: RunStep) -> float:
    """GPUs of work that moves or starts, where it then runs; of work that stops, where it ran."""
    _, kind = run.target or run.source or (0, len(p.gpu_types))
    return int(p.option_mgpu[run.workload, kind]) * run.share / SHARE / MILLI


def _type(p: DataPlacement, cell: tuple[int, int]) -> str | None:
    """GPU type of a place where work runs in a migration; None without GPUs."""
    return p.gpu_types[cell[1]] if cell[1] < len(p.gpu_types) else None


def _stopped(p: DataPlacement, stop: Stop) -> Stopped:
    """Row of a workload that stops for a while in a migration."""
    share = sum(piece.share for piece in stop.part.pieces if piece.source is not None)
    return Stopped(p.workloads.labels[stop.part.workload], share / SHARE, stop.mgpu / MILLI, stop.day, stop.days)


def _down(p: DataPlacement, plan: Plan, found: Steps, missing: Missing) -> list[Stopped]:
    """Rows of the work that ran in regions that are lost, the most important and soonest first."""
    rows, gone, reads = [], _without_copy(p), dict[int, set[int]]()
    for w, i in zip(p.reads.workload.tolist(), p.reads.dataset.tolist(), strict=True):
        if gone[i]:
            reads.setdefault(w, set()).add(i)
    for w, cells in todays_cells(p, plan, lost=True).items():
        lost = {cell: share for cell, share in cells.items() if p.gone[cell[0]]}
        whole = left = sum(lost.values())
        mgpu = sum(int(p.option_mgpu[w, k]) * share for (_, k), share in lost.items())
        where = ", ".join(sorted({p.regions.labels[r] for r, _ in lost}))
        starts = [run for run in found.runs if run.workload == w and run.source is None]
        shares: dict[int | None, int] = {}
        for day, share in [*((run.day, run.share) for run in starts), (None, left)]:
            shares[day] = shares.get(day, 0) + min(share, left)
            left -= min(share, left)
        for day, share in shares.items():
            if share:
                gpus_down = mgpu * share / whole / SHARE / MILLI
                then = [run for run in starts if run.day == day]
                waits_for = _arriving(p, found, then)
                regions = {run.target[0] for run in then if run.target} if day and not waits_for else set()
                room = tuple(p.regions.labels[r] for r in sorted(regions))
                tier = p.tiers[p.workloads.tier[w]]
                name = p.workloads.labels[w]
                asked = [
                    (_gpus(p, run), missing.get((name, _name(p, run.target[0]), _type(p, run.target)), 0.0))
                    for run in then
                    if run.target
                ]
                lacks = sum(amount for amount, _ in asked), sum(amount * part for amount, part in asked)
                lost_data = tuple(p.datasets.labels[i] for i in sorted(reads.get(w, ()))) if day is None else ()
                place = (where, tier, waits_for, room)
                rows.append(Stopped(name, share / SHARE, gpus_down, 0, day, *place, *lacks, lost_data))
    return sorted(rows, key=lambda row: (row.days is None, row.tier, row.days))


def _arriving(p: DataPlacement, found: Steps, starts: Sequence[RunStep]) -> tuple[str, ...]:
    """Datasets that a workload reads and that are copied to where it starts, before it does."""
    come = {
        step.dataset
        for step in found.steps
        for run in starts
        if not step.deletes and run.target and step.region == run.target[0] and step.wave < run.wave
    }
    reads = {i for run in starts for i in p.reads.dataset[p.reads.workload == run.workload].tolist()}
    return tuple(p.datasets.labels[i] for i in sorted(reads & come))


def _notes(p: DataPlacement, found: Steps) -> tuple[str, ...]:
    """Notes of a migration on workloads whose present place is not known."""
    known = np.zeros(len(p.workloads), np.int64)
    np.add.at(known, p.current_runs.workload, p.current_runs.share)
    names = [p.workloads.labels[w] for w in found.unknown if known[w] < SHARE]
    if not names:
        return ()
    some = ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
    number = counted(len(names), "workload")
    return (
        f"today's run of {number} is not known, or only in part ({some}): no replica is kept for it until it starts",
    )


def _single_copies(p: DataPlacement, found: Steps) -> tuple[str, ...]:
    """Note of a migration after a loss on the datasets that deletions leave with one copy, and its region."""
    held = p.datasets.stored.copy()
    for step in found.steps:
        held[step.dataset, step.region] = not step.deletes
    gone = dict.fromkeys(step.dataset for step in found.steps if step.deletes and held[step.dataset].sum() == 1)
    names = [f"{p.datasets.labels[i]} ({p.regions.labels[int(held[i].argmax())]})" for i in gone]
    return (f"after deletions one copy is left of {listed(names)}",) if names and p.gone.any() else ()


def _lost(p: DataPlacement) -> str:
    """Sentences on data of which lost regions leave no copy, and the work that waits for it."""
    gone = _without_copy(p)
    work = np.unique(p.reads.workload[gone[p.reads.dataset]])
    if not work.size:
        return ""
    data = named("dataset", [p.datasets.labels[i] for i in np.flatnonzero(gone).tolist()])
    return (
        f"no copy is left of {data}; {named('workload', [p.workloads.labels[w] for w in work])} cannot run. {RESTORE}"
    )


def _without_copy(p: DataPlacement) -> Bools:
    """[I] datasets of which lost regions leave no copy."""
    return np.asarray(p.closed.all(axis=1) & ~p.datasets.stored.any(axis=1) & p.gone.any())


def _other_sources(p: DataPlacement, plan: Plan, found: Steps) -> tuple[str, ...]:
    """Note of a migration on copies that come from elsewhere than in the plan, and on what that does to their price."""
    planned, price = Moving(p, plan).planned, link_prices(p)
    copies = [step for step in found.steps if not step.deletes and step.source is not None]
    other = [one for one in copies if one.source not in [q for q, _ in planned.get((one.dataset, one.region), ())]]
    relayed = [one for one in other if not p.datasets.stored[one.dataset, one.source]]
    if not price or not other:
        return ()
    paid, planned_usd = sum(_price(price, step) * _tb_of(step) for step in copies), copies_usd(p, plan)
    volumes = (math.fsum(map(_tb_of, relayed)), math.fsum(_tb_of(one) for one in other if one not in relayed))
    why = (
        "come from new replicas",
        "are copied from other regions than in the plan, where that is quicker or what is left",
    )
    words = " and ".join(f"{tb:,.6g} TB {one}" for tb, one in zip(volumes, why, strict=True) if tb)
    instead = f" instead of {planned_usd:,.0f} USD" if abs(paid - planned_usd) >= 1 else ""
    return (f"{words}: over links, copies cost {paid:,.0f} USD{instead}",)


def _price(price: Mapping[tuple[int, int], float], step: Step) -> float:
    """USD a TB over the link of a copy in a migration; 0 for an upload."""
    return 0.0 if step.source is None else price.get((step.source, step.region), 0.0)


def _tb_of(step: Step) -> float:
    """Volume of a copy in a migration, all of its days, TB."""
    return step.kb * step.days / SHARE / MB_PER_TB


def _relief(problem: DataPlacement, found: Steps) -> tuple[str, ...]:
    """Words on what breaks the deadlock, if there is one: the stopovers that were used, and the room that would do
    instead."""
    p = problem
    words = []
    if found.stops:
        mgpu = sum(stop.mgpu for stop in found.stops)
        days = max(stop.days for stop in found.stops)
        how_long = f"for at most {counted(days, 'day')}" if days else "for less than a day"
        work = dict.fromkeys(p.workloads.labels[stop.part.workload] for stop in found.stops)
        words.append(f"no order keeps all of {listed([*work])} running: {in_gpus(mgpu / MILLI)} must stop {how_long}")
    stopovers = {(step.dataset, step.region) for step in found.steps if step.hop and not step.deletes}
    if stopovers:
        names = ", ".join(f"{p.datasets.labels[i]} in {p.regions.labels[r]}" for i, r in sorted(stopovers))
        volume = sum(int(p.datasets.size_mb[i]) for i, _ in stopovers)
        words.append(f"the plan's own moves block one another; stopovers resolve that: {names} ({_tb(volume)})")
    if found.room:
        rooms = " and ".join(f"{_tb(room.mb)} more in {p.regions.labels[room.region]}" for room in found.room)
        words.append(f"temporary room would do {'instead' if stopovers else 'it'}: {rooms}")
    return tuple(words)


def _name(problem: DataPlacement, region: int | None) -> str | None:
    """Name of a region in a migration; None for none."""
    return None if region is None else problem.regions.labels[region]


def _tb(mb: int) -> str:
    """Size of a dataset in words, TB."""
    return f"{mb / MB_PER_TB:,.6g} TB"
