"""Goals that stand for weights: what each puts first, side by side with doing nothing, and where one means nothing."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import mast_opt
from mast_opt.cli.json_record import whatif_keys
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Event, Limit, SolveParams, SolveResult, Status
from mast_opt.planner.analysis import goals
from mast_opt.planner.analysis.goals import PLAN, figures_of
from mast_opt.planner.analysis.region_loss import RegionLoss, RegionLosses
from mast_opt.planner.io import read_plan_of
from mast_opt.planner.report.result_sections import goal_sections, least_loss_words, missing_sections, whatif_sections
from mast_opt.planner.report.terminal.analysis import show_whatif
from mast_opt.planner.report.terminal.solution import show_solution
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement, Links
from mast_opt.problems.data_placement.analysis import safest
from mast_opt.problems.data_placement.goals import money_weights
from mast_opt.problems.data_placement.plan import today
from mast_opt.problems.kind.overrides import Secured
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.mip import Mip
from tests.analysis.support import worst_region_loss
from tests.instance_rows import DataRows
from tests.narrowing import some

MOVES = ("process_move", "service_move", "machine_move")


def dearer_at_home() -> DataPlacement:
    """Three jobs of 4 GPUs in a region that has 10, while an empty one with a copy of the data costs half."""
    builder = DataRows("expensive-at-home")
    builder.add_region("home", storage_tb=10, cpu_cores=100, gpus={"a100": 10}, usd_per_gpu_hour={"a100": 4})
    builder.add_region("away", storage_tb=10, cpu_cores=100, gpus={"a100": 12}, usd_per_gpu_hour={"a100": 2})
    builder.add_dataset("logs", size_tb=1, replicas=["home", "away"])
    for name in ("one", "two", "three"):
        builder.add_workload(name, tier=0, cpu_cores=1, gpus={"a100": 4}, reads={"logs": 1}, current_region="home")
    return builder.build()


def test_each_goal_gets_what_it_names() -> None:
    answer = mast_opt.solve_goals(dearer_at_home(), solver="highs", threads=1)
    assert {found.status for found in answer.solutions.values()} == {Status.OPTIMAL}
    assert list(answer.figures) == ["do nothing", "least-change", "balanced", "cheapest", "safest"]
    metrics = {name: one.verdict.metrics for name, one in answer.figures.items()}
    terms = {name: one.verdict.terms for name, one in answer.figures.items()}
    assert [one["overload_gpus"] for one in metrics.values()] == [2, 0, 0, 0, 0]
    assert [round(one["moved_work"], 3) for one in terms.values()] == [0, 0.333, 0.333, 1, 0.333]
    assert terms["cheapest"]["running_cost"] == pytest.approx(2 * 12 * 730)
    assert terms["do nothing"]["running_cost"] == pytest.approx(4 * 12 * 730)
    section = goal_sections(dearer_at_home(), answer.figures)[0]
    assert [head.title for head in section.heads] == ["figure", *answer.figures]
    rows = {row[0]: row[1:] for row in section.rows}
    assert rows["GPUs over the supply"] == ("2", "0", "0", "0", "0")
    assert rows["work that leaves its region"] == ("0.0%", "33.3%", "33.3%", "100.0%", "33.3%")
    assert rows["USD a month, of what fits"] == ("29,200", "29,200", "29,200", "17,520", "29,200")
    assert rows["USD a month that the missing GPUs would cost"] == ("5,840", "0", "0", "0", "0")
    assert rows["workloads moved, by share"] == ("0", "1", "1", "3", "1")
    assert "copies" not in rows  # a figure that is 0 in all
    assert answer.lead == "least-change"
    cheapest = answer.solutions["cheapest"].overrides
    assert cheapest.note.startswith("changes count too (moving all work: ")
    assert f"{0.01 / cheapest.weights['running_cost']:,.0f} USD a month" in cheapest.note


def test_the_least_change_moves_one_large_workload_rather_than_two_small_ones() -> None:
    builder = DataRows("one-large")
    builder.add_region("home", storage_tb=10, cpu_cores=100, gpus={"a100": 8})
    builder.add_region("away", storage_tb=10, cpu_cores=100, gpus={"a100": 12})
    builder.add_dataset("logs", size_tb=1, replicas=["home", "away"])
    for name, gpus in (("large", 8), ("small", 2), ("other", 2)):
        builder.add_workload(name, tier=1, cpu_cores=1, gpus={"a100": gpus}, reads={"logs": 1}, current_region="home")
    found = some(mast_opt.solve(builder.build(), "highs", goal="least-change", threads=1).verdict)
    assert found.metrics["overload_gpus"] == found.metrics["new_replicas"] == 0
    assert found.metrics["moved_shares"] == 1
    assert found.terms["moved_items"] == pytest.approx(1 / 4)
    assert found.terms["moved_work"] == pytest.approx(8 / 12)


def all_at_home(away_tb: float = 30.0) -> DataPlacement:
    """Two datasets of 10 TB, each read by a job of 4 GPUs at home; a third is bound to home by its residency."""
    builder = DataRows("all-at-home")
    builder.add_region("home", storage_tb=40, cpu_cores=100, gpus={"a100": 20})
    builder.add_region("away", storage_tb=away_tb, cpu_cores=100, gpus={"a100": 6})
    for name, gpus in (("logs", 4), ("clicks", 5)):
        builder.add_dataset(name, size_tb=10, replicas=["home"])
        builder.add_workload(
            f"of-{name}", tier=0, cpu_cores=1, gpus={"a100": gpus}, reads={name: 1}, current_region="home"
        )
    builder.add_dataset("people", size_tb=1, replicas=["home"], residency=["home"])
    builder.add_workload("of-people", tier=0, cpu_cores=1, gpus={"a100": 1}, reads={"people": 1}, current_region="home")
    return builder.build()


def test_the_safest_plan_survives_the_loss_of_a_region(tmp_path: Path) -> None:
    problem = all_at_home()
    answer = mast_opt.solve_goals(problem, solver="highs", threads=1)
    losses = {name: one.loss for name, one in answer.figures.items() if one.loss is not None}
    least, safest = losses["least-change"], losses["safest"]
    assert (least.region, least.overload_gpus, least.unserved_gpus, least.datasets) == ("home", 0, 10, 3)
    assert (safest.region, safest.overload_gpus, safest.unserved_gpus, safest.datasets) == ("home", 3, 1, 1)
    overrides = answer.solutions["safest"].overrides
    assert overrides.copies_min == {"logs": 2, "clicks": 2}
    assert overrides.single_copies == {"people": "residency and bans leave one region"}
    rows = {row[0]: row[1:] for row in goal_sections(problem, answer.figures)[0].rows}
    assert rows["GPUs missing after the worst loss of a region, before any copy"] == (*["10 (home)"] * 3, "4 (home)")
    assert rows["of these, work that stands still"] == (*["10"] * 3, "1")
    assert rows["most TB of data lost with one region"] == (*["21 (home)"] * 3, "1 (home)")
    assert "of these, work whose data is lost" not in rows
    solution = answer.solutions["safest"]
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    reading = read_plan_of(problem, tmp_path / "plan")
    assert reading.overrides == overrides
    assert str(overrides).endswith(
        "at least 2 copies of 2 datasets, one copy of people (1 TB; residency and bans leave one region), "
        "replicas of 3 datasets as chosen"
    )
    assert mast_opt.verify(reading.problem, reading.plan).ok
    single = answer.solutions["least-change"].plan
    assert single is not None
    broken = mast_opt.verify(problem, single.made_for(problem, overrides)).violations
    lacking = {f"{what}[{name}]" for name in ("logs", "clicks") for what in ("copies", "place")}
    assert {one.name.replace(",away", "") for one in broken} == lacking


def test_a_scenario_that_loses_a_region_has_the_figures_of_its_loss() -> None:
    problem = all_at_home()
    plan = mast_opt.solve(problem, "highs", goal="safest", threads=1).plan
    assert plan is not None
    scenarios = [
        mast_opt.Scenario("home is lost", {"lose_regions": ["home"]}),
        mast_opt.Scenario("growth", {"grow_demand": 1.1}),
    ]
    answer = mast_opt.whatif(problem, scenarios, plan, threads=1)
    lost, growth = answer.outcomes
    assert (lost.after_loss, growth.after_loss) == (RegionLoss("home is lost", 3, 1, 1, 1, lost_tb=1.0), None)
    (section,) = missing_sections(answer)
    assert section.rows == (
        ("GPUs missing, planned again", "4"),
        ("of these, work that stands still", "1"),
        ("of these, work whose data is lost", "1"),
    )
    scenarios_section = whatif_sections(answer)[0]
    at = [head.title for head in scenarios_section.heads].index("limits that the base plan breaks")
    shown = [row[at] for row in scenarios_section.rows]
    record = whatif_keys(answer)
    stated = [one["base_plan"]["breaks"] for one in (record["base"], *record["scenarios"])]
    assert shown == stated == [0, None, 0], "after the loss the base plan breaks no limit, since its work stands still"
    console = Console(file=io.StringIO(), width=120)
    show_whatif(console, "company", answer)
    printed = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    last = [line.split()[-1] for line in printed if line.startswith(("base ", "home is lost ", "growth "))][:3]
    assert last == ["0", "–", "0"]
    late = replace(lost, solution=replace(lost.solution, status=Status.FEASIBLE))
    (section,) = missing_sections(replace(answer, outcomes=(late, growth)))
    assert [row[1] for row in section.rows] == ["at most 4", "1", "1"], "the loss of data needs no proof"


def test_work_whose_data_is_lost_is_not_in_the_gap_of_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, found = all_at_home(), []
    plan = mast_opt.solve(problem, "highs", goal="least-change", threads=1).plan
    assert plan is not None
    exact = backends.get("highs")

    class Recording:
        """A solver whose objectives are kept."""

        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            """Its result."""
            found.append(exact.solve(mip, params))
            return found[-1]

    monkeypatch.setattr(backends, "get", lambda _: Recording())
    loss = worst_region_loss(problem, plan)
    assert loss is not None
    assert (loss.region, loss.lost_gpus) == ("home", 10)
    assert some(found[0].objective) < 1  # all work is lost with home, which costs more than that


def test_a_region_that_cannot_be_the_worst_needs_no_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = all_at_home()
    plan = some(mast_opt.solve(problem, "highs", goal="least-change", threads=1).plan)
    exact, solved = backends.get("highs"), []

    class Recording:
        """A solver whose solves are counted."""

        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            """Its result."""
            solved.append(mip)
            return exact.solve(mip, params)

    monkeypatch.setattr(backends, "get", lambda _: Recording())
    losses = RegionLosses(problem, plan)
    losses.prove_worst({})
    worst = some(losses.worst)
    assert (len(solved), worst.region, [one.proven for one in worst.regions]) == (1, "home", [True, False])
    losses.prove_others({})
    assert some(losses.worst).regions[1] == replace(worst.regions[1], proven=True)


def test_work_is_placed_where_its_data_is_left_before_any_solve() -> None:
    """With second copies all but the work of people, whose data is lost, runs in the other region at once."""
    problem = all_at_home()
    plan = some(mast_opt.solve(problem, "highs", goal="safest", threads=1).plan)
    worst = some(RegionLosses(problem, plan).worst)
    assert (worst.region, worst.proven, worst.missing_gpus, worst.unserved_gpus) == ("home", False, 4, 1)


def test_where_room_is_short_data_of_most_gpus_is_doubled_first() -> None:
    overrides = mast_opt.solve(all_at_home(away_tb=15.0), "highs", goal="safest").overrides
    assert overrides.copies_min == {"clicks": 2}
    assert overrides.single_copies["logs"] == "the other second copies leave no room for one"
    overrides = mast_opt.solve(all_at_home(away_tb=9.0), "highs", goal="safest").overrides
    assert overrides.single_copies["clicks"] == "larger than the storage of every other region"
    limited = mast_opt.solve(all_at_home(), "highs", goal="safest", limits={"copied_tb": 12}).overrides
    assert limited.copies_min == {"clicks": 2}


def test_the_safest_plan_copies_no_data_that_keeps_no_work_going() -> None:
    """Nobody reads the archive. A tenth of the work reads the clips, which are most of the data and stay in a region
    whose loss is not the worst."""
    builder = DataRows("clips")
    for name, gpus in (("home", 20), ("away", 20), ("third", 20)):
        builder.add_region(name, storage_tb=300, cpu_cores=100, gpus={"a100": gpus})
    bound = {"people": ["home"]}
    data = {"logs": (10, "home", 14), "people": (1, "home", 4), "clips": (100, "away", 2), "archive": (10, "home", 0)}
    for name, (size_tb, region, gpus) in data.items():
        builder.add_dataset(name, size_tb=size_tb, replicas=[region], residency=bound.get(name, ()))
        if gpus:
            need = {"a100": gpus}
            builder.add_workload(name, tier=0, cpu_cores=1, gpus=need, reads={name: 1}, current_region=region)
    problem = builder.build()
    found = mast_opt.solve(problem, "highs", goal="safest", threads=1)
    assert some(found.verdict).metrics["copied_tb"] == 10
    assert found.overrides.copies_min == {"logs": 2}
    assert found.overrides.single_copies == {
        "people": "residency and bans leave one region",
        "clips": "too little work would go on with a second one",
        "archive": "too little work would go on with a second one",
    }
    assert "one copy of clips, archive (110 TB; too little work would go on" in str(found.overrides)
    chosen = found.overrides.replicas
    assert {name: len(regions) for name, regions in chosen.items()} == {"logs": 2, "people": 1, "clips": 1}
    stated = found.overrides.applied_to(problem)
    assert stated.datasets.pinned.sum() == 4
    assert some(mast_opt.solve(stated, "highs", threads=1).objective) >= some(found.bound) - 1e-6
    with pytest.raises(UsageError, match="may not be in all of away"):
        problem.with_replicas({"people": ["away"]})
    loss = some(worst_region_loss(problem, some(found.plan), threads=1))
    assert (loss.missing_gpus, found.least_missing_gpus) == (4, 4)


def test_goals_share_the_best_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, begun = dearer_at_home(), []

    def poor(instance: DataPlacement, solver: str, *, start: Any, **rest: Any) -> Any:
        """Solves the first goal, and ends the others with doing nothing."""
        begun.append(start is not None)
        found = mast_opt.solve(instance, solver, threads=1)
        if start is None:
            return found
        now = today(instance)
        assert now is not None
        verdict = mast_opt.verify(instance, now)
        return replace(
            found, plan=now, verdict=verdict, objective=verdict.objective, status=Status.FEASIBLE, limit=Limit.OTHER
        )

    monkeypatch.setattr(goals, "solve", poor)
    answer = mast_opt.solve_goals(problem, solver="highs")
    assert begun == [False, True, True, True]
    least, balanced = answer.solutions["least-change"], answer.solutions["balanced"]
    assert least.plan == balanced.plan
    assert balanced.verdict is not None
    assert balanced.plan is not None
    assert balanced.objective == balanced.verdict.objective == mast_opt.verify(problem, balanced.plan).objective
    assert answer.borrowed == {"balanced": "least-change", "cheapest": "least-change", "safest": "least-change"}
    proven = {name: replace(one, status=Status.OPTIMAL) for name, one in answer.solutions.items()}
    assert not replace(answer, solutions=proven).borrowed


def test_a_second_round_never_loses_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solved = dearer_at_home(), set()

    def worse_later(instance: DataPlacement, solver: str, **rest: Any) -> Any:
        """Solves once with each objective, within the time, and then ends with doing nothing."""
        found = mast_opt.solve(instance, solver, threads=1)
        weights = tuple(instance.objective.weights.items())
        if weights in solved:
            now = some(today(instance))
            verdict = mast_opt.verify(instance, now)
            found = replace(found, plan=now, verdict=verdict, objective=verdict.objective)
        solved.add(weights)
        return replace(found, status=Status.FEASIBLE, limit=Limit.TIME)

    monkeypatch.setattr(goals, "solve", worse_later)
    answer = mast_opt.solve_goals(problem, solver="highs", time_limit_s=600.0)
    assert answer.solutions["cheapest"].status is Status.FEASIBLE
    assert answer.figures["cheapest"].verdict.terms["running_cost"] == pytest.approx(2 * 12 * 730)


def archived() -> DataPlacement:
    """``all_at_home`` with a region that stores data for next to nothing and has no GPUs."""
    builder = DataRows("archived", remote_reads="forbid")
    builder.add_region("home", storage_tb=40, cpu_cores=100, gpus={"a100": 20})
    builder.add_region("away", storage_tb=40, cpu_cores=100, gpus={"a100": 10}, usd_per_tb_month=30)
    builder.add_region("archive", storage_tb=40, cpu_cores=0, usd_per_tb_month=1)
    for name, gpus in (("logs", 4), ("clicks", 5)):
        builder.add_dataset(name, size_tb=10, replicas=["home"])
        builder.add_workload(
            f"of-{name}", tier=0, cpu_cores=1, gpus={"a100": gpus}, reads={name: 1}, current_region="home"
        )
    return builder.build().with_objective({"running_cost": 0.01}, ())


def test_the_safest_copies_are_where_work_goes_on() -> None:
    """The archive is cheaper; what is left there after the loss of home runs nowhere."""
    problem = archived()
    solution = mast_opt.solve(problem, "highs", goal="safest", threads=1)
    assert solution.plan is not None
    loss = worst_region_loss(problem, solution.plan, threads=1)
    assert loss is not None
    assert (loss.missing_gpus, solution.least_missing_gpus) == (0, 0)
    again = mast_opt.solve(solution.overrides.applied_to(problem), "highs", threads=1)
    assert some(again.objective) == pytest.approx(some(solution.objective), abs=1e-6)
    copies_alone = replace(solution.overrides, replicas={})
    cheaper = mast_opt.solve(copies_alone.applied_to(problem), "highs", threads=1)
    assert cheaper.plan is not None
    loss = worst_region_loss(problem, cheaper.plan, threads=1)
    assert loss is not None
    assert loss.unserved_gpus == 9
    answer = mast_opt.solve_goals(problem, solver="highs", threads=1)
    assert some(answer.figures["safest"].loss).missing_gpus == 0
    safe = answer.solutions["safest"]
    assert (safe.least_missing_gpus, safe.is_second_stage) == (0, True)
    other = answer.solutions["balanced"]
    assert (other.least_missing_gpus, other.is_second_stage) == (None, False)


def test_a_large_instance_chooses_no_copies_by_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safest, "LARGEST", 10)
    solution = mast_opt.solve(archived(), "highs", goal="safest", threads=1)
    assert solution.status is Status.OPTIMAL
    assert (solution.least_missing_gpus, solution.is_second_stage) == (None, True)


def test_what_is_proven_of_the_worst_loss_is_said_apart_from_the_gap() -> None:
    loss = RegionLoss("virginia", 575.0, 124.0, 0.0, 0)
    assert least_loss_words(loss, 620.1) == "699 GPUs missing (virginia), at least 620 proven; not proven least"
    assert least_loss_words(loss, 699.3) == "699 GPUs missing (virginia), proven least"
    assert least_loss_words(replace(loss, proven=False), 620.1).startswith("at most 699 GPUs missing (virginia), at")
    assert least_loss_words(loss, None).endswith("not proven least, since the replicas were not chosen by it")
    assert least_loss_words(None, 620.1) == "at least 620 GPUs wherever the replicas are (proven)"
    problem = archived()
    solution = mast_opt.solve(problem, "highs", goal="safest", threads=1)
    figures = figures_of(problem, {PLAN: some(solution.plan)}, judging={"time_limit_s": 60.0})
    console = Console(file=io.StringIO(), width=500)
    show_solution(console, problem, solution, 1.0, rows=1, figures=figures)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    head = lines[:3]
    assert any(line.startswith("steps ") for line in lines), "figures before and after are shown in full"
    assert head[1] == "OPTIMAL  with its replicas, proven within the requested gap"
    assert "worst loss of a region 0 GPUs missing" in head[2]
    assert "proven least" in head[2]


def test_the_safest_plan_begins_with_more_copies_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[bool, bool]] = []

    def watched(instance: DataPlacement, solver: str, *, start: Any = None, freeze: Any = None, **rest: Any) -> Any:
        """Solves, and notes whether the start keeps every limit, and whether work is frozen."""
        begun.append((start is not None and mast_opt.verify(instance, start).ok, freeze is not None))
        return mast_opt.solve(instance, solver, start=start, freeze=freeze, **rest)

    monkeypatch.setattr(goals, "solve", watched)
    monkeypatch.setattr(safest, "LARGEST", 10)  # no program chooses the copies
    answer = mast_opt.solve_goals(all_at_home(), solver="highs", threads=1)
    assert list(answer.solutions) == ["least-change", "balanced", "safest"]
    assert begun == [(False, False), (True, False), (False, True), (True, False)]


def test_a_plan_of_a_goal_is_verified_by_its_own_weights(tmp_path: Path) -> None:
    problem = dearer_at_home()
    solution = mast_opt.solve(problem, "highs", goal="balanced", limits={"moved_work": 0.5})
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    reading = read_plan_of(problem, tmp_path / "plan")
    assert reading.overrides.peak_levels == {0: 0.9}
    assert solution.verdict is not None
    assert mast_opt.verify(reading.problem, reading.plan).objective == pytest.approx(solution.verdict.objective)


def test_without_prices_nothing_is_cheapest() -> None:
    problem = mast_opt.generate("data-placement", seed=1, datasets=5, workloads=6, regions=3)
    with pytest.raises(UsageError, match="states no prices"):
        mast_opt.solve(problem, goal="cheapest")
    answer = mast_opt.solve_goals(problem, solver="highs", time_limit_s=20.0)
    assert list(answer.solutions) == ["least-change", "balanced", "safest"]
    assert "no prices" in answer.refused["cheapest"]


@pytest.mark.parametrize(
    ("kind", "sizes", "counted"),
    [
        ("job-placement", {"jobs": 4, "clusters": 2}, {"rejected", "preemption", "remote"}),
        ("server-assignment", {"servers": 12}, {"shortfall", "repair", "moves_in_use", "moves_idle"}),
        (
            "task-reassignment",
            {"processes": 6, "machines": 3},
            {"load", "process_move", "service_move", "machine_move"},
        ),
    ],
)
def test_other_kinds_have_the_goals_that_mean_something(kind: str, sizes: dict[str, int], counted: set[str]) -> None:
    problem: Problem[Any] = mast_opt.generate(kind, None, seed=1, **sizes)
    answer = mast_opt.solve_goals(problem, solver="highs", time_limit_s=20.0)
    assert set(answer.solutions) == {"least-change", "balanced"}
    weights = answer.solutions["least-change"].overrides.weights
    assert {term for term, weight in weights.items() if weight} == counted
    assert not answer.solutions["balanced"].overrides
    assert ("cheapest" in answer.refused) == (kind == "job-placement")


def test_a_goal_states_the_objective() -> None:
    problem = dearer_at_home()
    with pytest.raises(UsageError, match="leave out weights and order"):
        mast_opt.solve(problem, goal="cheapest", weights={"copy": 1.0})
    with pytest.raises(UsageError, match="no goal called 'cheep': it has least-change, balanced, cheapest, safest"):
        mast_opt.solve(problem, goal="cheep")
    policy = mast_opt.generate("resource-allocation", seed=1)
    with pytest.raises(UsageError, match="its objective is a policy"):
        mast_opt.solve(policy, goal="balanced")
    with pytest.raises(UsageError, match="has no goals"):
        mast_opt.solve_goals(policy)


def test_a_dollar_weighs_by_the_highest_bill() -> None:
    problem = dearer_at_home()
    weights = money_weights(problem, 1.0)
    assert weights["running_cost"] == pytest.approx(1 / (4 * 12 * 730), rel=0.2)
    assert weights["migration_cost"] == pytest.approx(weights["running_cost"] / 12, rel=0.25)
    unpriced = problem.with_columns({"regions.gpu_price_micro": 0 * problem.regions.gpu_price_micro})
    links = Links(np.array([0]), np.array([1]), np.array([10**7]), np.array([25.0]))
    weights = money_weights(replace(unpriced, links=links), 1.0)
    assert weights["running_cost"] == pytest.approx(1 / (3 * 25 * 730 / 24), rel=0.2)


def test_solves_that_overrun_leave_the_time_that_judging_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked_s, judged_s, heard = dearer_at_home(), list[float](), list[float](), list[str | None]()
    found = mast_opt.solve(problem, "highs", threads=1)
    now = [0.0]

    def slow(instance: DataPlacement, solver: str, *, time_limit_s: float, on_event: Any, **rest: Any) -> Any:
        """Takes 40 s more than it was given."""
        asked_s.append(time_limit_s)
        now[0] += time_limit_s + 40.0
        on_event(Event(now[0], 1.0, None))
        return found

    class Judged:
        """Losses of regions."""

        worst = RegionLoss("home", 1.0, 0.0, 0.0, 0)

        def __init__(self, instance: DataPlacement, plan: object) -> None: ...

        def prove_worst(self, limits: SolveLimits) -> None:
            """Takes no time."""
            judged_s.append(some(limits["time_limit_s"]))

        def prove_others(self, limits: SolveLimits) -> None:
            """Takes no time."""

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr(goals, "solve", slow)
    monkeypatch.setattr(goals, "secured_for", lambda name, problem, *_: (Secured(problem), None))
    monkeypatch.setattr(goals, "RegionLosses", Judged)
    answer = mast_opt.solve_goals(
        problem, solver="highs", time_limit_s=100.0, on_event=lambda one: heard.append(one.stage)
    )
    assert asked_s[0] == pytest.approx(100 * (1 - goals.JUDGING) * 2 / 7)
    assert asked_s[1] == pytest.approx(1)  # half of its part of the 10 s that are left
    assert judged_s[0] == pytest.approx(100 * goals.JUDGING / 3)  # all plans are one, which leads
    assert len(judged_s) == 2
    assert {one.loss for one in answer.figures.values()} == {RegionLoss("home", 1.0, 0.0, 0.0, 0)}
    assert heard == [name for name in answer.solutions for _ in range(2)]
