"""The order of a migration, workloads included."""

from __future__ import annotations

import heapq
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.data_placement import DataPlacement, Links, Plan
from mast_opt.data_placement.formulation.formulation import base
from mast_opt.data_placement.migration.planner import steps
from mast_opt.data_placement.problem import TERMS
from mast_opt.data_placement.verification.verifier import verify
from mast_opt.kind.header import Objective
from mast_opt.report.terminal.diff_and_migration import stops_section
from tests.data_placement.migrations import replay
from tests.data_placement.strategies import problems
from tests.data_placement.support import examples, proven
from tests.data_placement.workshop import ints

TB = 1_000_000
EAST, WEST = 0, 1
NONE = np.zeros(0, np.int64)


def bools(*rows: tuple[int, ...]) -> np.ndarray:
    return np.array(rows, np.bool_)


def two_regions() -> tuple[DataPlacement, Plan]:
    """w reads a (1 TB) and b (100 TB), both only in east; no remote reads; 10 TB a day; the plan moves w to west."""
    problem = DataPlacement(
        name="two-regions",
        regions=("east", "west"),
        gpu_types=("h100",),
        datasets=("a", "b"),
        workloads=("w",),
        apps=("",),
        tiers=(0,),
        storage_mb=ints(200 * TB, 200 * TB),
        headroom_milli=ints(0, 0),
        cpu_mcores=ints(10_000, 10_000),
        ingress_mb_per_day=ints(0, 0),
        ingress_limited=np.zeros(2, np.bool_),
        supply_mgpu=ints([8_000], [8_000]),
        size_mb=ints(TB, 100 * TB),
        copies_min=ints(1, 1),
        copies_max=ints(1, 1),
        stored=bools((1, 0), (1, 0)),
        pinned=np.zeros((2, 2), np.bool_),
        forbidden=np.zeros((2, 2), np.bool_),
        residency=np.zeros((2, 2), np.bool_),
        tier=ints(0),
        cpu_need_mcores=ints(1_000),
        app=ints(0),
        splittable=np.zeros(1, np.bool_),
        output_mb=ints(0),
        work_pinned=np.zeros((1, 2), np.bool_),
        work_forbidden=np.zeros((1, 2), np.bool_),
        option_workload=ints(0),
        option_type=ints(0),
        option_mgpu=ints(8_000),
        read_workload=ints(0, 0),
        read_dataset=ints(0, 1),
        read_mb_per_day=ints(TB, TB),
        current_workload=ints(0),
        current_region=ints(EAST),
        current_type=ints(0),
        current_share=ints(1000),
        quota_region=NONE,
        quota_app=NONE,
        quota_mcores=NONE,
        links=Links(ints(0), ints(1), ints(10 * TB), np.zeros(1)),
        objective=Objective(TERMS),
        remote_reads=False,
        may_refuse=False,
        days=Fraction(20),
    )
    plan = Plan(
        bools((0, 1), (0, 1)),
        *(ints(0), ints(WEST), ints(0), ints(1000)),
        *(ints(0, 1), ints(0, 0), ints(1, 1), ints(1000, 1000)),
        *(NONE.copy() for _ in range(5)),
    )
    return problem, plan


def test_data_stays_until_the_work_that_reads_it_has_moved() -> None:
    order = mast_opt.steps(*two_regions())
    assert not order.stuck
    rows = [(move.action, move.what, move.source, move.target) for move in order.moves]
    moved = rows.index(("move", "w", "east", "west"))
    assert moved < min(n for n, row in enumerate(rows) if row[0] == "delete")
    move = order.moves[moved]
    assert (move.day, move.days, move.amount) == (10, 1, 8)
    last = max(n for n, row in enumerate(rows) if row[0] == "copy")
    assert order.moves[last].wave < move.wave
    assert all(one.wave > move.wave for one in order.moves if one.action == "delete")


