"""Tabu search over single tasks: optimal where everything can be enumerated, and only where costs add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.planner.importers.gap import Gap, job_placement
from mast_opt.planner.solving import solve
from mast_opt.problems import backends
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.exhaustive.batch_state import batch_state_of
from mast_opt.problems.job_placement.exhaustive.objective import term_prices_of
from mast_opt.problems.job_placement.exhaustive.params import AssignmentParams
from mast_opt.problems.job_placement.exhaustive.penalised_assignment import PenalisedAssignment, is_assignment
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.units import CPU
from mast_opt.problems.job_placement.verification.certificate import CapacityBound
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import SearchMonitor, StoppingCriteria
from tests.narrowing import some


def tight(agents: int, items: int, seed: int, share: float = 0.8) -> Gap:
    rng = np.random.default_rng(seed)
    weight = rng.integers(5, 26, (agents, items))
    capacity = np.maximum((weight.sum(axis=1) * share / agents).astype(np.int64), weight.max())
    return Gap(rng.integers(10, 51, (agents, items)), weight, capacity)


def least_cost(gap: Gap) -> int:
    """Of all ways to give each item an agent."""
    agents, items = gap.cost.shape
    at = np.array(list(product(range(agents), repeat=items)))
    weight, cost = (table[at, np.arange(items)] for table in (gap.weight, gap.cost))
    load = np.stack([np.where(at == agent, weight, 0).sum(axis=1) for agent in range(agents)], axis=1)
    return int(cost.sum(axis=1)[(load <= gap.capacity).all(axis=1)].min())


def search_of(
    problem: JobPlacement, constants: Mapping[str, object], seed: int = 0, relaxed: bool = True
) -> PenalisedAssignment:
    layout, settings = batch_state_of(problem).layout, type("Settings", (AssignmentParams,), dict(constants))()

    def plan_of(linear: Mip) -> FloatArray | None:
        return backends.get("highs").solve(linear, SolveParams(threads=1)).x if relaxed else None

    prices, rng = term_prices_of(problem, layout), np.random.default_rng(seed)
    return PenalisedAssignment(problem, prices, layout, rng, settings, plan_of)


def nothing_placed(problem: JobPlacement) -> Plan:
    none = np.zeros(0, np.int64)
    return Plan(none, none, none, none, none > 0, np.zeros(len(problem.running), np.bool_))


def unlimited() -> SearchMonitor:
    return SearchMonitor(StoppingCriteria())


@pytest.mark.parametrize("seed", range(6))
def test_small_instances_are_solved_to_the_optimum(seed: int) -> None:
    gap = tight(3, 7, seed, share=1.2)
    problem = job_placement(gap, "gap")
    found = verify(problem, some(search_of(problem, {"core": (0,)}).improved(nothing_placed(problem), unlimited())))
    assert found.ok
    assert found.objective == least_cost(gap)


@pytest.mark.parametrize("constants", [{}, {"core": (2,)}, {"exchanged": 3}, {"from_prices": 1.0}])
def test_rounds_leave_nothing_out_and_come_close(constants: dict[str, object]) -> None:
    problem = job_placement(tight(6, 30, 1), "gap")
    search, plan = search_of(problem, constants), nothing_placed(problem)
    values = []
    for _ in range(3):
        plan = some(search.improved(plan, unlimited()))
        verdict = verify(problem, plan)
        assert verdict.ok
        assert len(plan.job) == 30
        values.append(verdict.objective)
    exact = solve(problem, "highs", threads=1)
    assert min(values) <= 1.01 * some(exact.objective)


def test_the_relaxation_splits_few_jobs_and_is_not_needed() -> None:
    """Over all places, its optimum is that of the program that HiGHS is given."""
    gap = tight(4, 24, 2)
    problem, agents = job_placement(gap, "gap"), np.arange(4)
    search = search_of(problem, {"relaxed_places": 5})
    some(search.improved(nothing_placed(problem), unlimited()))
    at = search._relaxed
    load = (gap.weight * (at == agents[:, None])).sum(axis=1)
    linear = linprog(
        gap.cost.ravel(),
        A_ub=np.kron(np.eye(4), np.ones(24)) * gap.weight.ravel(),
        b_ub=gap.capacity,
        A_eq=np.tile(np.eye(24), 4),
        b_eq=np.ones(24),
    )
    assert np.count_nonzero(linear.x.reshape(4, 24)[at, np.arange(24)] < 1 - 1e-9) <= 4
    assert (load <= gap.capacity + 4 * gap.weight.max()).all()
    proven = CapacityBound(problem).value(some(search.prices))
    assert 0.999 * linear.fun <= proven <= linear.fun * (1 + 1e-9)
    without = search_of(problem, {}, relaxed=False)
    assert verify(problem, some(without.improved(nothing_placed(problem), unlimited()))).ok


def test_what_does_not_fit_waits() -> None:
    """Two of three equal jobs find room."""
    gap = Gap(np.array([[3, 2, 1]]), np.array([[5, 5, 5]]), np.array([10]))
    problem = job_placement(gap, "gap")
    problem = replace(problem, jobs=replace(problem.jobs, value_milli=np.array([3000, 1000, 2000])))
    plan = some(search_of(problem, {"core": (0,)}).improved(nothing_placed(problem), unlimited()))
    assert plan.job.tolist() == [0, 2]


def test_cores_count_too() -> None:
    gap = Gap(np.ones((2, 2), np.int64), np.ones((2, 2), np.int64), np.array([2, 2]))
    problem = job_placement(gap, "gap")
    supply = problem.servers.supply.copy()
    supply[:, CPU] = 4000
    jobs = replace(problem.jobs, cpu_mcores=np.array([3000, 3000]))
    problem = replace(problem, jobs=jobs, servers=replace(problem.servers, supply=supply))
    plan = some(search_of(problem, {"core": (0,)}).improved(nothing_placed(problem), unlimited()))
    assert verify(problem, plan).ok
    assert sorted(plan.server.tolist()) == [0, 1]


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = job_placement(tight(5, 20, 3), "gap")
    one, other = (some(search_of(problem, {}, 7).improved(nothing_placed(problem), unlimited())) for _ in range(2))
    assert one == other


def test_a_plan_that_stops_jobs_is_left_alone() -> None:
    problem = job_placement(tight(2, 3, 0), "gap")
    stops = replace(nothing_placed(problem), preempt=np.ones(1, np.bool_))
    assert search_of(problem, {}).improved(stops, unlimited()) is None


def test_only_single_tasks_of_whole_gpus_are_an_assignment() -> None:
    problem = job_placement(tight(2, 3, 0), "gap")
    assert is_assignment(problem)
    jobs, weights = problem.jobs, problem.objective.weights
    assert not is_assignment(replace(problem, jobs=replace(jobs, tasks=np.array([1, 2, 1]))))
    assert not is_assignment(
        replace(problem, objective=replace(problem.objective, weights={**weights, "fragmentation": 1.0}))
    )
    shared = FAMILIES["shared-gpus"].generate(np.random.default_rng(1), servers=2, jobs=20)
    assert not is_assignment(shared)
