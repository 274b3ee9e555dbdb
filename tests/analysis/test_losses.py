"""What a lost region takes with it: data of which no replica is left, and the work that reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt import Scenario
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.scenario_files import happened
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.analysis.hooks import QUESTIONS
from mast_opt.problems.data_placement.analysis.losses import lost_datasets
from mast_opt.problems.kind.analysis_hooks import Loss
from mast_opt.problems.kind.scenario_values import reweighted
from mast_opt.problems.registry import kind_of
from tests.data_placement.strategies import plans, problems
from tests.data_placement.support import serves_nothing_twice
from tests.data_placement.workshop import ETL, IMAGES, LOGS, PLAN, PROBLEM, TB, TRAIN, VIDEO, VIEW, A, B, C, grid
from tests.examples import examples
from tests.narrowing import some

FREE = replace(PROBLEM, links=None)
NOWHERE = np.zeros((3, 3), np.bool_)
TRAIN_GPUS, VIEW_GPUS = 8.0, 4.0
"""The fewest GPUs that they accept; etl needs none."""


def settled(problem: DataPlacement, plan: Plan | None = None, **changes: Any) -> tuple[DataPlacement, Loss]:
    scenario = happened(kind_of(problem), problem, Scenario("it", changes))
    assert QUESTIONS.loss is not None
    instance, loss = QUESTIONS.loss(problem, scenario, changes, plan)
    assert isinstance(instance, DataPlacement)
    return instance, loss


def lost_by_hand(problem: DataPlacement, held: np.ndarray, regions: list[str]) -> set[str]:
    """Dataset by dataset, with sets of names: no replica is left, or no region may hold it any more."""
    lost = set()
    for i, name in enumerate(problem.datasets.labels):
        holders = {region for r, region in enumerate(problem.regions.labels) if held[i, r]}
        allowed = {region for r, region in enumerate(problem.regions.labels) if not problem.datasets.forbidden[i, r]}
        home = {region for r, region in enumerate(problem.regions.labels) if problem.datasets.residency[i, r]}
        allowed &= home or allowed
        no_replica = bool(holders) and holders <= set(regions)
        no_region = bool(allowed) and allowed <= set(regions)
        if no_replica or no_region:
            lost.add(name)
    return lost


@examples(60)
@given(problem=problems(refuse=True, regions=3, datasets=4, workloads=4), data=st.data())
def test_lost_data_and_work_are_those_of_brute_force(problem: DataPlacement, data: st.DataObject) -> None:
    regions = data.draw(st.lists(st.sampled_from(problem.regions.labels), min_size=1, unique=True))
    plan = data.draw(st.none() | plans(problem).filter(serves_nothing_twice))
    held = problem.datasets.stored if plan is None else plan.place
    instance, loss = settled(problem, plan, lose_regions=regions)
    expected = lost_by_hand(problem, held, regions)
    assert set(loss.datasets) == expected
    size = sum(int(problem.datasets.size_mb[problem.datasets.labels.index(name)]) for name in expected)
    assert loss.tb == pytest.approx(size / TB)
    reads = zip(problem.reads.workload.tolist(), problem.reads.dataset.tolist())
    assert set(loss.work) == {problem.workloads.labels[w] for w, i in reads if problem.datasets.labels[i] in expected}
    gone = np.isin(problem.datasets.labels, list(expected))
    away = np.isin(problem.regions.labels, regions)
    assert np.array_equal(instance.datasets.stored, held & ~away & ~gone[:, None])
    assert instance.datasets.forbidden[gone].all()
    assert not instance.datasets.pinned[gone].any()
    assert not instance.datasets.copies_min[gone].any()
    assert instance.workloads.forbidden[np.isin(problem.workloads.labels, loss.work)].all()


def test_a_second_copy_that_is_lost_need_not_be_made_again() -> None:
    """The plan has two copies of images, in a and b; c has no room for another."""
    tight = FREE.with_columns({"datasets.copies_min": np.where(np.arange(3) == IMAGES, 2, 1)})
    place = np.zeros((3, 3), np.bool_)
    place[:, A] = place[IMAGES, B] = True
    instance, loss = settled(tight, replace(PLAN, place=place), lose_regions=["b"])
    assert instance.datasets.copies_min.tolist() == [1, 1, 1]
    assert (loss.datasets, loss.fewer_copies) == ((), (tight.datasets.labels[IMAGES],))
    assert settled(tight, replace(PLAN, place=place), lose_regions=["c"])[1].fewer_copies == ()
    twice = FREE.with_columns({"datasets.copies_min": np.full(3, 2)})
    lone = settled(twice, replace(PLAN, place=place), lose_regions=["c"])
    untouched = ~place[:, 2]
    assert untouched.any()
    assert (lone[0].datasets.copies_min[untouched] == 2).all(), "nothing of them is lost, and two regions are left"


@pytest.mark.parametrize(
    ("held", "lost"),
    [
        ([True, False, False], True),
        ([True, True, False], False),
        ([False, True, False], False),
        ([False, False, False], False),
    ],
    ids=["only there", "there and elsewhere", "elsewhere", "nowhere: it is uploaded from outside"],
)
def test_data_is_lost_where_every_replica_was(held: list[bool], lost: bool) -> None:
    replicas = grid((LOGS, A), (IMAGES, B), (VIDEO, C))
    replicas[VIDEO] = held
    free = replace(FREE, datasets=replace(FREE.datasets, forbidden=NOWHERE))
    found = lost_datasets(
        free, free.datasets.forbidden | [True, False, False], replicas, np.array([True, False, False])
    )
    assert found.tolist() == [True, False, lost]


def test_data_is_lost_where_no_region_left_may_hold_it() -> None:
    """Logs have a replica in c too, which may not keep them."""
    stored = grid((LOGS, A), (LOGS, C), (IMAGES, B), (VIDEO, C))
    forbidden = grid((LOGS, B), (LOGS, C))
    _, loss = settled(
        FREE.with_columns({"datasets.stored": stored, "datasets.forbidden": forbidden}), lose_regions=["a"]
    )
    assert loss.datasets == ("logs",)
    _, loss = settled(
        FREE.with_columns({"datasets.stored": stored, "datasets.forbidden": grid((LOGS, B))}), lose_regions=["a"]
    )
    assert loss.datasets == ()


def test_data_that_no_region_may_hold_anyway_is_not_lost_with_another_region() -> None:
    """Nothing of it is in a, and the scenario bans it from no region that could hold it before."""
    forbidden = grid((LOGS, A), (LOGS, B), (LOGS, C))
    banned = replace(FREE, datasets=replace(FREE.datasets, stored=grid((LOGS, B), (IMAGES, B)), forbidden=forbidden))
    assert settled(banned, lose_regions=["a"])[1] == Loss(gpus=0.0)
    assert settled(banned, lose_regions=["b"])[1].datasets == ("logs", "images")


def test_lost_work_is_never_served() -> None:
    answer = mast_opt.whatif(FREE, [Scenario("a", {"lose_regions": ["a"]}), Scenario("none", {"grow_demand": 1.0})])
    lost, none = answer.outcomes
    assert lost.lost == Loss(("logs",), 4.0, ("train", "etl"), TRAIN_GPUS)
    assert lost.solution.status is Status.OPTIMAL
    assert not np.isin(some(lost.solution.plan).run_workload, [TRAIN, ETL]).any()
    assert not some(lost.solution.plan).place[LOGS].any()
    assert VIEW in some(lost.solution.plan).run_workload
    assert answer.base.lost == none.lost == Loss()
    verdict = some(lost.solution.verdict)
    assert verdict.metrics["storage_overhead"] == verdict.terms["storage"] - 1 == 15 / 19 - 1  # lost data counts below


def test_the_plan_says_what_is_left() -> None:
    """Today logs are only in a; the plan holds them in b as well, and video only in c."""
    answer = mast_opt.whatif(PROBLEM, [Scenario(name, {"lose_regions": [name]}) for name in "abc"], PLAN)
    assert [one.lost for one in answer.outcomes] == [
        Loss(gpus=0.0),
        Loss(("images",), 6.0, ("train",), TRAIN_GPUS),
        Loss(("video",), 9.0, ("view",), VIEW_GPUS),
    ]
    kept = answer.outcomes[0].base_verdict
    assert kept is not None
    assert "copy" not in {violation.constraint for violation in kept.violations}


def test_a_replica_that_the_plan_drops_saves_nothing() -> None:
    """Today logs are in a and b; the plan drops those in b."""
    both = replace(FREE, datasets=replace(FREE.datasets, stored=grid((LOGS, A), (LOGS, B), (IMAGES, B))))
    only_a = replace(PLAN, place=grid((LOGS, A), (IMAGES, B), (VIDEO, C)))
    assert settled(both, lose_regions=["a"])[1].datasets == ()
    assert settled(both, only_a, lose_regions=["a"])[1].datasets == ("logs",)
    assert settled(both, only_a, lose_regions=["b"])[1].datasets == ("images",)


def test_a_pin_does_not_bring_lost_data_back() -> None:
    pin = [{"dataset": "logs", "region": "b"}]
    either: tuple[dict[str, Any], ...] = ({"lose_regions": ["a"], "pin": pin}, {"pin": pin, "lose_regions": ["a"]})
    for changes in either:
        instance, loss = settled(FREE, **changes)
        assert loss.datasets == ("logs",)
        solution = mast_opt.solve(QUESTIONS.priced(instance))
        assert solution.status is Status.OPTIMAL
        assert not some(solution.plan).place[LOGS].any()


@pytest.mark.parametrize("solver", ["highs", "tetris"])
def test_heuristics_serve_no_lost_work_either(solver: str) -> None:
    instance, _ = settled(FREE, lose_regions=["a"])
    solution = mast_opt.solve(QUESTIONS.priced(instance), solver, iterations=None if solver == "highs" else 200)
    assert some(solution.plan).run_workload.tolist() == [VIEW]


@pytest.mark.parametrize("problem", [FREE, PROBLEM], ids=["free", "links"])
def test_the_robust_plan_and_the_scenarios_agree(problem: DataPlacement) -> None:
    """With a plan, the scenario planned again serves no more than the base plan's replicas allow."""
    answer = mast_opt.whatif(
        problem, [Scenario(name, {"lose_regions": [name]}) for name in "abc"], PLAN, robust="worst"
    )
    robust = answer.robust
    assert robust is not None
    for one in (answer.base, *answer.outcomes):
        assert robust.base_lost[one.name] == one.lost
        lost = robust.robust_lost[one.name]
        assert lost is not None
        served = {problem.workloads.labels[w] for w in some(robust.robust[one.name].plan).run_workload}
        assert not served & set(lost.work)
        away = [region for region in problem.regions.labels if region == one.name]
        assert set(lost.datasets) == lost_by_hand(problem, some(robust.plan).place, away)


