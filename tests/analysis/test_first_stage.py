"""The first stage after the loss of a region: what starts without copies, and the plan from there."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import mast_opt
from mast_opt import Scenario
from mast_opt.core.wording import RESTORE
from mast_opt.planner.analysis import whatif as whatif_module
from mast_opt.planner.report.change_sections import stopped_sections
from mast_opt.planner.report.html.content import report
from mast_opt.planner.report.result_sections import recovery_sections, waiting_sections
from mast_opt.planner.report.terminal.analysis import show_whatif
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.migration.kept_runs import kept_replicas, kept_runs
from mast_opt.problems.data_placement.migration.plan_rows import _by_tier
from mast_opt.problems.data_placement.migration.workload_moves import todays_cells
from mast_opt.problems.data_placement.plan import Plan, filled, today
from mast_opt.problems.kind.migration_plan import Move, Order
from mast_opt.problems.kind.presentation import Section
from tests.instance_rows import DataRows

LOST = Scenario("home is lost", {"lose_regions": ["home"]})


def company() -> DataPlacement:
    """Of work at home, that with a copy elsewhere can run there over the supply at once, or two days later within it
    where its data is copied to; ``gone`` has no other copy."""
    builder = DataRows("company", remote_reads="forbid", days=9)
    builder.add_region("home", storage_tb=9, cpu_cores=9, gpus={"a100": 12})
    builder.add_region("full", storage_tb=9, cpu_cores=9, gpus={"a100": 4})
    builder.add_region("free", storage_tb=9, cpu_cores=9, gpus={"a100": 8}, ingress_tb_per_day=1)
    for name, tier, held in (("first", 0, ["home", "full"]), ("second", 1, ["home", "full"]), ("gone", 0, ["home"])):
        builder.add_dataset(f"data-{name}", size_tb=2, replicas=held)
        reads = {f"data-{name}": 1}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": 4}, reads=reads, current_region="home")
    return builder.build()


def recovered(**changes: object) -> tuple[mast_opt.WhatIf[Any], tuple[Section, ...]]:
    answer = mast_opt.whatif(company(), [Scenario("it", {**LOST.changes, **changes})], solver="highs", threads=1)
    return answer, recovery_sections(answer)


def test_the_gap_of_both_stages_is_that_of_what_a_plan_can_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lost work of ``gone`` costs most of the objective; a gap of the whole would hide missing GPUs."""
    solved, least = whatif_module._solved, list[float]()

    def recording(solve: Any, begin: Any, given: Any, unavoidable: float) -> Any:
        """The solution; keeps the part that no plan can change."""
        least.append(unavoidable)
        return solved(solve, begin, given, unavoidable)

    monkeypatch.setattr(whatif_module, "_solved", recording)
    recovered()
    assert len(least) == 2
    assert min(least) > 0


def test_work_starts_at_once_over_the_supply_and_moves_once_its_data_is_copied() -> None:
    answer, (work, without) = recovered()
    (one,) = answer.outcomes
    assert work.rows == (
        ("first", 0, 4.0, 0, "first stage"),
        ("second", 1, 4.0, 1, "after room in full"),
        ("1 workload", 0, 4.0, None, "data is lost"),
    )
    assert without.rows == (("second", 1, "full", "a100", 4.0, 4.0, None, "day 1", "day 2"),)
    assert "GPUs missing: tier 1 a100: 4 then 0." in without.note
    assert one.first is not None
    assert one.solution.plan is not None
    for plan in (one.first, one.solution.plan):
        assert mast_opt.verify(one.problem, plan).ok
    order = mast_opt.steps(one.problem, one.first, then=[one.solution.plan])
    assert sorted((move.day or 0, move.action, move.what) for move in order.moves if move.action != "delete") == [
        (0, "copy", "data-first"),
        (0, "start", "first"),
        (0, "wait", "second"),
        (1, "copy", "data-first"),
        (1, "move", "first"),
        (1, "start", "second"),
    ]
    (started,) = [move for move in order.moves if move.action == "start" and move.day]
    (moved,) = [move for move in order.moves if move.action == "move"]
    assert (started.target, started.amount, started.share, started.wave) == ("full", 4.0, 1.0, moved.wave + 1)
    assert without_gpus_day_by_day(one.problem, order, mast_opt.steps(one.problem, one.first).waves) > 1
    assert one.way.days == order.days
    assert [len(found) for found in order.waiting] == [1, 0]
    assert [move.gpus_missing for move in order.moves if move.action in ("start", "wait")] == [0.0, 4.0, 0.0]
    assert (started.origin, started.destination) == ("waits: full a100", "full a100")
    down = stopped_sections(mast_opt.steps(one.problem, one.first))[0]
    assert [row[-4:] for row in down.rows] == [
        (1, 0, None, None),
        (None, None, 4.0, None),
        (None, None, None, "data-gone: no copy left"),
    ]
    assert "No GPUs are free for 1 where they start." in down.note
    assert order.lost.startswith("no copy is left of dataset data-gone; workload gone cannot run. ")


