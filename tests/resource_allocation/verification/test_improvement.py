"""A plan that is better at a later level with one change is not optimal, whatever its smallest value is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.cli import main
from mast_opt.core.solve_result import Limit, Status
from mast_opt.problems.resource_allocation import Plan
from mast_opt.problems.resource_allocation.formulation.program import LEXIMIN
from mast_opt.problems.resource_allocation.methods import solver
from mast_opt.problems.resource_allocation.verification.verifier import improvement
from mast_opt.problems.search.interface import SearchContext, SearchResult
from tests.resource_allocation.support import gavel, odd

WAITING = gavel("max-min", (2, 0, 0), ((1.0, 1.0, 1.0),) * 3, shares="whole")
"""Three equal jobs and two GPUs: the smallest rate is 0 whatever is done."""


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_what_is_left_over_could_be_used(share: float) -> None:
    problem = gavel("max-min")
    found = mast_opt.solve(problem).plan
    assert found is not None
    assert improvement(problem, found) == ""
    assert improvement(problem, Plan.of_shares(problem, share * found.share)) == "job-0@v100 can run more"


def test_one_more_job_could_run() -> None:
    shares = np.zeros((3, 3))
    assert improvement(WAITING, Plan.of_shares(WAITING, shares.ravel())) == "job-0@v100 can run more"
    shares[0, 0] = 1
    assert improvement(WAITING, Plan.of_shares(WAITING, shares.ravel())) == "job-1@v100 can run more"
    shares[2, 0] = 1
    assert improvement(WAITING, Plan.of_shares(WAITING, shares.ravel())) == ""


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("policy", [*LEXIMIN, "hierarchical"])
def test_optimal_plans_have_none(policy: str, whole: bool) -> None:
    for seed in range(0 if whole and policy == "hierarchical" else 10):
        problem = odd(seed, policy, whole=whole)
        solution = mast_opt.solve(problem)
        if solution.plan is not None:
            assert improvement(problem, solution.plan) == "", seed


def solved_as(plan: Plan, finished: bool, monkeypatch: pytest.MonkeyPatch) -> mast_opt.Solution[Plan]:
    """The answer where the method returns this plan, with its value as the bound."""

    def claimed(problem: object, tools: SearchContext, start: object, *rest: object) -> SearchResult[Plan]:
        return SearchResult(plan, 0.0, None if finished else Limit.OTHER, "", finished=finished)

    monkeypatch.setattr(solver, "_by_method", claimed)
    return mast_opt.solve(WAITING)


def test_a_claim_that_the_verifier_can_refute_is_not_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = Plan.of_shares(WAITING, np.zeros(9))
    found = solved_as(idle, True, monkeypatch)
    assert (found.status, found.message) == (
        Status.FEASIBLE,
        "not optimal at a later level: job-0@v100 can run more",
    )
    two = Plan.of_shares(WAITING, np.array([1.0, 0, 0, 1, 0, 0, 0, 0, 0]))
    assert solved_as(two, True, monkeypatch).status is Status.OPTIMAL
    assert solved_as(two, False, monkeypatch).status is Status.FEASIBLE


def test_verify_refuses_the_status_of_a_stored_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instance, plan = tmp_path / "instance", tmp_path / "plan"
    mast_opt.write(WAITING, instance)
    solution = mast_opt.solve(WAITING)
    mast_opt.write_plan(WAITING, solution, plan)
    assert main(["verify", str(instance), str(plan)]) == 0
    idle = Plan.of_shares(WAITING, np.zeros(9))
    verdict = mast_opt.verify(WAITING, idle)
    mast_opt.write_plan(WAITING, replace(solution, plan=idle, verdict=verdict), plan)
    capsys.readouterr()
    assert main(["verify", str(instance), str(plan)]) == 5
    assert "job-0@v100 can run more" in " ".join(capsys.readouterr().out.split())
