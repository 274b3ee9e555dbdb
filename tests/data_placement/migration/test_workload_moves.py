"""The order of a migration, workloads included."""

from __future__ import annotations

import heapq
from dataclasses import replace
from datetime import date
from io import StringIO

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import mast_opt
from mast_opt.planner.analysis.migration_plan import first_steps
from mast_opt.planner.report.change_sections import down_section, moves_section, stops_section
from mast_opt.planner.report.html.content import story
from mast_opt.planner.report.terminal.sections import show_section
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.entities import CurrentRuns
from mast_opt.problems.data_placement.migration.exact_search import least_stops
from mast_opt.problems.data_placement.migration.loads import Loads
from mast_opt.problems.data_placement.migration.planner import steps
from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.plan import filled, today
from mast_opt.problems.kind.migration_plan import Move, Order
from tests.data_placement.migration.handmade import EAST, NONE, TB, WEST, bools, crowd, two_regions
from tests.data_placement.migration.strategies import exchanges, migrations
from tests.data_placement.migrations import replay
from tests.data_placement.workshop import ints
from tests.examples import examples
from tests.instance_rows import DataRows


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


def test_two_workloads_that_change_sides_stop_the_smaller_one() -> None:
    problem, plan = crowd((8, 5))
    problem = replace(problem, regions=replace(problem.regions, supply_mgpu=ints([8000], [5000])))
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert [(stop.part.workload, stop.mgpu, stop.days) for stop in order.stops] == [(1, 5000, 0)]
    assert [(run.workload, run.source is None, run.target is None) for run in order.runs] == [
        (1, False, True),
        (0, False, False),
        (1, True, False),
    ]
    assert order.proven
    answer = mast_opt.steps(problem, plan)
    assert [(one.what, one.gpus, one.days) for one in answer.stopped] == [("w1", 5, 0)]
    rows = [(move.action, move.what, move.source, move.target, move.amount) for move in answer.moves if move.share]
    assert rows == [
        ("stop", "w1", "west", None, 5),
        ("move", "w0", "east", "west", 8),
        ("start", "w1", None, "east", 5),
    ]
    assert answer.relief[0].endswith("running: 5 GPUs must stop for less than a day")
    assert stops_section(answer).rows == (("w1", 1.0, 5.0, 12, 0),)
    shown = moves_section(answer)
    at = [[head.title for head in shown.heads].index(name) for name in ("what", "from", "to")]
    ways = [tuple(row[column] for column in at) for row in shown.rows]
    assert {("w1", "west h100", None), ("w0", "east h100", "west h100"), ("w1", None, "east h100")} <= set(ways)