Place = tuple[str, str | None, str | None]
"""(work, region, GPU type)"""


def without_gpus_day_by_day(problem: DataPlacement, order: Order, stage: int) -> int:
    """Carries the steps out and compares the GPUs that are asked for above the supply of each place with the work that
    waits there, by the steps and by the rows, from the end of the first stage on; returns the days on which any waits.
    ``stage``: waves of the first stage."""
    p = problem
    supply = {
        (region, kind): p.regions.supply_mgpu[r, k] / 1000
        for r, region in enumerate(p.regions.labels)
        for k, kind in enumerate(p.gpu_types)
    }
    runs = Counter[str]()
    asked: dict[Place, float] = defaultdict(float)
    lacks: dict[Place, float] = defaultdict(float)
    key: Place
    now = today(p)
    assert now is not None
    for w, cells in todays_cells(p, now).items():
        for (r, k), share in cells.items():
            runs[p.workloads.labels[w]] += share
            key = p.workloads.labels[w], p.regions.labels[r], p.gpu_types[k]
            asked[key] += p.option_mgpu[w, k] * share / 1e6
    waiting_days = 0
    begins = max((move.day or 0 for move in order.moves if move.wave < stage), default=0)
    for day, second in [(begins, False), *((day, True) for day in range(begins, order.days or 0))]:
        steps = [one for one in order.moves if (one.wave >= stage) == second and (not second or one.day == day)]
        for move in (one for one in steps if one.unit == "GPUs"):
            share, w = round(1000 * (move.share or 0.0)), p.workloads.labels.index(move.what)
            if move.source == move.target and move.from_type == move.gpu_type:
                key = move.what, move.target, move.gpu_type
                assert move.action == "stop" or lacks[key] > 0
                lacks[key] += (move.amount or 0.0) * (1 if move.action == "stop" else -1)
                continue
            if move.source is not None:
                kind = move.from_type if move.target else move.gpu_type
                key = move.what, move.source, kind
                gpus = p.option_mgpu[w, p.gpu_types.index(str(kind))] * share / 1e6
                asked[key], lacks[key] = asked[key] - gpus, max(lacks[key] - gpus, 0.0)
                runs[move.what] -= share
            if move.target is not None:
                key = move.what, move.target, move.gpu_type
                asked[key], lacks[key] = asked[key] + (move.amount or 0.0), lacks[key] + move.gpus_missing
        if not second:
            lacks |= {(row.what, row.region, row.gpu_type): row.missing for row in order.waiting[0]}
        rows = {
            (row.what, row.region, row.gpu_type)
            for rows in order.waiting
            for row in rows
            if row.day <= day and (not second or row.until is None or day < row.until)
        }
        assert {key for key, gpus in lacks.items() if gpus >= 1} == rows, day
        for place, have in supply.items():
            demand = sum(gpus for key, gpus in asked.items() if key[1:] == place)
            short = sum(gpus for key, gpus in lacks.items() if key[1:] == place)
            assert short == pytest.approx(max(demand - have, 0.0), abs=1), (place, day)
        waiting_days += bool(rows)
    return waiting_days


