"""Bounds below, plans above, and nothing that the verifier does not accept; the same seed gives the same plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.planner.importers.gap import Gap, job_placement
from mast_opt.planner.solving import solve
from mast_opt.problems import backends
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.exhaustive.batch_state import batch_state_of
from mast_opt.problems.job_placement.exhaustive.objective import term_prices_of
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.job_placement.exhaustive.sub_mip import FixAndOptimise
from mast_opt.problems.job_placement.formulation.aggregated import relaxation
from mast_opt.problems.job_placement.formulation.formulation import base
from mast_opt.problems.job_placement.formulation.strengthened import strong
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble
from mast_opt.problems.job_placement.kind import KIND
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, StoppingCriteria
from tests.job_placement.strategies import problems
from tests.job_placement.verification.test_verifier import plan
from tests.narrowing import some

SMALL = {
    "standard": {"regions": 2, "clusters": 2, "servers": 3, "jobs": 24},
    "study": {"servers": 3},
    "shared-gpus": {"servers": 2, "jobs": 20},
    "features": {"jobs": 16},
}
OURS = tuple(KIND.solvers.heuristics)


def priced(problem: JobPlacement, solver: str) -> JobPlacement:
    """The problem with no weight on terms that the solver does not price."""
    weights = dict(problem.objective.weights)
    unpriced = dict.fromkeys(KIND.solvers.heuristics[solver].pricing.missing(problem, weights), 0.0)
    return replace(problem, objective=replace(problem.objective, weights=weights | unpriced))


def instance(family: str, seed: int) -> JobPlacement:
    return FAMILIES[family].generate(np.random.default_rng(seed), **SMALL[family])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_the_strong_formulation_has_the_optima_of_the_base_one(problem: JobPlacement) -> None:
    one, other = (solve(problem, "highs", gap=1e-9, formulation=name, threads=1) for name in ("base", "strong"))
    assert one.objective == pytest.approx(other.objective, rel=1e-6, abs=1e-6)
    x = strong(problem).encode(some(one.plan))
    mip = strong(problem).mip
    assert (mip.activity(x) <= mip.row_upper + 1e-6).all()
    assert (x <= mip.col_upper + 1e-9).all()
    assert base(problem).mip.objective(base(problem).encode(some(one.plan))) == pytest.approx(mip.objective(x))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_the_relaxation_is_below_every_plan(problem: JobPlacement) -> None:
    bound = backends.get("highs").solve(relaxation(problem).mip, SolveParams(gap=1e-9, threads=1))
    optimum = solve(problem, "highs", gap=1e-9, threads=1).objective
    assert bound.status is Status.OPTIMAL
    assert some(bound.objective) <= some(optimum) + 1e-6 * (1 + abs(some(optimum)))


@pytest.mark.parametrize("family", SMALL)
@pytest.mark.parametrize("name", OURS)
def test_every_plan_is_sound_and_no_better_than_the_optimum(family: str, name: str) -> None:
    for seed in range(3):
        problem = priced(instance(family, seed), name)
        found = solve(problem, name, seed=seed, iterations=10 if "repair" in name else None)
        assert some(found.verdict).ok
        exact = solve(problem, "highs", time_limit_s=5, threads=1)
        assert some(found.objective) >= some(exact.bound) - 1e-6 * (1 + abs(some(exact.bound)))
        if found.bound is not None:
            assert found.bound <= some(exact.objective) + 1e-6 * (1 + abs(some(exact.objective)))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_every_solver_takes_every_instance(problem: JobPlacement) -> None:
    for name in OURS:
        assert some(solve(priced(problem, name), name, iterations=2 if "repair" in name else None).verdict).ok, name


@pytest.mark.parametrize("family", SMALL)
def test_repair_improves_and_comes_close(family: str) -> None:
    problem = priced(instance(family, 1), "exhaustive")
    first = solve(problem, "exhaustive")
    better = solve(problem, "exhaustive+repair", iterations=30)
    assert some(better.objective) <= some(first.objective) + 1e-9
    exact = solve(problem, "highs", time_limit_s=20, threads=1)
    everything = 1000.0
    assert some(better.objective) - some(exact.objective) <= 0.02 * everything


@pytest.mark.parametrize("seed", [1, 2])
def test_repair_comes_close_where_only_costs_count(seed: int) -> None:
    """Generalised assignment, where only costs differ: clusters have to be reconsidered together to come near the
    optimum."""
    rng = np.random.default_rng(seed)
    agents, items = 5, 20
    weight = rng.integers(5, 26, (agents, items))
    capacity = weight.sum(axis=1) * 8 // 10 // agents
    problem = job_placement(Gap(rng.integers(10, 51, (agents, items)), weight, capacity), "gap")
    exact = solve(problem, "highs", threads=1)
    found = solve(problem, "exhaustive+repair", iterations=100)
    assert exact.status is Status.OPTIMAL
    assert some(found.objective) <= 1.005 * some(exact.objective)


@pytest.mark.parametrize("name", OURS)
def test_the_same_seed_gives_the_same_plan(name: str) -> None:
    problem = priced(instance("features", 4), name)
    one, other = (solve(problem, name, seed=7, iterations=9 if "repair" in name else None) for _ in range(2))
    for field in ("job", "server", "tasks", "gpu_index", "indexed", "preempt"):
        assert np.array_equal(getattr(one.plan, field), getattr(other.plan, field)), field


@pytest.mark.parametrize(("iterations", "clock"), [(3, False), (None, True)])
def test_where_rounds_are_counted_the_clock_has_no_say(iterations: int | None, clock: bool) -> None:
    problem = priced(instance("features", 4), "exhaustive")
    seen: list[SolveParams] = []

    def recording(mip: Mip, params: SolveParams) -> SolveResult:
        seen.append(params)
        return backends.get("highs").solve(mip, params)

    tools = SearchContext(
        np.random.default_rng(0), SearchMonitor(StoppingCriteria(iterations=iterations)), 1, lambda name: recording
    )
    begin = solve(problem, "exhaustive").plan
    params = ExhaustiveRepairParams()
    params = replace(params, sub_mip=replace(params.sub_mip, gap=0.0))
    better = FixAndOptimise(problem, tools, params).of_clusters(some(begin), np.arange(2))
    assert better is not None
    assert verify(problem, better).objective <= verify(problem, some(begin)).objective + 1e-9
    (seen_params,) = seen
    assert (seen_params.time_limit_s is not None) == clock
    assert (seen_params.node_limit is not None) != clock


def test_a_start_is_never_lost() -> None:
    problem = instance("standard", 2)
    start = solve(problem, "highs", time_limit_s=20, threads=1)
    found = solve(problem, "exhaustive+repair", iterations=1, start=start.plan)
    assert some(found.objective) <= some(start.objective) + 1e-9


@pytest.mark.parametrize("name", sorted(filter(KIND.solvers.is_constructive, KIND.solvers.heuristics)))
def test_what_builds_one_plan_refuses_what_it_would_ignore(name: str) -> None:
    problem = instance("standard", 2)
    plan = solve(problem, name).plan
    with pytest.raises(UsageError, match=f"{name} takes no start: .* choose exhaustive.repair or a MIP"):
        solve(problem, name, start=plan)
    with pytest.raises(UsageError, match=f"{name} has no iterations: .* choose exhaustive.repair or a MIP"):
        solve(problem, name, iterations=3)


@pytest.mark.parametrize("family", SMALL)
def test_the_ledger_values_a_batch_as_the_verifier_does(family: str) -> None:
    problem = instance(family, 3)
    solution = solve(problem, "highs", time_limit_s=10, threads=1)
    batch = batch_state_of(problem)
    batch.replay(some(solution.plan))
    assert batch.value(term_prices_of(problem, batch.layout)) == pytest.approx(solution.objective, rel=1e-9, abs=1e-9)
    again = verify(problem, batch.plan())
    assert again.ok
    assert again.objective == pytest.approx(solution.objective, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_a_batch_replays_every_feasible_plan(problem: JobPlacement) -> None:
    solution = solve(problem, "highs", threads=1)
    batch = batch_state_of(problem)
    batch.replay(some(solution.plan))
    again = verify(problem, batch.plan())
    assert again.ok
    assert again.objective == pytest.approx(solution.objective, rel=1e-9, abs=1e-9)
    assert (batch.state.slack_device >= 0).all()
    assert (batch.state.slack >= 0).all()


def waiting(*jobs: tuple[int, int, int]) -> JobPlacement:
    """Jobs of (tier, tasks, milli-GPUs of a task) for two servers of two GPUs each, in two racks."""
    fleet = GeneratedFleet(
        regions=("r",),
        gpu_types=("a100",),
        clusters=Clusters(("c",), np.array([0])),
        racks=Racks(("b1", "b2"), np.array([0, 0])),
        servers=Servers(("s1", "s2"), np.array([0, 1]), np.array([0, 0]), np.array([[2000, 4000, 64]] * 2)),
    )
    tier, tasks, mgpu = np.array(jobs).T
    none, types = np.zeros_like(tier), (np.arange(len(jobs)), np.zeros_like(tier))
    return assemble("few", fleet, Running(), Pending(tier, tasks, mgpu, none, none, none + 1000, types))


def test_whole_gpus_are_not_those_that_a_fraction_names() -> None:
    problem = waiting((1, 1, 1000), (0, 1, 500))
    stated = plan(problem, ("job-1", "s1", 1, None), ("job-2", "s1", 1, 0))
    assert verify(problem, stated).ok
    batch = batch_state_of(problem)
    batch.replay(stated)
    assert batch.state.slack_device[0].min(axis=1).tolist() == [500, 0]
    assert verify(problem, batch.plan()).ok


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([("job-1", "s1", 1, 2), ("job-2", "s1", 1, None)], [1]),
        ([("job-1", "s1", 1, 99), ("job-2", "s1", 1, None)], [1]),
        ([("job-1", "s1", 1, 0), ("job-2", "s1", 2, None)], [0]),
        ([("job-1", "s1", 1, 0), ("job-3", "s1", 2, 0)], [0]),
        ([("job-3", "s1", 1, 0)], []),
        ([("job-3", "s1", 1, 0), ("job-3", "s2", 1, 1)], [2]),
    ],
)
def test_what_a_plan_has_no_room_for_is_left_out(rows: list[tuple[str, str, int, int | None]], kept: list[int]) -> None:
    problem = waiting((0, 1, 500), (0, 1, 1000), (0, 2, 600))
    batch = batch_state_of(problem)
    batch.replay(plan(problem, *rows))
    assert sorted(batch.placed) == kept
    assert verify(problem, batch.plan()).ok


def test_a_gang_that_needs_nothing_may_be_split() -> None:
    problem = waiting((0, 5, 0))
    stated = plan(problem, ("job-1", "s1", 2, None), ("job-1", "s2", 3, None))
    assert verify(problem, stated).ok
    batch = batch_state_of(problem)
    batch.replay(stated)
    assert batch.plan().server.tolist() == [0, 1]
    assert batch.plan().tasks.sum() == 5
    assert verify(problem, batch.plan()).ok


def test_lexicographic_stages_are_minimised_in_order() -> None:
    problem = FAMILIES["lexicographic"].generate(np.random.default_rng(2), servers=3)
    solution = solve(problem, "highs", time_limit_s=60, threads=1)
    assert [stage.term for stage in solution.stages] == ["rejected", "preemption", "spread", "balance"]
    weighted = replace(problem, objective=replace(problem.objective, order=()))
    first = some(solve(weighted, "highs", time_limit_s=60, threads=1).verdict).terms["rejected"]
    assert some(solution.stages[0].objective) <= first + 1e-4


def test_more_capacity_never_hurts_and_more_demand_never_helps() -> None:
    """Balance and fragmentation at 0, denominators as they are: GPUs are added to a server, then a job is added."""
    for seed in range(6):
        problem = FAMILIES["features"].generate(np.random.default_rng(seed), jobs=8, servers=2)
        weights = {**problem.objective.weights, "balance": 0.0, "fragmentation": 0.0, "preemption": 0.0}
        problem = replace(problem, objective=replace(problem.objective, weights=weights))
        more = problem.servers.supply.copy()
        more[0] += [2000, 20_000, 20_000]
        before, after = (
            solve(p, "highs", threads=1).objective
            for p in (problem, replace(problem, servers=replace(problem.servers, supply=more)))
        )
        assert some(after) <= some(before) + 1e-3 * (1 + some(before))


def test_names_do_not_matter_to_the_optimum() -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(9), jobs=8, servers=2)
    renamed = replace(
        problem,
        servers=replace(problem.servers, labels=problem.servers.labels[::-1]),
        jobs=replace(problem.jobs, labels=problem.jobs.labels[::-1]),
        clusters=replace(problem.clusters, labels=problem.clusters.labels[::-1]),
    )
    one, other = (solve(p, "highs", threads=1, gap=1e-6).objective for p in (problem, renamed))
    assert one == pytest.approx(other, rel=1e-5)


def test_the_kind_lists_what_there_is() -> None:
    baselines = (
        "federated",
        "random",
        "least-loaded",
        "best-fit",
        "fgd",
        "gpu-packing",
        "gpu-clustering",
        "dot-product",
        "reserve-and-pack",
    )
    assert ("exhaustive", "exhaustive+repair", *baselines) == OURS
    assert set(filter(KIND.solvers.is_constructive, KIND.solvers.heuristics)) == {"exhaustive", *baselines}
    assert tuple(KIND.formulation.formulations) == ("base", "strong")
