"""The verifier names every limit that a broken plan misses, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import PlanError
from mast_opt.problems.resource_allocation import Plan, ResourceAllocation
from mast_opt.problems.resource_allocation.policies import POLICIES
from mast_opt.problems.resource_allocation.verification.price_bound import ARRAYS, certified_bound
from mast_opt.problems.resource_allocation.verification.verifier import TOLERANCE, verify
from tests.narrowing import some
from tests.resource_allocation.reference import value_of
from tests.resource_allocation.support import gavel, small, with_policy

SHARES = np.array([9 / 19, 10 / 19, 0.0, 10 / 19, 9 / 19, 0.0])
"""Gavel's max-min plan of one GPU of each type."""


def names(problem: ResourceAllocation, share: Any, **changes: Any) -> list[str]:
    plan = Plan.of_shares(problem, np.array(share, float))
    return [violation.name for violation in verify(problem, replace(plan, **changes)).violations]


def floored() -> ResourceAllocation:
    """Gavel's two jobs, both in a group with floors that hold exactly, the first one required."""
    problem = gavel("max-min", min_rate=(28 / 19, 0.0), required=(True, False))
    tables: dict[str, Any] = {
        name: frame.to_dict(as_series=False) for name, frame in mast_opt.to_tables(problem).items()
    }
    tables["groups"] = {"group": ["all"], "min_rate": [4.0]}
    tables["jobs"]["group"] = ["all", "all"]
    return mast_opt.from_tables("resource-allocation", tables, objective={"policy": "max-min"})


def test_a_valid_plan_has_no_violation() -> None:
    assert names(gavel("max-min"), SHARES) == []
    assert names(floored(), SHARES) == []


def changed(**shares: float) -> list[float]:
    found = [float(share) for share in SHARES]
    for name, share in shares.items():
        found[int(name[1:])] = share
    return found


@pytest.mark.parametrize(
    ("share", "broken"),
    [
        (changed(c0=9 / 19 + 1e-6), ["one[job-0]", "capacity[v100]"]),
        (changed(c3=10 / 19 + 1e-6), ["one[job-1]", "capacity[v100]"]),
        (changed(c1=10 / 19 - 1e-6), ["one[job-0]", "floor[job-0]", "group_floor[all]"]),
        (changed(c4=9 / 19 - 1e-6), ["group_floor[all]"]),
        (changed(c2=-1e-7), ["share[job-0@k80]", "one[job-0]", "floor[job-0]", "group_floor[all]"]),
        (changed(c0=1 + 1e-6, c1=0, c3=0), ["share[job-0@v100]", "one[job-0]", "capacity[v100]", "group_floor[all]"]),
        (changed(c1=10 / 19 + 1e-6, c0=9 / 19 - 1e-6), ["capacity[p100]", "floor[job-0]", "group_floor[all]"]),
    ],
)
def test_every_broken_limit_is_named(share: list[float], broken: list[str]) -> None:
    assert names(floored(), share) == broken


def test_rounding_is_no_violation() -> None:
    assert names(floored(), SHARES * (1 + TOLERANCE / 4)) == []
    assert names(floored(), SHARES * (1 + TOLERANCE * 4)) != []


def test_nothing_may_use_what_there_is_nothing_of() -> None:
    problem = gavel("max-min", (0, 1, 1))
    assert names(problem, [1e-12, 0, 0, 0, 0, 0]) == ["capacity[v100]"]


def test_amounts_and_limits_of_violations() -> None:
    problem = gavel("max-min")
    (found,) = verify(problem, Plan.of_shares(problem, np.array([0.75, 0, 0, 0.5, 0, 0]))).violations
    assert (found.name, found.amount, found.limit, found.unit) == ("capacity[v100]", 0.25, 1.0, "of v100")


def test_whole_shares_are_0_or_1() -> None:
    problem = gavel("total-rate", shares="whole")
    assert names(problem, [1, 0, 0, 0, 1, 0]) == []
    assert names(problem, [0.5, 0, 0, 0, 1, 0]) == ["whole[job-0@v100]"]


@pytest.mark.parametrize("policy", ["makespan", "finish-time-fairness", "nash", "harmonic"])
def test_every_job_has_to_run_where_the_policy_asks_for_it(policy: str) -> None:
    problem = with_policy(gavel("max-min", steps=(300, 500)), policy)
    assert names(problem, [1, 0, 0, 0, 0, 0]) == ["runs[job-1]"]


def test_stated_rates_are_those_of_the_shares() -> None:
    problem = gavel("max-min")
    rate = Plan.of_shares(problem, SHARES).rate
    assert names(problem, SHARES, rate=rate * np.array([1, 1 + 1e-8])) == ["rate[job-1]"]
    assert names(problem, SHARES, rate=rate * np.array([1 - 1e-8, 1])) == ["rate[job-0]"]


def test_only_a_mechanism_takes_a_part() -> None:
    problem = gavel("nash")
    assert names(problem, SHARES, kept=np.array([0.5, 1.0])) == ["kept[job-0]"]
    with pytest.raises(PlanError, match="kept"):
        Plan(SHARES, np.ones(2), np.array([-0.1, 1.0]))


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "hierarchical"])
def test_the_objective_is_the_policys(policy: str) -> None:
    rng = np.random.default_rng(2)
    problem = small(2, policy)
    for _ in range(20):
        share = rng.random(len(problem.configurations))
        verdict = verify(problem, Plan.of_shares(problem, share))
        assert verdict.objective == pytest.approx(value_of(problem, share), rel=1e-12)


def test_metrics() -> None:
    problem = gavel("max-min", steps=(300, 0), elapsed_s=(50, 0), fair_elapsed_s=(20, 0))
    metrics = verify(problem, Plan.of_shares(problem, np.array([1.0, 0, 0, 0, 0, 0.5]))).metrics
    assert metrics == pytest.approx(
        {
            "least_normalised_rate": 0.5 / 2,
            "total_rate": 2.5,
            "total_cost": 3.1 + 0.4,
            "jobs_running": 2.0,
            "makespan_s": 150.0,
            "worst_finish_time_ratio": 200 / (20 + 300 / (3.5 / 3)),
        }
    )
    idle = verify(problem, Plan.of_shares(problem, np.zeros(6))).metrics
    assert set(idle) == {"least_normalised_rate", "total_rate", "total_cost", "jobs_running"}


def test_a_certificate_that_is_none_is_refused() -> None:
    problem = gavel("max-min")
    solution = mast_opt.solve(problem)
    assert solution.certificate is not None
    arrays = dict(solution.certificate.arrays())
    for name in ARRAYS:
        without = {other: values for other, values in arrays.items() if other != name}
        for wrong in (without, {**arrays, name: arrays[name][:-1]} if len(arrays[name]) else without):
            with pytest.raises(PlanError, match=name):
                certified_bound(problem, wrong)
        if len(arrays[name]):
            for value in (np.nan, -1.0):
                with pytest.raises(PlanError, match="certificate"):
                    certified_bound(problem, {**arrays, name: np.full(len(arrays[name]), value)})


@pytest.mark.parametrize("policy", POLICIES)
def test_prices_of_an_optimum_prove_its_value(policy: str) -> None:
    family = "features" if policy == "hierarchical" else "standard"
    problem = with_policy(mast_opt.generate("resource-allocation", family, seed=2, jobs=6), policy)
    solution = mast_opt.solve(problem, "highs", threads=1)
    bound = certified_bound(problem, some(solution.certificate).arrays())
    assert bound == pytest.approx(some(solution.objective), rel=1e-4)
