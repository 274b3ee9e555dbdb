"""Starts, limits and options: what a solve that is cut short gives, and what a backend is asked."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip
from mast_opt.problems.resource_allocation import Plan, ResourceAllocation
from mast_opt.problems.resource_allocation.policies import POLICIES
from tests.resource_allocation.support import gavel, small

HIGHS = backends.get("highs")


class Counting:
    """HiGHS that remembers what it is asked, and stops after so many programs."""

    name, package = "counting", ""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.prices = True
        self.asked: list[SolveParams] = []
        self.columns: list[int] = []

    def version(self) -> str:
        return "1"

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        self.asked.append(params)
        self.columns.append(mip.shape[1])
        if len(self.asked) > self.most:
            return SolveResult(Status.NO_SOLUTION, None, None, None, Limit.TIME, "no time left")
        result = HIGHS.solve(mip, params)
        return result if self.prices else replace(result, row_price=None)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    backend = Counting()
    monkeypatch.setattr("mast_opt.planner.solving.dispatch.backends.get", lambda name: backend)
    return backend


@pytest.mark.parametrize("policy", POLICIES)
def test_a_limit_between_a_program_and_its_dual_is_a_limit(policy: str, counting: Counting) -> None:
    counting.most, counting.prices = 1, False
    cut = mast_opt.solve(small(1, policy))
    assert (cut.status, cut.limit, cut.message) == (Status.NO_SOLUTION, Limit.TIME, "no time left")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_solve_without_time_gives_nothing_or_the_start(policy: str, counting: Counting) -> None:
    problem = small(1, policy)
    best = mast_opt.solve(problem)
    counting.most = 0
    nothing = mast_opt.solve(problem)
    assert (nothing.status, nothing.limit, nothing.message) == (Status.NO_SOLUTION, Limit.TIME, "no time left")
    kept = mast_opt.solve(problem, start=best.plan)
    assert (kept.status, kept.limit, kept.bound) == (Status.FEASIBLE, Limit.TIME, None)
    assert kept.objective == pytest.approx(best.objective, rel=1e-9)


@pytest.mark.parametrize("policy", ["max-min", "finish-time-fairness", "nash", "harmonic", "hierarchical"])
def test_a_solve_that_is_cut_short_keeps_what_it_has(policy: str, counting: Counting) -> None:
    problem = small(1, policy, jobs=6)
    plenty = replace(problem.resources, amount=problem.resources.amount * 3)
    problem = replace(problem, resources=plenty)
    best = mast_opt.solve(problem)
    counting.most = len(counting.asked) - 1
    assert counting.most > 0
    counting.asked.clear()
    short = mast_opt.solve(problem)
    assert short.plan is not None
    assert short.verdict is not None
    assert short.verdict.ok
    assert short.objective is not None
    assert best.objective is not None
    assert problem.sense.minimised(short.objective) >= problem.sense.minimised(best.objective) - 1e-6
    if short.bound is not None and short.status is Status.FEASIBLE:
        assert short.limit is not None


def test_what_a_backend_is_asked(counting: Counting) -> None:
    stop = threading.Event()
    mast_opt.solve(gavel("max-min"), time_limit_s=9, seed=7, threads=2, options={"presolve": "off"}, cancel=stop)
    for params in counting.asked:
        assert (params.seed, params.threads, params.options) == (7, 2, (("presolve", "off"),))
        assert params.time_limit_s is not None
        assert 0 < params.time_limit_s <= 9
        assert params.cancel is stop


def test_cancelled_before_it_began() -> None:
    stop = threading.Event()
    stop.set()
    solution = mast_opt.solve(gavel("max-min"), cancel=stop)
    assert solution.status is Status.NO_SOLUTION
    assert solution.limit is Limit.INTERRUPT


def test_events_are_in_the_policys_sense() -> None:
    problem = small(1, "nash", jobs=6)
    events: list[Any] = []
    solution = mast_opt.solve(problem, on_event=events.append)
    known = [event for event in events if event.incumbent is not None and event.bound is not None]
    assert all(event.sense is Sense.MAX and event.incumbent <= event.bound * (1 + 1e-9) for event in known)
    assert all(event.gap >= 0 for event in known)
    assert [event.incumbent for event in known] == sorted(event.incumbent for event in known)
    assert known[-1].incumbent == pytest.approx(solution.objective)


def test_a_start_may_break_limits() -> None:
    problem = gavel("max-min")
    start = Plan.of_shares(problem, np.ones(6))
    assert mast_opt.solve(problem, start=start).objective == pytest.approx(24 / 19)
    whole = replace(problem, whole=True)
    assert mast_opt.solve(whole, start=start).objective == pytest.approx(1.0)


def without(problem: ResourceAllocation, plan: Plan, job: int) -> Plan:
    """The plan without the shares in which a job takes part."""
    share = plan.share.copy()
    share[problem.members.configuration[problem.members.job == job]] = 0
    return Plan.of_shares(problem, share)


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"hierarchical"}))
def test_after_an_arrival_the_last_plan_leads_to_the_same_optimum(policy: str) -> None:
    for seed in range(4):
        problem = small(seed, policy)
        cold = mast_opt.solve(problem)
        if cold.plan is None:
            continue
        again = mast_opt.solve(problem, start=without(problem, cold.plan, len(problem.jobs) - 1))
        assert again.status == cold.status
        assert again.objective == pytest.approx(cold.objective, rel=2e-6)


def test_after_an_arrival_a_program_begins_with_what_the_last_plan_uses(counting: Counting) -> None:
    problem: ResourceAllocation = mast_opt.generate("resource-allocation", "packing", seed=1, jobs=16)
    cold = mast_opt.solve(problem)
    assert cold.plan is not None
    width = counting.columns[0]
    counting.columns.clear()
    again = mast_opt.solve(problem, start=without(problem, cold.plan, 15))
    assert counting.columns[0] < width / 4
    assert again.objective == pytest.approx(cold.objective, rel=1e-9)
    assert again.bound == pytest.approx(cold.bound, rel=1e-6)


def test_a_start_of_whole_shares_is_offered_to_the_backend(counting: Counting) -> None:
    for policy in ("total-rate", "max-min", "makespan", "finish-time-fairness", "nash"):
        problem = gavel(policy, shares="whole", steps=(300, 500))
        best = mast_opt.solve(problem)
        counting.asked.clear()
        again = mast_opt.solve(problem, start=best.plan)
        assert again.objective == best.objective
        params = counting.asked[0]
        assert params.start is not None
        assert best.plan is not None
        np.testing.assert_array_equal(params.start[:6], best.plan.share)
        if policy != "total-rate" and policy != "nash":
            assert params.start[6] == pytest.approx(best.objective)
