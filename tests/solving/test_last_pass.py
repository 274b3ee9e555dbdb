"""The last pass: of the plans that are as good, the one next to today or to a plan that is given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.solve_result import SolveParams, SolveResult, Status, relative_gap
from mast_opt.planner.solving import last_pass
from mast_opt.planner.solving.last_pass import SLACK, LastPass, most_allowed, settling_of
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.plan import filled, today
from mast_opt.problems.mip import Mip
from mast_opt.problems.registry import kind_of
from tests.data_placement.workshop import ints
from tests.instance_rows import DataRows

FREE = {"moved_work": 0.0, "retyped_work": 0.0, "copy": 0.0}
"""Weights with which any way to place the same work is as good."""


def company(seed: int = 1) -> DataPlacement:
    return mast_opt.generate("data-placement", "organisation", seed=seed, datasets=8, workloads=10, regions=3)


def rows(plan: Plan) -> set[tuple[int, ...]]:
    runs = {(0, *row) for row in zip(plan.run_workload.tolist(), plan.run_region.tolist(), plan.run_type.tolist())}
    return runs | {(1, *row) for row in zip(*(axis.tolist() for axis in np.nonzero(plan.place)))}


@pytest.mark.parametrize("solver", ["highs", "tetris"])
def test_the_plan_is_next_to_today_among_those_as_good(solver: str) -> None:
    problem = company()
    solution = mast_opt.solve(problem, solver, weights=FREE, threads=1, iterations=2 if solver == "tetris" else None)
    changed = solution.last_pass
    assert changed is not None
    assert solution.objective is not None
    assert solution.plan is not None
    assert changed.rows <= changed.rows_before
    now = today(problem)
    assert now is not None
    assert changed.rows == len(rows(solution.plan) ^ rows(now))
    assert changed.rows == mast_opt.diff(problem, None, solution.plan).rows, "one count in both commands"
    assert changed.price <= SLACK * solution.objective
    assert mast_opt.verify(problem.with_objective(FREE), solution.plan).objective == pytest.approx(solution.objective)


def test_the_rows_that_differ_are_said_to_be_the_plans() -> None:
    words = "differs from today in 19 rows after the last pass"
    assert str(LastPass("today", 44, 19, 0.25)) == f"{words}, in 44 before it, for 0.25 in the objective"
    assert str(LastPass("today", 19, 19, 0.0)) == f"{words}; this short search found none as good with fewer"


def test_a_proof_stays_a_proof() -> None:
    exact = mast_opt.solve(company(), "highs", weights=FREE, threads=1)
    assert exact.status is Status.OPTIMAL
    assert exact.gap is not None
    assert exact.gap <= 1e-4
    assert most_allowed(Status.OPTIMAL, 1.0, 1.0, 0.0) == 1.0
    assert most_allowed(Status.FEASIBLE, 1.0, 0.5, 0.0) == 1.0 + SLACK
    assert most_allowed(Status.FEASIBLE, 1.0, 0.999, 0.05, near=True) == 1.05
    assert most_allowed(Status.FEASIBLE, 1.0, 0.5, 0.0, near=True) == 1.05
    assert most_allowed(Status.OPTIMAL, 1.0, 0.5, 0.0, near=True) == 1.0
    gap = relative_gap(most_allowed(Status.OPTIMAL, 1.0, 0.999, 0.01), 0.999)
    assert gap is not None
    assert gap <= 0.01


def test_free_choices_stay_as_they_are_today() -> None:
    """Three regions that are alike and hold everything: where work runs today is as good as anywhere."""
    problem = company()
    stored = np.ones_like(problem.datasets.stored)
    count, regions = len(problem.workloads), len(problem.regions)
    option = np.searchsorted(problem.options.workload, np.arange(count))
    alike = problem.with_columns(
        {
            "datasets.stored": stored,
            "datasets.copies_min": np.full(len(problem.datasets), regions),
            "datasets.copies_max": np.full(len(problem.datasets), regions),
            "regions.supply_mgpu": np.full_like(problem.regions.supply_mgpu, 10**9),
            "regions.cpu_mcores": np.full(regions, 10**9),
            "regions.storage_mb": np.full(regions, 10**12),
            "cpu_quotas": problem.cpu_quotas.rows(np.zeros(0, np.int64)),
            "current_runs.workload": np.arange(count),
            "current_runs.region": np.arange(count) % regions,
            "current_runs.gpu_type": problem.options.gpu_type[option],
            "current_runs.share": np.full(count, 1000),
        }
    )
    solution = mast_opt.solve(alike, "highs", weights=FREE, threads=1)
    assert solution.last_pass is not None
    assert solution.last_pass.rows == 0
    assert solution.plan is not None
    assert solution.plan.run_region.tolist() == [w % regions for w in range(count)]


def test_a_plan_to_stay_near_hardly_changes() -> None:
    problem = company()
    before = mast_opt.solve(problem, "highs", threads=1)
    size = problem.datasets.size_mb.copy()
    size[0] += size[0] // 100
    grown = problem.with_columns({"datasets.size_mb": size})
    near = mast_opt.solve(grown, "highs", threads=1, near=before.plan)
    cold = mast_opt.solve(grown, "highs", threads=1, gap=0.0)
    assert before.plan is not None
    assert near.plan is not None
    assert cold.plan is not None
    assert near.objective is not None
    assert cold.objective is not None
    assert near.last_pass is not None
    assert near.last_pass.reference == "near"
    assert len(rows(before.plan) ^ rows(near.plan)) == near.last_pass.rows
    assert near.last_pass.rows <= len(rows(before.plan) ^ rows(cold.plan))
    assert near.objective <= cold.objective * (1 + 2 * SLACK)


def test_large_programs_are_searched_between_the_two_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_pass, "FREE_COLUMNS", 0)
    problem, other = company(), company()
    there = mast_opt.solve(other, "highs", threads=1, weights=FREE)
    found = mast_opt.solve(problem, "highs", threads=1, near=there.plan)
    assert found.last_pass is not None
    assert found.last_pass.rows <= found.last_pass.rows_before


def test_what_cannot_be_kept_near_is_refused() -> None:
    problem = company()
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    with pytest.raises(UnsupportedOption, match="not together with a part to freeze"):
        mast_opt.solve(problem, "highs", near=plan, freeze={"region": [problem.regions.labels[0]]})
    fleet = mast_opt.generate("server-assignment", seed=1, servers=6, reservations=2, datacenters=2)
    assigned = mast_opt.solve(fleet, "highs", threads=1)
    assert assigned.last_pass is None
    with pytest.raises(UnsupportedOption, match="data placement"):
        mast_opt.solve(fleet, "highs", near=assigned.plan)


def test_no_pass_where_today_is_not_known() -> None:
    problem = company()
    nowhere = replace(problem, current_runs=problem.current_runs.rows(np.zeros(0, np.int64)))
    assert mast_opt.solve(nowhere, "highs", threads=1).last_pass is None


def test_no_pass_where_there_is_no_time_to_build_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_pass, "COLUMNS_A_SECOND", 0)
    problem = company()
    timed = mast_opt.solve(problem, "highs", threads=1, time_limit_s=60.0)
    assert timed.last_pass is None
    assert mast_opt.solve(problem, "highs", threads=1, time_limit_s=60.0, near=timed.plan).last_pass is not None


@dataclass
class _Rounding:
    """A backend whose first answer is a plan that rounding made worse; HiGHS for the rest."""

    first: Any
    programs: list[Mip] = field(default_factory=list)

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        self.programs.append(mip)
        if len(self.programs) > 1:
            return backends.get("highs").solve(mip, params)
        return SolveResult(Status.OPTIMAL, self.first, 0.0, 0.0, None, "")


def test_shares_that_rounding_made_worse_are_solved_for_again() -> None:
    """Of a job of 3 GPUs, east has room for 1 and west for 2; whether a small job moves as well changes nothing."""
    builder = DataRows("halves")
    for name, gpus in (("east", 1), ("west", 2)):
        builder.add_region(name, storage_tb=9, cpu_cores=9, gpus={"a100": gpus})
    builder.add_dataset("x", size_tb=1, replicas=["east", "west"], copies_min=2)
    shared: dict[str, Any] = {"tier": 0, "cpu_cores": 1, "reads": {"x": 1}, "current_region": "east"}
    builder.add_workload("job", gpus={"a100": 3}, splittable=True, **shared)
    builder.add_workload("small", gpus={}, **shared)
    problem = builder.build().with_objective(FREE | {"peak": 0.0, "idle": 0.0, "storage": 0.0})
    place = np.ones((1, 2), np.bool_)

    def split(east: int, small: int) -> Plan:
        runs = ints(0, 0, 1), ints(0, 1, small), ints(0, 0, 1), ints(east, 1000 - east, 1000)
        return filled(problem, place, [*runs])

    plan, worse = split(333, 1), split(600, 0)
    verdict = mast_opt.verify(problem, plan)
    assert mast_opt.verify(problem, worse).objective > verdict.objective
    kind = kind_of(problem)
    settling = settling_of(kind, problem, None, None)
    assert settling is not None
    backend: Any = _Rounding(kind.formulate(problem, "base").encode(worse))
    _, better, changed = settling.settled(plan, verdict, verdict.objective + 1e-9, backend, SolveParams(threads=1))
    assert (changed.rows_before, changed.rows) == (3, 1)
    assert better.objective <= verdict.objective + 1e-9


def test_a_plan_that_is_as_good_is_taken_without_a_search() -> None:
    problem = company()
    near = mast_opt.solve(problem, "highs", threads=1)
    other = mast_opt.solve(problem, "highs", weights=FREE | {"storage": 0.0}, threads=1)
    assert near.plan is not None
    assert other.plan is not None
    settling = settling_of(kind_of(problem), problem, near.plan, None)
    assert settling is not None
    worth = mast_opt.verify(problem, other.plan.made_for(problem))
    no_solver: Any = None
    plan, verdict, changed = settling.settled(other.plan, worth, worth.objective, no_solver, SolveParams())
    assert rows(plan) == rows(near.plan) != rows(other.plan)
    assert changed.rows == 0 < changed.rows_before
    assert verdict.objective == pytest.approx(near.objective)
    assert changed.price <= 0