def test_work_without_gpus_is_that_of_the_steps_on_every_day() -> None:
    """A generated loss: the data of the work at home is in a full region too, and there are GPUs in a third one."""
    rng, builder = np.random.default_rng(5), DataRows("generated", remote_reads="forbid", days=20)
    regions = ("home", "near", "far")
    for region, gpus in zip(regions, (24, 24, 60), strict=True):
        builder.add_region(region, storage_tb=60, cpu_cores=9, gpus={"a100": gpus}, ingress_tb_per_day=2)
    for source, target in permutations(regions, 2):
        builder.add_link(source, target, tb_per_day=4, usd_per_tb=5)
    for n in range(14):
        held = dict.fromkeys([regions[n % 3], regions[max(n % 3, 1)]])
        builder.add_dataset(f"data-{n}", size_tb=int(rng.integers(2, 6)), replicas=list(held))
        cells: dict[str, Any] = {"gpus": {"a100": int(rng.integers(3, 7))}, "splittable": n % 4 == 0}
        reads = {f"data-{n}": 1}
        builder.add_workload(f"w-{n}", tier=n % 3, cpu_cores=0, reads=reads, current_region=regions[n % 3], **cells)
    answer = mast_opt.whatif(builder.build(), [LOST], solver="highs", threads=1, gap=0.05)
    (one,) = answer.outcomes
    assert one.first is not None
    assert one.order is not None
    stage = mast_opt.steps(one.problem, one.first).waves
    assert without_gpus_day_by_day(one.problem, one.order, stage) > 1
    assert any(move.action == "start" for move in one.order.moves if move.wave > stage)


def test_without_copies_there_is_one_stage() -> None:
    """Where copies are forbidden, the plan is the first stage."""
    answer, (work, without) = recovered(limits={"copied_tb": 0})
    assert answer.outcomes[0].first is None
    assert [row[-1] for row in work.rows] == ["at once", "no GPUs free: 4 of 4 wait", "data is lost"]
    assert without.rows == (("second", 1, "full", "a100", 4.0, 4.0, "day 1", "the plan has none for it"),)


def test_the_unavoidable_part_is_that_of_the_plan_from_the_first_stage() -> None:
    """``gone`` is a third of the GPUs: nothing else is left open or over the supply."""
    answer, _ = recovered()
    (one,) = answer.outcomes
    assert one.solution.verdict is not None
    assert one.solution.verdict.terms["unserved"] > 0
    assert one.solution.objective is not None
    assert 0 <= one.solution.objective - one.unavoidable < 1


def test_a_report_goes_through_the_first_stage() -> None:
    answer, _ = recovered()
    (one,) = answer.outcomes
    assert one.order is not None
    assert one.solution.plan is not None
    found = report(one.problem, one.solution.plan, losses=False, first=one.first)
    days = next(answered for answered in found.answers if answered.topic == "When it is done")
    assert days.value == f"{one.order.days} days"
    assert one.order.lost[1:] in days.detail
    assert days.detail.startswith(f"{len(one.order.moves)} steps in {one.order.waves} waves")
    assert ("days until done", "0", f"{one.order.days}") in found.compared[0].rows


def test_starts_of_a_first_stage_are_by_tier() -> None:
    """``second`` could start a wave before ``first``, which is more important; the day stays."""
    problem = recovered()[0].outcomes[0].problem
    moves = [
        Move(0, "start", "second", None, "full", day=0),
        Move(1, "start", "first", None, "full", day=0),
        Move(2, "start", "second", None, "free", day=1),
    ]
    found = [(move.wave, move.what, move.day) for move in _by_tier(problem, moves)]
    assert found == [(0, "first", 0), (0, "second", 0), (1, "second", 1)]


def test_work_of_lost_regions_is_said_to_stand_still() -> None:
    answer, _ = recovered()
    console = Console(file=io.StringIO(), width=200)
    show_whatif(console, "company", answer)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "it: today, before any plan, work that uses 12 GPUs runs in the lost regions; it stops with them." in text
    assert RESTORE in text


