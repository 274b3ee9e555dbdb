"""POP: plans that keep every limit, bounds that hold for the whole, and what cannot be divided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.solve_result import Limit, Status
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.formulation.program import LEXIMIN
from mast_opt.problems.resource_allocation.methods.subproblems import parts_of, subproblem
from mast_opt.problems.resource_allocation.policies import POLICIES
from mast_opt.problems.resource_allocation.verification.price_bound import certified_bound
from tests.narrowing import some
from tests.resource_allocation.methods.test_limits import Counting, counting  # noqa: F401 - a fixture
from tests.resource_allocation.support import gavel, small, with_policy

DIVIDED = tuple(policy for policy in POLICIES if policy != "hierarchical")


def packed(policy: str, seed: int, jobs: int = 9) -> ResourceAllocation:
    """Jobs alone and in pairs, without floors."""
    problem = mast_opt.generate("resource-allocation", "packing", seed=seed, jobs=jobs, types=2)
    return with_policy(problem, policy)


@pytest.mark.parametrize("rounds", [0, 3])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", DIVIDED)
def test_the_bound_holds_for_the_whole(policy: str, seed: int, rounds: int) -> None:
    problem = packed(policy, seed)
    if policy == "cost":
        problem = replace(problem, jobs=replace(problem.jobs, min_rate=0.1 * problem.jobs.fair_rate))
    best = some(mast_opt.solve(problem, gap=1e-9).objective)
    found = mast_opt.solve(problem, gap=1e-9, params={"pop": 3, "pop_rounds": rounds})
    assert found.status.has_solution
    slack = 1e-6 * abs(best) + 1e-9
    sense = problem.sense
    assert sense.minimised(best) <= sense.minimised(some(found.objective)) + slack
    assert sense.minimised(some(found.bound)) <= sense.minimised(best) + slack
    assert certified_bound(problem, some(found.certificate).arrays()) == pytest.approx(some(found.bound), rel=1e-12)
    assert found.message.startswith("POP in 3 parts")
    assert found.params == {"pop": 3} | ({} if rounds == 3 else {"pop_rounds": rounds})


@pytest.mark.parametrize("policy", ["total-rate", "max-min", "makespan"])
def test_rounds_over_all_jobs_make_good_what_the_division_costs(policy: str) -> None:
    problem = packed(policy, 5, jobs=24)
    best = some(mast_opt.solve(problem, gap=1e-9).objective)
    lost = [
        problem.sense.minimised(some(mast_opt.solve(problem, params={"pop": 6, "pop_rounds": rounds}).objective) - best)
        for rounds in (0, 1, 3, 60)
    ]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] > 0.005 * abs(best)
    assert lost[2] < lost[0] / 2
    assert abs(lost[3]) <= 1e-6 * abs(best)


@pytest.mark.parametrize("policy", ["total-rate", "max-min", "nash", "finish-time-fairness"])
def test_parts_of_equal_jobs_are_the_optimum_of_the_whole(policy: str) -> None:
    problem = gavel(policy, supply=(2, 2, 2), rates=((3.0, 2.0, 1.0),) * 6, steps=(300,) * 6)
    whole = mast_opt.solve(problem)
    parts = mast_opt.solve(problem, params={"pop": 3, "pop_rounds": 0})
    open_levels = policy in LEXIMIN  # of a single part each
    assert parts.status is (Status.FEASIBLE if open_levels else Status.OPTIMAL)
    assert parts.objective == pytest.approx(whole.objective, rel=1e-6)
    assert parts.bound == pytest.approx(whole.bound, rel=1e-6)


def test_the_result_does_not_depend_on_the_number_of_workers() -> None:
    problem = packed("max-min", 1, jobs=20)
    plans = [some(mast_opt.solve(problem, params={"pop": 5}, threads=threads).plan) for threads in (1, 2, 5)]
    for plan in plans[1:]:
        np.testing.assert_array_equal(plan.share, plans[0].share)
    others = some(mast_opt.solve(problem, params={"pop": 5}, threads=1, seed=1).plan)
    assert not np.array_equal(others.share, plans[0].share)


def test_parts_have_every_job_once_and_every_configuration_at_most_once() -> None:
    problem = packed("max-min", 2)
    parts = parts_of(problem, np.arange(9) % 3, 3)
    assert sorted(np.concatenate([rows.jobs for rows in parts]).tolist()) == list(range(9))
    for at, rows in enumerate(parts):
        part = subproblem(problem, rows)
        assert part.jobs.labels == tuple(problem.jobs.labels[job] for job in range(at, 9, 3))
        for label, cost in zip(part.configurations.labels, part.configurations.cost, strict=True):
            there = problem.configurations.labels.index(label)
            assert problem.configurations.cost[there] == cost
            ours = part.members.configuration == part.configurations.labels.index(label)
            theirs = problem.members.configuration == there
            np.testing.assert_array_equal(part.members.rate[ours], problem.members.rate[theirs])
            named = [part.jobs.labels[job] for job in part.members.job[ours].tolist()]
            assert named == [problem.jobs.labels[job] for job in problem.members.job[theirs].tolist()]
    stayed = {label for rows in parts for label in subproblem(problem, rows).configurations.labels}
    cut = set(problem.configurations.labels) - stayed
    assert cut
    assert all("+" in label for label in cut)


def hopeless() -> ResourceAllocation:
    """Half of the only GPU is too little for the floor of the first job."""
    return mast_opt.from_tables(
        "resource-allocation",
        {
            "resources": {"resource": ["gpu"], "amount": [1.0]},
            "jobs": {"job": ["large", "small"], "min_rate": [1.6, 0.0]},
            "configurations": {"configuration": ["large", "small"]},
            "members": {"configuration": ["large", "small"], "job": ["large", "small"], "rate": [2.0, 1.0]},
            "uses": {"configuration": ["large", "small"], "resource": ["gpu", "gpu"], "amount": [1.0, 1.0]},
        },
        objective={"policy": "total-rate"},
    )


def test_a_part_without_an_allocation_proves_nothing() -> None:
    problem = hopeless()
    whole = mast_opt.solve(problem)
    assert whole.objective == pytest.approx(2.0)
    found = mast_opt.solve(problem, params={"pop": 2})
    assert (found.status, found.limit, found.bound) == (Status.NO_SOLUTION, Limit.OTHER, None)
    assert "the part with large has no allocation, fewer parts may have one" in found.message
    begun = mast_opt.solve(problem, params={"pop": 2}, start=whole.plan)
    assert begun.status is Status.FEASIBLE
    assert begun.objective == pytest.approx(2.0)


def test_out_of_time(counting: Counting) -> None:  # noqa: F811
    problem = packed("max-min", 1)
    best = mast_opt.solve(problem)
    counting.most = 1
    counting.asked.clear()
    none = mast_opt.solve(problem, params={"pop": 3}, threads=1)
    assert (none.status, none.limit) == (Status.NO_SOLUTION, Limit.TIME)
    assert "was not solved (no time left)" in none.message
    kept = mast_opt.solve(problem, params={"pop": 3}, threads=1, start=best.plan)
    assert kept.status is Status.FEASIBLE
    assert kept.objective == pytest.approx(best.objective, rel=1e-9)


def test_the_time_is_divided_among_the_parts(counting: Counting) -> None:  # noqa: F811
    problem = packed("total-rate", 1)
    mast_opt.solve(problem, params={"pop": 3, "pop_rounds": 0}, threads=1, time_limit_s=90)
    limits = [some(params.time_limit_s) for params in counting.asked]
    assert limits == pytest.approx([30, 45, 90], rel=0.1)


def test_a_start_is_taken_into_the_parts() -> None:
    problem = packed("max-min", 3)
    best = mast_opt.solve(problem)
    found = mast_opt.solve(problem, params={"pop": 3, "pop_rounds": 0}, start=best.plan)
    assert some(found.objective) >= some(best.objective) * (1 - 1e-9)


def test_what_cannot_be_divided_is_refused() -> None:
    plain = packed("max-min", 1)
    floors = small(1, "max-min")
    floors = replace(floors, groups=replace(floors.groups, min_rate=np.array([0.1, 0.0])))
    refused = {
        "there are 9 jobs; expected at most as many parts": plain,
        "shares are whole": replace(plain, whole=True),
        "the policy hierarchical shares between groups": small(1, "hierarchical"),
        "groups have floors": floors,
        "the mechanism partial-allocation compares": replace(
            plain, objective=Objective({}, policy="nash", mechanism="partial-allocation")
        ),
    }
    for words, problem in refused.items():
        count = 10 if problem is plain else 2
        with pytest.raises(UnsupportedOption, match=f"pop = {count} cannot be used here: {words}"):
            mast_opt.solve(problem, params={"pop": count})
    with pytest.raises(mast_opt.UsageError, match="pop"):
        mast_opt.solve(plain, params={"pop": 0})


def test_a_job_that_only_runs_with_others_is_named() -> None:
    pairs = mast_opt.from_tables(
        "resource-allocation",
        {
            "resources": {"resource": ["gpu"], "amount": [1.0]},
            "jobs": {"job": ["a", "b"]},
            "configurations": {"configuration": ["a+b", "b"]},
            "members": {"configuration": ["a+b", "a+b", "b"], "job": ["a", "b", "b"], "rate": [1.0, 1.0, 2.0]},
            "uses": {"configuration": ["a+b", "b"], "resource": ["gpu", "gpu"], "amount": [1.0, 1.0]},
        },
        objective={"policy": "max-min"},
    )
    with pytest.raises(UnsupportedOption, match="pop = 2 leaves a without a configuration"):
        mast_opt.solve(pairs, params={"pop": 2})