def test_work_that_changes_its_type_within_a_region_says_so() -> None:
    move = Move(0, "move", "w", "west", "west", 4.0, gpu_type="A100", from_type="h100", share=1.0)
    assert (move.origin, move.destination) == ("west h100", "west A100")
    assert (replace(move, from_type=None).origin, replace(move, gpu_type=None).destination) == (
        *("west no GPU", "west no GPU"),
    )
    copy = Move(0, "copy", "d", "west", "east", 4.0)
    assert (copy.origin, copy.destination) == ("west", "east")


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
    supply = [int(most) // 1000 + slack for most in problem.regions.supply_mgpu[:, 0]]
    problem = replace(problem, regions=replace(problem.regions, supply_mgpu=ints(*([1000 * most] for most in supply))))
    order = steps(problem, plan)
    replay(problem, plan, order)
    stopped = sum(stop.mgpu for stop in order.stops) // 1000
    least = least_stopped(tuple(gpus), supply)
    assert stopped == least if order.proven else stopped >= least
    assert order.proven or len(gpus) > 4


def test_a_stop_lasts_as_long_as_its_data_needs() -> None:
    """a and b change places, all room is taken, and a has another replica: w stops, a goes, b comes, a comes back."""
    problem, plan = two_regions()
    problem = problem.with_columns(
        {
            "regions.labels": ("east", "west", "north"),
            "regions.storage_mb": ints(10, 10, 10) * TB,
            "regions.headroom_milli": ints(0, 0, 0),
            "regions.storage_price_micro": ints(0, 0, 0),
            "regions.copy_price_micro": ints(0, 0, 0),
            "regions.gpu_price_micro": ints(0, 0, 0)[:, None],
            "regions.cpu_mcores": ints(1, 1, 1) * 10_000,
            "regions.ingress_mb_per_day": ints(0, 5 * TB, 0),
            "regions.ingress_limited": np.array([False, True, False]),
            "regions.supply_mgpu": ints([8_000], [8_000], [8_000]),
            "datasets.size_mb": ints(10 * TB, 10 * TB),
            "datasets.copies_max": ints(3, 3),
            "datasets.stored": bools((1, 0, 1), (0, 1, 0)),
            "datasets.pinned": np.zeros((2, 3), np.bool_),
            "datasets.forbidden": bools((0, 0, 0), (0, 0, 1)),
            "datasets.residency": np.zeros((2, 3), np.bool_),
            "workloads.pinned": np.zeros((1, 3), np.bool_),
            "workloads.forbidden": np.zeros((1, 3), np.bool_),
            "reads.workload": ints(0),
            "reads.dataset": ints(0),
            "reads.mb_per_day": ints(TB),
            "links": None,
        }
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
    unknown = problem.with_columns(
        {
            "current_runs.workload": NONE.copy(),
            "current_runs.region": NONE.copy(),
            "current_runs.gpu_type": NONE.copy(),
            "current_runs.share": NONE.copy(),
        }
    )
    order = steps(unknown, plan)
    replay(unknown, plan, order)
    assert [(run.source, run.target, run.share) for run in order.runs] == [(None, (WEST, 0), 1000)]
    assert order.unknown == (0,)
    assert "today's run of 1 workload is not known, or only in part (w)" in mast_opt.steps(unknown, plan).notes[0]
    partial = replace(problem, current_runs=replace(problem.current_runs, share=ints(400)))
    order = steps(partial, plan)
    replay(partial, plan, order)
    assert [(run.source, run.target, run.share) for run in order.runs] == [
        ((EAST, 0), (WEST, 0), 400),
        (None, (WEST, 0), 600),
    ]
    untyped = replace(problem, current_runs=replace(problem.current_runs, gpu_type=ints(1)))
    assert [run.source for run in steps(untyped, plan).runs] == [(EAST, 0)]


@examples(200)
@given(migrations())
def test_every_row_keeps_every_limit(case: tuple[DataPlacement, Plan]) -> None:
    problem, plan = case
    order = steps(problem, plan)
    replay(problem, plan, order)


@examples(300)
@given(exchanges())
def test_every_row_of_an_exchange_keeps_every_limit(case: tuple[DataPlacement, Plan]) -> None:
    problem, plan = case
    order = steps(problem, plan)
    replay(problem, plan, order)


def congested() -> tuple[DataPlacement, Plan]:
    """rank and spam read 3 TB of clicks a day in west over a link that carries 2; the plan brings clicks to west."""
    builder = DataRows("congested", remote_reads="price", days=5)
    builder.add_region("east", storage_tb=20, cpu_cores=100, gpus={"h100": 8})
    builder.add_region("west", storage_tb=20, cpu_cores=100, gpus={"h100": 8})
    builder.add_link("east", "west", tb_per_day=2).add_link("west", "east", tb_per_day=2)
    builder.add_dataset("clicks", size_tb=5, replicas=["east"])
    for name, gpus, volume in (("rank", 4, 2), ("spam", 1, 1)):
        builder.add_workload(name, tier=0, cpu_cores=1, gpus={"h100": gpus}, reads={"clicks": volume})
        builder.add_current_run(name, "west", gpu_type="h100")
    problem = builder.build()
    tables = mast_opt.to_tables(problem, today(problem))
    tables["placements"] = pl.DataFrame({"dataset": ["clicks"], "region": ["west"]})
    tables["copies"] = pl.DataFrame({"dataset": ["clicks"], "src": ["east"], "dst": ["west"], "share": [1]})
    tables["remote_reads"] = tables["remote_reads"].clear()
    return problem, mast_opt.plan_from_tables(problem, tables)


def test_work_stops_whose_reads_leave_no_room_on_a_link() -> None:
    """Without spam, rank still reads all that the link carries; without rank, spam leaves 1 TB a day."""
    problem, plan = congested()
    assert mast_opt.verify(problem, plan).ok
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert [(problem.workloads.labels[stop.part.workload], stop.mgpu) for stop in order.stops] == [("rank", 4000)]
    assert order.days == 6


def test_what_is_stuck_behind_reads_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, plan = congested()
    monkeypatch.setattr("mast_opt.problems.data_placement.migration.planner._with_stops", lambda stuck: stuck)
    (stuck, *_) = mast_opt.steps(problem, plan).stuck
    assert (stuck.what, stuck.target) == ("clicks", "west")
    assert stuck.reason == "remote reads take all of the links that could bring it"


def test_a_part_of_less_than_a_gpu_is_named_so() -> None:
    copy = Move(0, "copy", "d", "a", "b", 1.0, unit="TB")
    part = Move(0, "move", "search", "a", "b", 0.4, unit="GPUs", share=0.004)
    shown = moves_section(Order((copy, part, replace(part, share=1.0)), unit="TB"), narrow=True)
    amounts = [row[[head.title for head in shown.heads].index("amount")] for row in shown.rows]
    assert amounts == ["1 TB", "below 1 GPU (0.4%)", "0.4 GPUs"]


@pytest.mark.parametrize(("amount", "words"), [(20.35, "20"), (0.33, "0.33"), (48.0, "48")])
def test_gpus_are_ordered_whole_unless_work_takes_a_part_of_one(amount: float, words: str) -> None:
    order = Order((Move(0, "move", "search", "a", "b", amount, unit="GPUs"),), unit="GPUs")
    console = Console(file=StringIO(), width=100)
    show_section(console, moves_section(order), None)
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().splitlines()[-1].split()[-1] == words


def test_work_of_a_lost_region_is_down_from_the_start() -> None:
    """``late`` waits two days for its data, ``soon`` has it, ``never`` is refused; nothing is said to run at home."""
    builder = DataRows("lost", unserved="price", remote_reads="forbid", days=9)
    builder.add_region("home", storage_tb=0, cpu_cores=0, gpus={"a100": 0})
    builder.add_region("away", storage_tb=9, cpu_cores=9, gpus={"a100": 20}, ingress_tb_per_day=1)
    builder.add_region("store", storage_tb=9, cpu_cores=0)
    builder.add_dataset("news", size_tb=1, replicas=["away"])
    builder.add_dataset("logs", size_tb=2, replicas=["store"])
    for name, tier, gpus, data in (("soon", 1, 4, "news"), ("late", 0, 8, "logs"), ("never", 0, 3, "news")):
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": gpus}, reads={data: 1}, current_region="home")
    problem = builder.build()
    problem = problem.with_columns({"workloads.forbidden": bools((1, 0, 0), (1, 0, 0), (1, 1, 1))})
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    order = mast_opt.steps(problem, plan, begin=date(2026, 12, 21))
    assert [(move.action, move.what) for move in order.moves if move.unit == "GPUs"] == [
        ("start", "soon"),
        ("start", "late"),
    ]
    assert [move.source for move in order.moves if move.action == "start"] == [None, None]
    assert [(one.what, one.lost, one.tier, one.gpus, one.day, one.days) for one in order.stopped] == [
        ("late", "home", 0, 8, 0, 1),
        ("soon", "home", 1, 4, 0, 0),
        ("never", "home", 0, 3, 0, None),
    ]
    assert not [note for note in order.notes if "not known" in note]
    assert not stops_section(order).rows
    assert down_section(order).rows == (
        ("late", 0, "home", 8, "2026-12-22", 1, "copies of logs"),
        ("soon", 1, "home", 4, "2026-12-21", 0, None),
        ("never", 0, "home", 3, None, None, None),
    )
    assert "does not start 1 of these again" in down_section(order).note
    first, _ = first_steps(problem, plan, 0)
    assert {one.what for one in first.stopped} == {"late", "soon", "never"}
    done = story(problem, plan).answers[2]
    assert "3 workloads (15 GPUs used) ran in what is lost: 2 of them start again, the last after 1 day." in done.detail


def test_data_of_the_most_important_work_that_is_down_is_copied_first() -> None:
    """1 TB a day: 2 TB for tier 0, then 3 TB for tier 1; without tiers, large datasets go first."""
    builder = DataRows("lost", remote_reads="forbid", days=9)
    builder.add_region("home", storage_tb=0, cpu_cores=0, gpus={"a100": 0})
    builder.add_region("away", storage_tb=9, cpu_cores=9, gpus={"a100": 20}, ingress_tb_per_day=1)
    builder.add_region("store", storage_tb=9, cpu_cores=0)
    for name, tier, size_tb in (("large", 1, 3), ("first", 0, 2)):
        builder.add_dataset(f"data-{name}", size_tb=size_tb, replicas=["store"])
        reads = {f"data-{name}": 1}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": 4}, reads=reads, current_region="home")
    problem = builder.build()
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    assert [(one.what, one.days) for one in mast_opt.steps(problem, plan).stopped] == [("first", 1), ("large", 4)]


def test_steps_to_a_second_plan_begin_once_the_first_is_carried_out() -> None:
    """Two run at once where their data is, over the supply. Work that the first plan refuses is down until the second
    has copied its data, which comes first; then one of the others moves, and the other one has its GPUs."""
    builder = DataRows("lost", unserved="price", remote_reads="forbid", days=9)
    builder.add_region("home", storage_tb=0, cpu_cores=0, gpus={"a100": 0})
    builder.add_region("full", storage_tb=9, cpu_cores=9, gpus={"a100": 4})
    builder.add_region("free", storage_tb=9, cpu_cores=9, gpus={"a100": 20}, ingress_tb_per_day=1)
    builder.add_region("store", storage_tb=9, cpu_cores=0)
    for name, tier, size_tb, where in (("large", 1, 3, "full"), ("first", 0, 2, "full"), ("last", 2, 1, "store")):
        builder.add_dataset(f"data-{name}", size_tb=size_tb, replicas=[where])
        reads = {f"data-{name}": 1}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": 4}, reads=reads, current_region="home")
    problem = builder.build()
    first = mast_opt.solve(problem, "highs", threads=1, limits={"copied_tb": 0}).plan
    then = mast_opt.solve(problem, "highs", threads=1, weights={"overload": 1000}).plan
    assert first is not None
    assert then is not None
    order = mast_opt.steps(problem, first, date(2026, 12, 21), then=[then])
    assert [(move.wave, move.day, move.action, move.what, move.target) for move in order.moves] == [
        (0, 0, "start", "first", "full"),
        (0, 0, "wait", "large", "full"),
        (1, 0, "copy", "data-last", "free"),
        (2, 0, "delete", "data-last", None),
        (2, 0, "start", "last", "free"),
        (3, 1, "copy", "data-first", "free"),
        (4, 2, "copy", "data-first", "free"),
        (5, 2, "move", "first", "free"),
        (6, 2, "delete", "data-first", None),
        (6, 2, "start", "large", "full"),
    ]
    assert [(one.what, one.days, one.waits_for) for one in order.stopped] == [
        ("first", 0, ()),
        ("large", 2, ()),
        ("last", 0, ("data-last",)),
    ]
    assert order.notes == (
        "the steps to plan 2 begin with wave 2, 2026-12-21",
        "after deletions one copy is left of data-last (free) and data-first (free)",
    )


def test_work_that_waits_starts_elsewhere_in_a_second_plan_with_the_gpus_that_it_gets_there() -> None:
    """``large`` waits in ``full``, then goes to ``free`` for half of its GPUs, once its data is there."""
    builder = DataRows("lost", remote_reads="forbid", days=9)
    builder.add_region("home", storage_tb=0, cpu_cores=0, gpus={"a100": 0})
    builder.add_region("full", storage_tb=9, cpu_cores=9, gpus={"a100": 4})
    builder.add_region("free", storage_tb=9, cpu_cores=9, gpus={"a100": 2}, ingress_tb_per_day=1)
    for name, tier in (("first", 0), ("large", 1)):
        builder.add_dataset(f"data-{name}", size_tb=2, replicas=["full"])
        reads = {f"data-{name}": 1}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": 4}, reads=reads, current_region="home")
    problem = builder.build()
    place, copied = problem.datasets.stored, bools((0, 1, 0), (0, 1, 1))
    first = filled(problem, place, [np.array(column) for column in ([0, 1], [1, 1], [0, 0], [1000, 1000])])
    then = filled(problem, copied, [np.array(column) for column in ([0, 1], [1, 2], [0, 0], [1000, 1000])])
    order = mast_opt.steps(problem, first, then=[then])
    assert [(one.what, one.days, one.waits_for, one.room_in, one.gpus_missing) for one in order.stopped] == [
        ("first", 0, (), (), 0.0),
        ("large", 1, ("data-large",), (), 2.0),
    ]
    words = story(problem, then, first=first).answers[2].detail
    assert "2 workloads (8 GPUs used) ran in what is lost: 1 of them start again, 1 more with fewer GPUs" in words


def test_work_that_stops_is_counted_once() -> None:
    """``low`` loses its GPUs in two places on one day, to work of tier 0; of those in the second one, half are
    missing today."""
    builder = DataRows("displaced", remote_reads="forbid")
    for region, gpus in (("one", 4), ("two", 2), ("three", 8)):
        builder.add_region(region, storage_tb=9, cpu_cores=9, gpus={"a100": gpus})
    for name, tier in (("low", 2), ("high", 0), ("higher", 0)):
        builder.add_dataset(f"data-{name}", size_tb=1, replicas=["one", "two", "three"])
        needs = {"a100": 8 if name == "low" else 4}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus=needs, reads={f"data-{name}": 1}, splittable=True)
    problem = builder.build()
    now = [np.array(column) for column in ([0, 0, 1, 2], [0, 1, 2, 2], [0, 0, 0, 0], [500, 500, 1000, 1000])]
    problem = replace(problem, current_runs=CurrentRuns(*now))
    runs = [np.array(column) for column in ([0, 0, 1, 2], [0, 1, 0, 1], [0, 0, 0, 0], [500, 500, 1000, 1000])]
    plan = filled(problem, problem.datasets.stored, runs)
    (stop,) = mast_opt.steps(problem, plan).stopped
    assert (stop.what, stop.share, stop.gpus, stop.gpus_missing, stop.days) == ("low", 0.75, 6.0, 6.0, None)
    words = story(problem, plan).answers[2].detail
    assert "1 workload must stop; no plan has the GPUs back for 1 of them." in words


def test_work_that_loses_its_gpus_stops_before_they_are_taken() -> None:
    """``low`` runs in ``full``; ``high``, which is more important, moves there and takes half of its GPUs."""
    builder = DataRows("displaced", remote_reads="forbid")
    for region in ("full", "free"):
        builder.add_region(region, storage_tb=9, cpu_cores=9, gpus={"a100": 8})
    for name, tier, gpus, where in (("low", 2, 8, "full"), ("high", 0, 4, "free")):
        builder.add_dataset(f"data-{name}", size_tb=1, replicas=["full", "free"])
        reads = {f"data-{name}": 1}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": gpus}, reads=reads, current_region=where)
    problem = builder.build()
    runs = [np.array(column) for column in ([0, 1], [0, 0], [0, 0], [1000, 1000])]
    order = mast_opt.steps(problem, filled(problem, problem.datasets.stored, runs))
    assert [(move.action, move.what, move.origin, move.destination, move.wave) for move in order.moves] == [
        ("stop", "low", "full a100", "waits: full a100", 0),
        ("move", "high", "free a100", "full a100", 1),
    ]
    (stop,) = order.stopped
    assert (stop.what, stop.share, stop.gpus, stop.gpus_missing, stop.day, stop.days) == ("low", 0.5, 4.0, 4.0, 0, None)
    part, _ = first_steps(problem, filled(problem, problem.datasets.stored, runs), 1)
    assert [move.what for move in part.moves] == ["low"]


def test_work_enters_a_place_only_where_it_gets_its_gpus() -> None:
    """``early`` and ``late`` ask for 8 of 4 GPUs in ``full``. ``next`` enters when both have left, not just one of
    them; ``top``, which is more important, need not wait."""
    builder = DataRows("overload", remote_reads="forbid", days=9)
    builder.add_region("full", storage_tb=9, cpu_cores=9, gpus={"a100": 4})
    builder.add_region("free", storage_tb=9, cpu_cores=9, gpus={"a100": 16}, ingress_tb_per_day=1)
    for name, tier, gpus, region, held in (
        ("early", 1, 4, "full", ["full", "free"]),
        ("late", 1, 4, "full", ["full"]),
        ("next", 1, 3, "free", ["full", "free"]),
        ("top", 0, 1, "free", ["full", "free"]),
    ):
        builder.add_dataset(f"data-{name}", size_tb=2, replicas=held)
        reads = {f"data-{name}": 1}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": gpus}, reads=reads, current_region=region)
    problem = builder.build()
    plan = filled(
        problem, np.ones((4, 2), np.bool_), [ints(0, 1, 2, 3), ints(1, 1, 0, 0), ints(0, 0, 0, 0), ints(*[1000] * 4)]
    )
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert [(problem.workloads.labels[run.workload], run.day) for run in order.runs] == [
        ("early", 0),
        ("top", 0),
        ("late", 1),
        ("next", 1),
    ]
    found = least_stops(Moving(problem, plan), Loads(Moving(problem, plan)), hops=False)
    assert found.ops is not None
    entered = [problem.workloads.labels[op.at] for op in found.ops if op.kind == "enter"]
    assert entered.index("late") < entered.index("next")
