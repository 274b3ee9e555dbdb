"""Marginal values equal real re-solves with one unit more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.problems.backends.highs import Highs
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.analysis.scenarios import RESOURCES, add_storage_tb
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.mip import Mip
from tests.data_placement.support import proven
from tests.data_placement.workshop import PLAN, PROBLEM, TB
from tests.narrowing import some

SMALL = mast_opt.generate("data-placement", seed=3, datasets=6, workloads=8, regions=3)


def with_plan_held(problem: DataPlacement, plan: Plan) -> float:
    """The optimum with the plan's whole decisions: HiGHS, with bounds that hold them, no linear program by hand."""
    formulation = base(problem)
    whole = np.flatnonzero(formulation.mip.integral)
    result = proven(formulation.mip.fix(whole, np.rint(formulation.encode(plan)[whole])))
    assert result.objective is not None
    return result.objective


def test_gpus_against_resolving_with_one_more() -> None:
    plan = mast_opt.solve(SMALL, gap=0.05).plan
    answer = mast_opt.marginal_values(SMALL, plan, resources=["gpus"])
    assert answer.objective == pytest.approx(with_plan_held(SMALL, some(plan)), rel=1e-6)
    assert any(one.value for one in answer.values)
    for one in answer.values:
        region, kind = one.place.split(" ")
        supply = SMALL.regions.supply_mgpu.copy()
        supply[SMALL.regions.labels.index(region), SMALL.gpu_types.index(kind)] += 1000
        more = with_plan_held(replace(SMALL, regions=replace(SMALL.regions, supply_mgpu=supply)), some(plan))
        assert one.value == pytest.approx(some(answer.objective) - more, abs=1e-6)


def test_cores_and_links_against_resolving() -> None:
    """etl is split: a core more in a lets more of it run next to its data, a wider link saves the expensive one."""
    links = PROBLEM.links
    assert links is not None
    narrow = replace(links, capacity_mb_per_day=np.array([4 * TB, TB, 10 * TB, TB // 5]))
    weights = {**PROBLEM.objective.weights, "egress": 0.1}
    tight = PROBLEM.with_columns(
        {
            "regions.cpu_mcores": np.array([30_000, 10_000, 100_000]),
            "links": narrow,
            "objective": replace(PROBLEM.objective, weights=weights),
        }
    )
    answer = mast_opt.marginal_values(tight, PLAN)
    values = {(one.resource, one.place): one.value for one in answer.values}
    assert {resource for resource, _ in values} == {"storage", "cpu", "gpus", "ingress", "link"}
    before = with_plan_held(tight, PLAN)
    wider = replace(narrow, capacity_mb_per_day=narrow.capacity_mb_per_day + np.array([0, 0, 0, TB]))
    more = {
        ("cpu", "a"): tight.with_columns({"regions.cpu_mcores": tight.regions.cpu_mcores + np.array([1000, 0, 0])}),
        ("link", "b → c"): replace(tight, links=wider),
        ("storage", "a"): tight.with_columns({"regions.storage_mb": tight.regions.storage_mb + np.array([TB, 0, 0])}),
    }
    for place, instance in more.items():
        assert values[place] == pytest.approx(before - with_plan_held(instance, PLAN), abs=1e-6)
    assert values["cpu", "a"]
    assert values["link", "b → c"]
    assert values["storage", "a"] == 0


def test_a_terabyte_of_storage_is_one_that_is_bought() -> None:
    """Of which the headroom keeps its share free, as in a scenario that adds storage."""
    half = replace(SMALL, regions=replace(SMALL.regions, headroom_milli=np.full(3, 500)))
    bought = {one.name: one for one in RESOURCES}["storage"].add(half, 1, 4)
    assert (bought.regions.storage_mb - half.regions.storage_mb).tolist() == [0, 4 * TB, 0]
    assert bought == add_storage_tb(half, {half.regions.labels[1]: 4})


def test_free_integers_against_resolving() -> None:
    answer = mast_opt.marginal_values(SMALL, integers="free", resources=["storage"], units=20, gap=0.0, jobs=2)
    optimum = proven(base(SMALL).mip).objective
    assert answer.objective == pytest.approx(optimum, rel=1e-6)
    for one in answer.values:
        more = SMALL.regions.storage_mb.copy()
        more[SMALL.regions.labels.index(one.place)] += 20 * TB
        better = proven(base(replace(SMALL, regions=replace(SMALL.regions, storage_mb=more))).mip).objective
        assert optimum is not None
        assert better is not None
        assert one.value == pytest.approx((optimum - better) / 20, abs=1e-6)
        assert one.low is not None
        assert one.high is not None
        assert one.low - 1e-6 <= (optimum - better) / 20 <= one.high + 1e-6


def test_sorted_by_worth() -> None:
    values = [one.value or 0.0 for one in mast_opt.marginal_values(SMALL).values]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"integers": "some"}, "'fixed' or 'free'"),
        ({"units": 0}, "at least 1"),
        ({"jobs": 0}, "at least 1"),
        ({"resources": ["sun"]}, "expected some of: storage"),
        ({"solver": "tetris"}, "use one of"),
        ({"gap": 0.1}, "leave out gap"),
    ],
)
def test_arguments_that_cannot_be_honoured(given: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.marginal_values(PROBLEM, PLAN, **given)


def test_the_seed_reaches_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    solve, seeds = Highs.solve, set()

    def noting(self: Highs, mip: Mip, params: SolveParams) -> SolveResult:
        seeds.add(params.seed)
        return solve(self, mip, params)

    monkeypatch.setattr(Highs, "solve", noting)
    mast_opt.marginal_values(PROBLEM, PLAN, resources=["gpus"], seed=7)
    assert seeds == {7}


def test_free_integers_need_a_weighted_objective() -> None:
    staged = replace(PROBLEM, objective=replace(PROBLEM.objective, order=("peak", "storage")))
    with pytest.raises(mast_opt.UsageError, match="has a lexicographic one; ask with fixed integers"):
        mast_opt.marginal_values(staged, PLAN, integers="free")
    assert mast_opt.marginal_values(staged, PLAN).values == mast_opt.marginal_values(PROBLEM, PLAN).values


def test_a_plan_that_breaks_limits_is_refused() -> None:
    with pytest.raises(mast_opt.UsageError, match="breaks limits"):
        mast_opt.marginal_values(PROBLEM.with_columns({"regions.storage_mb": PROBLEM.regions.storage_mb // 4}), PLAN)