def test_a_robust_plan_saves_data_that_only_a_lost_region_has_today() -> None:
    """It is copied before the region is lost; the base plan without that copy loses it."""
    roomy = replace(FREE, regions=replace(FREE.regions, ingress_limited=np.zeros(3, np.bool_)))
    only_a = mast_opt.solve(replace(roomy, datasets=replace(roomy.datasets, forbidden=grid((LOGS, B), (LOGS, C))))).plan
    only_a = some(only_a).made_for(roomy)
    assert mast_opt.verify(roomy, only_a).ok
    robust = mast_opt.whatif(roomy, [Scenario("lost", {"lose_regions": ["a"]})], only_a, robust="weighted").robust
    assert robust is not None
    assert robust.base_lost["lost"] == Loss(("logs",), 4.0, ("train", "etl"), TRAIN_GPUS)
    assert robust.robust_lost["lost"] == Loss(gpus=0.0)
    assert some(robust.plan).place[LOGS, B]


def test_moved_work_is_counted_from_the_plan_that_the_loss_hits() -> None:
    """Today train and etl run in a. In the plan train runs in b, and a part of etl and view run in c."""
    weighed = replace(FREE, objective=reweighted(FREE, {"moved_work": 1.0}).objective)
    before = by_rows(PLAN)
    for lost in "abc":
        instance, _ = settled(weighed, PLAN, lose_regions=[lost])
        answer = mast_opt.whatif(weighed, [Scenario("it", {"lose_regions": [lost]})], PLAN)
        solution = answer.outcomes[0].solution
        assert solution.status is Status.OPTIMAL
        after = by_rows(some(solution.plan))
        demand = answer.outcomes[0].problem.demand_mgpu.tolist()
        gone = sum(demand[w] * max(share - after.get((w, r), 0), 0) for (w, r), share in before.items())
        expected = gone / (1000 * sum(demand))
        assert some(solution.verdict).terms["moved_work"] == pytest.approx(expected)
        assert expected > 0.1 or lost != "b"  # train leaves b
        verdict = mast_opt.verify(answer.outcomes[0].problem, some(solution.plan))
        assert verdict.terms["moved_work"] == pytest.approx(expected)
        assert instance.current_runs.share.sum() == PLAN.run_share.sum()