def test_the_rows_are_seen_by_the_replay() -> None:
    """A replay that accepts everything proves nothing: without the move, or with a deletion before it, it fails."""
    problem, plan = two_regions()
    order = steps(problem, plan)
    replay(problem, plan, order)
    last = max(step.wave for step in order.steps)
    early = tuple(replace(step, day=0, wave=0) if step.deletes else step for step in order.steps)
    for broken in (
        replace(order, steps=early),
        replace(order, runs=()),
        replace(order, runs=tuple(replace(run, wave=0, day=0) for run in order.runs)),
        replace(order, runs=tuple(replace(run, wave=last) for run in order.runs)),
        replace(order, steps=tuple(replace(step, kb=2 * step.kb) for step in order.steps)),
        replace(order, steps=tuple(replace(step, kb=2 * step.kb, days=step.days // 2) for step in order.steps)),
    ):
        with pytest.raises(AssertionError):
            replay(problem, plan, broken)


def crowd(gpus: tuple[int, ...]) -> tuple[DataPlacement, Plan]:
    """Workloads without data, each in east or west in turn, which all change sides; no GPU is free."""
    problem, plan = two_regions()
    W = len(gpus)
    size = np.array(gpus, np.int64) * 1000
    now = np.arange(W) % 2
    supply = np.array([max(size[now == r].sum(), size[now == 1 - r].sum()) for r in (0, 1)])
    problem = replace(
        problem,
        workloads=tuple(f"w{w}" for w in range(W)),
        cpu_mcores=ints(10**6, 10**6),
        supply_mgpu=supply[:, None],
        tier=np.zeros(W, np.int64),
        cpu_need_mcores=np.zeros(W, np.int64),
        app=np.zeros(W, np.int64),
        splittable=np.zeros(W, np.bool_),
        output_mb=np.zeros(W, np.int64),
        work_pinned=np.zeros((W, 2), np.bool_),
        work_forbidden=np.zeros((W, 2), np.bool_),
        option_workload=np.arange(W),
        option_type=np.zeros(W, np.int64),
        option_mgpu=size,
        read_workload=NONE,
        read_dataset=NONE,
        read_mb_per_day=NONE,
        current_workload=np.arange(W),
        current_region=now,
        current_type=np.zeros(W, np.int64),
        current_share=np.full(W, 1000),
    )
    runs = (np.arange(W), 1 - now, np.zeros(W, np.int64), np.full(W, 1000))
    return problem, replace(
        plan, **dict(zip(("run_workload", "run_region", "run_type", "run_share"), runs, strict=True))
    )


def test_two_workloads_that_change_sides_stop_the_smaller_one() -> None:
    problem, plan = crowd((8, 5))
    problem = replace(problem, supply_mgpu=ints([8000], [5000]))
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert [(stop.part.workload, stop.mgpu, stop.days) for stop in order.stops] == [(1, 5000, 0)]
    assert [(run.workload, run.source is None, run.target is None) for run in order.runs] == [
        (1, False, True),
        (0, False, False),
        (1, True, False),
    ]
    assert order.proven
    told = mast_opt.steps(problem, plan)
    assert [(one.what, one.gpus, one.days) for one in told.stopped] == [("w1", 5, 0)]
    rows = [(move.action, move.what, move.source, move.target, move.amount) for move in told.moves if move.share]
    assert rows == [
        ("stop", "w1", "west", None, 5),
        ("move", "w0", "east", "west", 8),
        ("start", "w1", None, "east", 5),
    ]
    assert told.relief[0].endswith("1 part of workloads must stop for a while (5 GPUs), for less than a day")
    assert stops_section(told).rows == (("w1", 1.0, 5.0, 12, "less than one"),)


def least_stopped(gpus: tuple[int, ...], supply: list[int]) -> int:
    """The fewest GPUs that stop, by enumeration of where each workload is: today, nowhere, or there."""
    now = [w % 2 for w in range(len(gpus))]

    def load(where: tuple[str, ...], r: int) -> int:
        sides = (now[w] if at == "now" else 1 - now[w] if at == "then" else None for w, at in enumerate(where))
        return sum(gpus[w] for w, side in enumerate(sides) if side == r)

    queue = [(0, ("now",) * len(gpus))]
    closed = set()
    while queue:
        cost, where = heapq.heappop(queue)
        if where in closed:
            continue
        closed.add(where)
        if all(at == "then" for at in where):
            return cost
        for w, at in enumerate(where):
            if at == "now":
                heapq.heappush(queue, (cost + gpus[w], (*where[:w], "no", *where[w + 1 :])))
            if at != "then" and load(where, 1 - now[w]) + gpus[w] <= supply[1 - now[w]]:
                heapq.heappush(queue, (cost, (*where[:w], "then", *where[w + 1 :])))
    raise AssertionError("everything may stop, so there is an order")


@examples(60)
@given(st.lists(st.integers(1, 8), min_size=2, max_size=6), st.integers(0, 5))
def test_enumeration_stops_as_little(gpus: list[int], slack: int) -> None:
    problem, plan = crowd(tuple(gpus))
    supply = [int(most) // 1000 + slack for most in problem.supply_mgpu[:, 0]]
    problem = replace(problem, supply_mgpu=ints(*([1000 * most] for most in supply)))
    order = steps(problem, plan)
    replay(problem, plan, order)
    stopped = sum(stop.mgpu for stop in order.stops) // 1000
    least = least_stopped(tuple(gpus), supply)
    assert stopped == least if order.proven else stopped >= least
    assert order.proven or len(gpus) > 4


def test_a_stop_lasts_as_long_as_its_data_needs() -> None:
    """a and b change places, all room is taken, and a has another replica: w stops, a goes, b comes, a comes back."""
    problem, plan = two_regions()
    problem = replace(
        problem,
        regions=("east", "west", "north"),
        storage_mb=ints(10, 10, 10) * TB,
        headroom_milli=ints(0, 0, 0),
        cpu_mcores=ints(1, 1, 1) * 10_000,
        ingress_mb_per_day=ints(0, 5 * TB, 0),
        ingress_limited=np.array([False, True, False]),
        supply_mgpu=ints([8_000], [8_000], [8_000]),
        size_mb=ints(10 * TB, 10 * TB),
        copies_max=ints(3, 3),
        stored=bools((1, 0, 1), (0, 1, 0)),
        pinned=np.zeros((2, 3), np.bool_),
        forbidden=bools((0, 0, 0), (0, 0, 1)),
        residency=np.zeros((2, 3), np.bool_),
        work_pinned=np.zeros((1, 3), np.bool_),
        work_forbidden=np.zeros((1, 3), np.bool_),
        read_workload=ints(0),
        read_dataset=ints(0),
        read_mb_per_day=ints(TB),
        links=None,
    )
    plan = replace(
        plan,
        place=bools((0, 1, 0), (1, 0, 0)),
        copy_dataset=NONE.copy(),
        copy_source=NONE.copy(),
        copy_target=NONE.copy(),
        copy_share=NONE.copy(),
    )
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert [(stop.day, stop.days) for stop in order.stops] == [(0, 1)]
    assert order.days == 2


def test_unknown_and_partial_runs_start() -> None:
    problem, plan = two_regions()
    unknown = replace(problem, **{f"current_{name}": NONE.copy() for name in ("workload", "region", "type", "share")})
    order = steps(unknown, plan)
    replay(unknown, plan, order)
    assert [(run.source, run.target, run.share) for run in order.runs] == [(None, (WEST, 0), 1000)]
    assert order.unknown == (0,)
    assert "today's run of 1 workload is not known, or only in part (w)" in mast_opt.steps(unknown, plan).notes[0]
    partial = replace(problem, current_share=ints(400))
    order = steps(partial, plan)
    replay(partial, plan, order)
    assert [(run.source, run.target, run.share) for run in order.runs] == [
        ((EAST, 0), (WEST, 0), 400),
        (None, (WEST, 0), 600),
    ]
    untyped = replace(problem, current_type=ints(1))
    assert [run.source for run in steps(untyped, plan).runs] == [(EAST, 0)]


@st.composite
def migrations(draw: st.DrawFn) -> tuple[DataPlacement, Plan]:
    """An instance with every feature, and the best plan for the weights that were drawn."""
    problem = draw(problems(regions=3, datasets=4, workloads=5, roomy=draw(st.booleans())))
    program = base(problem)
    result = proven(program.mip)
    assume(result.status is Status.OPTIMAL)
    plan = program.decode(result.x)
    assume(verify(problem, plan).ok)
    return problem, plan


@examples(200)
@given(migrations())
def test_every_row_keeps_every_limit(case: tuple[DataPlacement, Plan]) -> None:
    problem, plan = case
    order = steps(problem, plan)
    replay(problem, plan, order)


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[DataPlacement, Plan]:
    """Work and data between two random states, and regions that have hardly more than each of the two needs."""
    R, D, W = draw(st.integers(2, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    number = lambda low, high, count: ints(*(draw(st.integers(low, high)) for _ in range(count)))  # noqa: E731
    remote = draw(st.booleans())
    size, gpus, cores, output = number(1, 4, D), number(0, 4, W), number(0, 3, W), number(0, 1, W)
    reads = np.array([[draw(st.integers(0, 2)) == 0 for _ in range(D)] for _ in range(W)])
    splittable = np.array([draw(st.integers(0, 3)) == 0 for _ in range(W)])

    def state() -> tuple[np.ndarray, dict[tuple[int, int], int]]:
        held = np.array([[draw(st.integers(0, 2)) == 0 for _ in range(R)] for _ in range(D)])
        held[np.arange(D), number(0, R - 1, D)] = True
        runs: dict[tuple[int, int], int] = {}
        for w in range(W):
            regions = number(0, R - 1, 2 if splittable[w] else 1).tolist()
            for r in regions:
                runs[w, r] = runs.get((w, r), 0) + 1000 // len(regions)
                held[reads[w], r] |= not remote
        return held, runs

    (stored, now), (place, then) = state(), state()
    known = {cell: share for cell, share in now.items() if draw(st.integers(0, 9))}
    slack = draw(st.sampled_from((0, 0, 1, 3)))

    def room(need: np.ndarray, place_need: np.ndarray | int) -> np.ndarray:
        most = []
        for runs, held in ((now, stored), (then, place)):
            used = np.zeros(R, np.int64)
            for (w, r), share in runs.items():
                used[r] += need[w] * share
            most.append(-(-used // 1000) + (size @ held if np.ndim(place_need) else 0))
        return np.maximum(*most) + slack

    def relation(runs: dict[tuple[int, int], int]) -> tuple[np.ndarray, ...]:
        rows = np.array([(w, r, 0, share) for (w, r), share in sorted(runs.items())], np.int64).reshape(-1, 4)
        return tuple(column.copy() for column in rows.T)

    residency = np.zeros_like(stored)
    for i in range(D):
        if not draw(st.integers(0, 4)):
            residency[i] = place[i]
            for w, r in then:
                residency[i, r] |= reads[w, i]
    links = far = None
    copies = [(i, q, r) for i, r in zip(*np.nonzero(place & ~stored)) for q in np.flatnonzero(stored[i])[:1]]
    distant = [
        (w, i, int(np.flatnonzero(place[i])[0]), r, share)
        for (w, r), share in then.items()
        for i in np.flatnonzero(reads[w]).tolist()
        if not place[i, r]
    ]
    if draw(st.booleans()):
        source, target = np.nonzero(~np.eye(R, dtype=bool))
        used = np.zeros((R, R), np.int64)
        for _, _, q, r, share in distant:
            used[q, r] += share
        for i, q, r in copies:
            used[q, r] += 10 * size[i]
        links = Links(
            source, target, 1 + -(-used[source, target] // 1000) + number(0, 2, len(source)), np.zeros(len(source))
        )
        far = np.array(distant, np.int64).reshape(-1, 5).T
    who, what = np.nonzero(reads)
    problem = replace(
        two_regions()[0],
        regions=tuple(f"r{r}" for r in range(R)),
        datasets=tuple(f"d{i}" for i in range(D)),
        workloads=tuple(f"w{w}" for w in range(W)),
        storage_mb=room(output, size),
        headroom_milli=np.zeros(R, np.int64),
        cpu_mcores=room(cores, 0),
        ingress_mb_per_day=number(1, 3, R),
        ingress_limited=np.array([draw(st.integers(0, 2)) == 0 for _ in range(R)]),
        supply_mgpu=number(1, 6, R)[:, None],
        size_mb=size,
        copies_min=np.minimum(number(1, 2, D), place.sum(axis=1)),
        copies_max=np.full(D, R),
        stored=stored,
        pinned=np.zeros_like(stored),
        forbidden=np.zeros_like(stored),
        residency=residency,
        tier=np.zeros(W, np.int64),
        cpu_need_mcores=cores,
        app=np.zeros(W, np.int64),
        splittable=splittable,
        output_mb=output,
        work_pinned=np.zeros((W, R), np.bool_),
        work_forbidden=np.zeros((W, R), np.bool_),
        option_workload=np.arange(W),
        option_type=np.zeros(W, np.int64),
        option_mgpu=gpus,
        read_workload=who,
        read_dataset=what,
        read_mb_per_day=np.ones(len(who), np.int64),
        **dict(
            zip(("current_workload", "current_region", "current_type", "current_share"), relation(known), strict=True)
        ),
        links=links,
        remote_reads=remote,
        days=Fraction(100),
    )
    rows = np.array([(i, q, r, 1000) for i, q, r in copies], np.int64).reshape(-1, 4).T if links is not None else None
    flows = [np.zeros(0, np.int64)] * 9 if rows is None or far is None else [*rows, *far]
    plan = Plan(place, *relation(then), *(column.copy() for column in flows))
    assume(verify(problem, plan).ok)
    return problem, plan


@examples(300)
@given(exchanges())
def test_every_row_of_an_exchange_keeps_every_limit(case: tuple[DataPlacement, Plan]) -> None:
    problem, plan = case
    order = steps(problem, plan)
    replay(problem, plan, order)