def moved_in_vain(*, splittable: bool = False) -> tuple[DataPlacement, Plan]:
    """``old`` runs in ``one`` and reads there; the plan moves it to ``two``, where ``other`` takes all GPUs."""
    builder = DataRows("moved in vain", remote_reads="price", days=9)
    for region in ("one", "two"):
        builder.add_region(region, storage_tb=9, cpu_cores=9, gpus={"a100": 4})
    builder.add_link("one", "two", tb_per_day=9, usd_per_tb=5).add_link("two", "one", tb_per_day=9, usd_per_tb=5)
    for name, region in (("old", "one"), ("other", "two")):
        builder.add_dataset(f"data-{name}", size_tb=2, replicas=[region])
        reads = {f"data-{name}": 1}
        cells: dict[str, Any] = {
            "gpus": {"a100": 4},
            "reads": reads,
            "current_region": region,
            "splittable": splittable,
        }
        builder.add_workload(name, tier=1, cpu_cores=0, **cells)
    problem = builder.build()
    runs = [np.array(column) for column in ([0, 1], [1, 1], [0, 0], [1000, 1000])]
    return problem, filled(problem, problem.datasets.stored, runs)


def test_running_work_does_not_move_to_where_it_only_waits() -> None:
    problem, plan = moved_in_vain()
    kept = kept_runs(problem, plan)
    assert kept.run_region.tolist() == [0, 1]
    assert not len(kept.remote_workload)
    assert kept_runs(problem, kept) is kept


def test_a_first_stage_has_no_part_of_less_than_a_gpu() -> None:
    """The rest of ``old`` fills ``one`` but for a hundredth of a GPU of ``other``."""
    problem, plan = moved_in_vain(splittable=True)
    runs = ([0, 1, 1], [0, 0, 1], [0, 0, 0], [1000, 10, 990])
    crumbs = filled(problem, np.ones_like(plan.place), [np.array(column) for column in runs])
    whole = kept_runs(problem, crumbs)
    assert whole.run_share.tolist() == [1000, 1000]
    assert whole.run_region.tolist() == [0, 1]


def test_a_move_without_gpus_is_a_stop_and_remote_reads_have_days_and_prices() -> None:
    problem, plan = moved_in_vain()
    back = filled(problem, plan.place, [np.array(column) for column in ([0, 1], [0, 1], [0, 0], [1000, 1000])])
    order = mast_opt.steps(problem, plan, then=[back])
    assert [(move.action, move.destination) for move in order.moves] == [
        ("stop", "waits: two a100"),
        ("start", "one a100"),
    ]
    (stop,) = order.stopped
    assert (stop.what, stop.share, stop.gpus, stop.gpus_missing, stop.day, stop.days) == ("old", 1.0, 4.0, 4.0, 0, 0)
    ((waiting,), ()) = order.waiting
    assert (waiting.what, waiting.day, waiting.until) == ("old", 0, 0)
    (read,) = order.remote
    assert (read.what, read.region, read.datasets, read.sources) == ("old", "two", ("data-old",), ("one",))
    assert (read.tb_a_day, read.usd_a_day, read.until, read.usd) == (1.0, 5.0, 0, 0.0)
    alone = mast_opt.steps(problem, plan)
    (section,) = stopped_sections(alone)
    assert section.note == "Without days: no plan has GPUs for it."
    assert [(one.day, one.until) for one in alone.waiting[0]] == [(0, None)]
    titles = [section.title for section in waiting_sections(alone)]
    assert titles == ["Work without GPUs", "Work that reads from other regions"]


def test_a_recovery_keeps_the_replicas_that_stand() -> None:
    """The plan copies ``data-first`` from ``full`` to ``free`` and deletes it in ``full``, to save its storage."""
    answer, _ = recovered()
    (one,) = answer.outcomes
    assert one.first is not None
    assert one.solution.plan is not None
    assert one.solution.plan.place[0].tolist() == [False, True, True]
    assert one.order is not None
    assert not [move for move in one.order.moves if move.action == "delete"]
    place = one.solution.plan.place.copy()
    place[0, 1] = False
    runs = one.solution.plan.rows("run")
    alone = filled(one.problem, place, list(runs))
    order = mast_opt.steps(one.problem, one.first, then=[alone])
    assert "after deletions one copy is left of data-first (free)" in order.notes
    full = one.problem.with_columns({"regions.storage_mb": np.array([0, 1_000_000, 9_000_000])})
    assert not kept_replicas(full, alone).place[0, 1]
