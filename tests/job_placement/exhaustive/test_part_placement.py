"""Jobs of several parts in exhaustive: sound plans, no better than the optimum, and the best place of all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

import mast_opt
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.kind import KIND
from tests.job_placement.strategies import problems
from tests.job_placement.test_parts import SPREAD, fleet, plan, train
from tests.narrowing import some


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(servers=4, jobs=4, parts=True))
def test_plans_are_sound_and_no_better_than_the_optimum(problem: JobPlacement) -> None:
    """solve verifies what it returns."""
    problem = _priced(problem, "exhaustive")
    found = mast_opt.solve(problem, "exhaustive", threads=1)
    optimum = some(mast_opt.solve(problem, "highs", gap=1e-9, threads=1).objective)
    assert some(found.objective) >= optimum - 1e-6 * (1 + abs(optimum))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(servers=4, jobs=4, parts=True))
def test_repair_lies_between_its_bound_and_what_it_began_with(problem: JobPlacement) -> None:
    """Without the exact solution of the whole program, which would decide such small instances by itself."""
    problem = _priced(problem, "exhaustive+repair")
    params = {"whole_share": 0.0, "sub_mip_interval": 100}
    found = mast_opt.solve(problem, "exhaustive+repair", threads=1, iterations=6, seed=0, params=params)
    first = mast_opt.solve(problem, "exhaustive", threads=1, params={"placement": "best-fit", "chain_tries": 0})
    optimum = some(mast_opt.solve(problem, "highs", gap=1e-9, threads=1).objective)
    slack = 1e-6 * (1 + abs(optimum))
    assert some(found.bound) - slack <= optimum <= some(found.objective) + slack
    assert some(found.objective) <= some(first.objective) + slack


def _priced(problem: JobPlacement, solver: str) -> JobPlacement:
    """The problem without weights of terms that the solver does not price."""
    weights = dict(problem.objective.weights)
    weights |= dict.fromkeys(KIND.solvers.heuristics[solver].pricing.missing(problem, weights), 0.0)
    return replace(problem, objective=replace(problem.objective, weights=weights))


@pytest.mark.parametrize("readers", [4, 8])
def test_parts_go_to_the_region_that_holds_them_all(readers: int) -> None:
    problem = train(fleet(), within="region", readers=readers)
    found = some(mast_opt.solve(problem, "exhaustive", threads=1).plan)
    assert found == plan(problem, *SPREAD[:2], ("train/readers", "c1", readers))


def test_no_part_is_left_behind_where_another_does_not_fit() -> None:
    """The GPUs that the trainers would have had go to the next job."""
    builder = fleet()
    train(builder, within="region", readers=11)
    problem = builder.add_job("next", tier=1, tasks=2, gpus=4, cpu_cores=1, memory_gb=1).build()
    solution = mast_opt.solve(problem, "exhaustive", threads=1)
    assert some(solution.plan) == plan(problem, ("next", "g1", 1), ("next", "g2", 1))
    assert "1 of 2 jobs placed" in solution.message


def test_the_place_without_victims_is_preferred() -> None:
    """Both regions hold a trainer of two GPUs and a reader; in east, which is listed first, cluster cores is full."""
    builder = fleet().add_running("old", tier=2, preemptible=True, gpu_hours_at_risk=1)
    builder.add_allocation("old", "c1", gpus=0, cpu_cores=60, memory_gb=1)
    builder.add_running("other", tier=2, preemptible=False, gpu_hours_at_risk=1)
    for server in ("g1", "g2"):
        builder.add_allocation("other", server, gpus=0, cpu_cores=7, memory_gb=1)
    builder.add_job("train", tier=0, within="region")
    builder.add_job_part("train", "trainer", tasks=1, gpus=2, cpu_cores=1, memory_gb=1)
    builder.add_job_part("train", "reader", tasks=1, gpus=0, cpu_cores=10, memory_gb=1)
    problem = builder.build()
    found = some(mast_opt.solve(problem, "exhaustive", threads=1).plan)
    assert found == plan(problem, ("train/trainer", "w1", 1), ("train/reader", "w1", 1))
    assert not found.preempt.any()


def _repaired(problem: JobPlacement) -> set[str]:
    """The jobs and parts that repair admits without exact solutions."""
    params = {"whole_share": 0.0, "sub_mip_interval": 100, "relaxation_passes": 100}
    solution = mast_opt.solve(problem, "exhaustive+repair", threads=1, iterations=4, seed=0, params=params)
    return {problem.jobs.labels[j] for j in some(solution.plan).job.tolist()}


@pytest.mark.parametrize(("value", "admitted"), [(9, {"train/trainers", "train/readers"}), (1, {"first", "second"})])
def test_repair_evicts_for_all_parts_what_is_worth_less(value: int, admitted: set[str]) -> None:
    """Either job holds what one of the parts needs; each is worth 3."""
    builder = fleet()
    builder.add_job("first", tier=0, tasks=2, gpus=4, cpu_cores=1, memory_gb=1, value=3)
    builder.add_job("second", tier=0, tasks=1, gpus=0, cpu_cores=64, memory_gb=1, value=3)
    builder.add_running("old", tier=0, preemptible=False, gpu_hours_at_risk=1)
    builder.add_allocation("old", "w1", gpus=0, cpu_cores=60, memory_gb=1)
    assert _repaired(train(builder, within="region", value=value)) == admitted


@pytest.mark.parametrize("place", ["gpus", "cores"])
def test_repair_evicts_all_parts_together(place: str) -> None:
    """A job that is worth more needs what one part holds; what the other one held is free for a third job."""
    builder = fleet()
    builder.add_running("old", tier=0, preemptible=False, gpu_hours_at_risk=1)
    builder.add_allocation("old", "w1", gpus=2, cpu_cores=60, memory_gb=1)
    train(builder, within="region", value=3)
    need = {"gpus": (2, 4, 1), "cores": (1, 0, 64)}
    for name, at, value in (("more", place, 9), ("third", "cores" if place == "gpus" else "gpus", 1)):
        tasks, gpus, cores = need[at]
        builder.add_job(name, tier=0, tasks=tasks, gpus=gpus, cpu_cores=cores, memory_gb=1, value=value)
    assert _repaired(builder.build()) == {"more", "third"}