def test_without_a_plan_or_a_lost_region_moved_work_is_counted_from_today() -> None:
    for plan, changes in ((None, {"lose_regions": ["b"]}), (PLAN, {"grow_demand": 1.0})):
        instance, _ = settled(FREE, plan, **changes)
        assert instance.current_runs.workload.tolist() == FREE.current_runs.workload.tolist()
        assert instance.current_runs.region.tolist() == FREE.current_runs.region.tolist()


def test_a_plan_that_serves_work_twice_is_refused_before_anything_is_lost() -> None:
    twice = replace(PLAN, run_share=PLAN.run_share * 2)
    with pytest.raises(UsageError, match="the base plan breaks limits"):
        mast_opt.whatif(FREE, [Scenario("it", {"lose_regions": ["a"]})], twice)


def by_rows(plan: Plan) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for w, r, share in zip(plan.run_workload.tolist(), plan.run_region.tolist(), plan.run_share.tolist()):
        found[w, r] = found.get((w, r), 0) + share
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("region", [0, 1])
def test_what_no_plan_can_change_is_no_more_than_any_plan_costs(seed: int, region: int) -> None:
    problem = mast_opt.generate("data-placement", seed=seed, datasets=5, workloads=7, regions=3)
    roomy = {f"regions.{name}": 9 * getattr(problem.regions, name) for name in ("cpu_mcores", "storage_mb")}
    problem = problem.with_columns(roomy)
    lost = Scenario("lost", changes={"lose_regions": [problem.regions.labels[region]]})
    [outcome] = mast_opt.whatif(problem, [lost], threads=1).outcomes
    verdict = outcome.solution.verdict
    assert verdict is not None
    assert outcome.lost is not None
    for term, least in outcome.lost.unavoidable.items():
        assert verdict.terms[term] >= least - 1e-9
    weights = outcome.problem.objective.weights
    assert outcome.unavoidable == pytest.approx(sum(weights[t] * v for t, v in outcome.lost.unavoidable.items()))
    assert bool(outcome.unavoidable) == bool(outcome.lost.work)
    alone = mast_opt.solve(outcome.problem, "highs", weights=dict.fromkeys(weights, 0.0) | {"unserved": 1.0})
    idle = set(problem.workloads.labels) - {problem.workloads.labels[w] for w in some(alone.plan).run_workload}
    least = outcome.lost.unavoidable["unserved"]
    assert idle >= set(outcome.lost.work)
    assert some(alone.objective) >= least - 1e-9
    if idle == set(outcome.lost.work):
        assert alone.objective == pytest.approx(least, abs=1e-9)
    open_part = some(outcome.solution.objective) - outcome.unavoidable
    assert open_part > 1e-6
    quarter = replace(outcome.solution, bound=outcome.unavoidable + open_part / 4)
    assert replace(outcome, solution=quarter).open_gap == pytest.approx(0.75)
