"""The bound of a certificate holds for all prices, and that of exhaustive+repair is checked by verify."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mast_opt
from mast_opt.cli.bound_check import check_bound
from mast_opt.core.errors import PlanError
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.backends import get
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.exhaustive.capacity_prices import capacity_prices
from mast_opt.problems.job_placement.formulation.aggregated import relaxation
from mast_opt.problems.job_placement.units import GPU
from mast_opt.problems.job_placement.verification.certificate import CapacityBound, certified_bound
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.instance_rows import JobRows
from tests.job_placement.brute import Brute
from tests.job_placement.strategies import problems
from tests.job_placement.test_moves import scattered
from tests.narrowing import some

REAL = Path(__file__).parents[3] / "instances" / "job_placement" / "alibaba-philly"


def shape(problem: JobPlacement) -> tuple[int, int, int]:
    return len(problem.servers), len(problem.standing.tiers), 3


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(jobs=2, running=2, moves=True), seed=st.integers(0, 2**32))
def test_no_prices_prove_more_than_the_optimum(problem: JobPlacement, seed: int) -> None:
    optimum, rng = Brute(problem).optimum()[0], np.random.default_rng(seed)
    solved = capacity_prices(problem, CapacityBound(problem), get("highs").solve, SolveParams(threads=1))
    proven = [np.zeros(shape(problem)) if solved is None else solved.capacity]
    proven.append(proven[0] * rng.choice([0.0, 0.5, 1.0, 3.0], shape(problem)))
    proven.append(rng.choice([0.0, 1e-3, 0.1, 10.0], shape(problem)) * rng.uniform(size=shape(problem)))
    for prices in proven:
        assert 0 <= certified_bound(problem, {"capacity": prices}) <= optimum + 1e-7 * (1 + optimum)


def one_server() -> JobPlacement:
    """A server that a less important job holds, which may be stopped, and a job that waits for all of it."""
    builder = JobRows()
    builder.add_region("west").add_cluster("c", region="west")
    builder.add_server("s", "c", gpus=4, gpu_type="h100", cpu_cores=8, memory_gb=64)
    builder.add_running("low", tier=1, preemptible=True, gpu_hours_at_risk=0)
    builder.add_allocation("low", "s", gpus=4, cpu_cores=1, memory_gb=1)
    builder.add_job("high", tier=0, tasks=1, gpus=4, cpu_cores=1, memory_gb=1)
    problem = builder.build()
    assert isinstance(problem, JobPlacement)
    return problem


def test_a_victim_gives_back_all_that_its_place_is_worth() -> None:
    """At the price at which the server is worth just the waiting job, the bound is the cost of stopping its holder."""
    problem = one_server()
    bound, prices = CapacityBound(problem), np.zeros(shape(problem))
    prices[0, 0, GPU] = bound.rejected[0] / problem.held[0, GPU]
    assert 0 < bound.stopped[0] < bound.rejected[0]
    assert certified_bound(problem, {"capacity": prices}) == pytest.approx(bound.stopped[0])


def test_a_job_pays_only_the_rows_of_its_tier_and_more_important_ones() -> None:
    """The row of tier 1 does not limit the job of tier 0, so its price proves nothing."""
    problem = one_server()
    bound, prices = CapacityBound(problem), np.zeros(shape(problem))
    assert problem.queue_tier.tolist() == [0]
    prices[0, 1, GPU] = bound.rejected[0] / problem.held[0, GPU]
    assert prices[0, 1, GPU] > 0
    assert certified_bound(problem, {"capacity": prices}) == 0


def test_what_movable_jobs_leave_is_room() -> None:
    """Two GPUs of each server are held by jobs that cannot be stopped; a job of four fits if one of them moves."""
    problem = scattered()
    free = {"capacity": np.zeros(shape(problem))}
    assert certified_bound(problem, free) == 0
    fixed = replace(problem, movable=problem.movable.rows(np.zeros(len(problem.movable), np.bool_)))
    assert certified_bound(fixed, free) == pytest.approx(CapacityBound(fixed).rejected[0]) != 0


def test_the_prices_of_the_relaxation_prove_its_optimum() -> None:
    """Far above the relaxation that adds servers up; without prices, only jobs that fit nowhere count."""
    problem = mast_opt.read(REAL)
    assert isinstance(problem, JobPlacement)
    program = relaxation(problem).mip
    linear = replace(program, integral=np.zeros_like(program.integral))
    added_up = some(get("highs").solve(linear, SolveParams(threads=1)).objective)
    bound = CapacityBound(problem)
    prices = some(capacity_prices(problem, bound, get("highs").solve, SolveParams(threads=1)))
    assert bound.value(prices) > 2 * added_up
    assert certified_bound(problem, prices.arrays()) == bound.value(prices)
    nowhere = [j for j in range(len(problem.jobs)) if not len(bound.places(j).server)]
    least = certified_bound(problem, {"capacity": 0 * prices.capacity})
    assert least >= bound.rejected[nowhere].sum() * (1 - 1e-9) > 0


def test_a_plan_of_repair_proves_its_bound(tmp_path: Path) -> None:
    problem = mast_opt.read(REAL)
    solution = mast_opt.solve(problem, "exhaustive+repair", iterations=1, threads=1, params={"whole_share": 0.0})
    proof = check_bound(
        problem, verify(problem, some(solution.plan)), {"bound": solution.bound}, some(solution.certificate).arrays()
    )
    assert proof.checked
    assert not proof.wrong
    assert some(proof.bound) > 100


@pytest.mark.parametrize("change", ["negative", "shape", "missing"])
def test_what_is_no_certificate_is_refused(change: str) -> None:
    problem = mast_opt.generate("job-placement", seed=1, regions=2, clusters=1, servers=2, jobs=3)
    assert isinstance(problem, JobPlacement)
    arrays = {
        "negative": {"capacity": np.full(shape(problem), -1.0)},
        "shape": {"capacity": np.zeros((1, 1, 1))},
        "missing": {},
    }[change]
    with pytest.raises(PlanError):
        certified_bound(problem, arrays)
