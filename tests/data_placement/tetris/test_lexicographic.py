"""A lexicographic objective: terms of work alone are solved without data, later ones under what those have reached."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.tetris.annealing.parallel import ParallelAnnealing
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.sub_mip.completion import place_work
from mast_opt.problems.data_placement.tetris.sub_mip.fix_and_optimise import FixAndOptimise
from mast_opt.problems.data_placement.tetris.tetris_search import EpsilonConstraint, TetrisSearch
from mast_opt.problems.data_placement.tetris.workload_parts import WorkloadParts
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import MipSolver, SearchContext, SearchMonitor, StoppingCriteria
from tests.narrowing import some

PARAMS = TetrisParams()
SIZES = {"datasets": 12, "workloads": 18, "regions": 3}
HIGHS, CPSAT = backends.get("highs").solve, backends.get("cpsat").solve


def made(family: str = "lexicographic", seed: int = 2) -> DataPlacement:
    problem: DataPlacement = mast_opt.generate("data-placement", family, seed=seed, **SIZES)
    return problem


def by(order: tuple[str, ...], problem: DataPlacement) -> DataPlacement:
    return replace(problem, objective=replace(problem.objective, order=order))


def objective_of(problem: DataPlacement, term: str, caps: dict[str, float] | None = None) -> StageObjective:
    caps = caps or {}
    weights = (
        dict.fromkeys(problem.objective.weights, 0.0) | dict.fromkeys(caps, PARAMS.lexicographic_weight) | {term: 1.0}
    )
    return StageObjective(weights, {name: value * (1 + 1e-6) + 1e-9 for name, value in caps.items()})


def tools_of(mip: MipSolver = HIGHS, integer: MipSolver = CPSAT) -> SearchContext:
    """``mip`` stands for HiGHS, ``integer`` for CP-SAT."""
    watch, solvers = SearchMonitor(StoppingCriteria(gap=0.0, time_limit_s=60)), {"highs": mip, "cpsat": integer}
    return SearchContext(np.random.default_rng(1), watch, 1, solvers.__getitem__)


def never(mip: Mip, params: SolveParams) -> SolveResult:
    raise AssertionError("this solver is not for this")


def too_large(mip: Mip, params: SolveParams) -> SolveResult:
    raise BackendError("amounts too large")


def first_plan(problem: DataPlacement) -> Plan:
    plan: Plan | None = mast_opt.solve(problem, "tetris", iterations=1, threads=1).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("mip", "integer"), [(never, CPSAT), (HIGHS, HIGHS), (HIGHS, too_large)], ids=["integers", "alone", "too large"]
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_optimum_of_work_is_that_of_everything(seed: int, mip: MipSolver, integer: MipSolver) -> None:
    problem = made(seed=seed)
    exact = mast_opt.solve(by(("overload", "peak"), problem), "highs", gap=0.0, threads=1)
    best = some(exact.verdict).terms
    start = first_plan(problem)
    plan: Plan | None = start
    for objective in (objective_of(problem, "overload"), objective_of(problem, "peak", {"overload": best["overload"]})):
        plan = place_work(problem, tools_of(mip, integer), objective, some(plan), 60.0, PARAMS.workloads_only)
        assert plan is not None
        verdict = verify(problem, plan)
        assert verdict.ok, verdict.violations
        assert objective.within_caps(verdict)
        np.testing.assert_array_equal(plan.place, start.place)
    assert verdict.terms["remote"] > 0
    assert {term: verdict.terms[term] for term in ("overload", "peak")} == pytest.approx(
        {term: best[term] for term in ("overload", "peak")}, rel=1e-5
    )


def test_splittable_work_is_for_the_mixed_solver() -> None:
    problem = made().with_columns({"workloads.splittable": np.arange(SIZES["workloads"]) < 3})
    start = first_plan(problem)
    plan = place_work(
        problem, tools_of(HIGHS, never), objective_of(problem, "peak"), start, 60.0, PARAMS.workloads_only
    )
    assert plan is not None
    assert verify(problem, plan).terms["peak"] <= verify(problem, start).terms["peak"]


def test_without_room_for_the_data_nothing_is_found() -> None:
    problem = made()
    start = first_plan(problem)
    full = replace(problem, regions=replace(problem.regions, storage_mb=problem.regions.storage_mb // 100))
    assert place_work(full, tools_of(), objective_of(problem, "peak"), start, 60.0, PARAMS.workloads_only) is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_term_of_a_small_instance_is_at_its_optimum(seed: int) -> None:
    problem = made(seed=seed)
    exact = mast_opt.solve(problem, "cpsat", gap=0.0, threads=1)
    found = mast_opt.solve(problem, "tetris", time_limit_s=10, threads=1)
    assert exact.status is Status.OPTIMAL
    assert [stage.objective for stage in found.stages] == pytest.approx(
        [stage.objective for stage in exact.stages], rel=1e-4, abs=1e-7
    )


def test_under_the_terms_before_a_program_with_remote_reads_is_one_of_integers() -> None:
    problem = made()
    start = first_plan(problem)
    terms = verify(problem, start).terms
    objective = objective_of(problem, "remote", {"overload": terms["overload"], "peak": terms["peak"]})
    taken: list[int] = []

    def integers(mip: Mip, params: SolveParams) -> SolveResult:
        taken.append(len(mip.cost))
        return CPSAT(mip, params)

    better = FixAndOptimise(
        problem, tools_of(HIGHS, integers), objective, PARAMS.neighbourhoods, 60.0, whole=True
    ).improve(start)
    assert len(taken) == 1
    assert better is not None
    assert objective.worth(problem, better) <= objective.worth(problem, start)


def test_the_first_temperature_of_a_later_term_is_of_that_term() -> None:
    """Those before weigh a thousand times as much; a temperature of theirs would dissolve what they have reached."""
    problem = made()
    start = first_plan(problem)
    terms = verify(problem, start).terms
    caps = {"overload": terms["overload"], "peak": terms["peak"]}
    objective = objective_of(problem, "storage", caps)
    weights = dict(objective.weights)
    kept = tuple(
        EpsilonConstraint(name, objective.caps[name], arrays_of(problem, dict.fromkeys(weights, 0.0) | {name: 1.0}))
        for name in caps
    )
    method = TetrisSearch(
        problem, WorkloadParts.of(problem, PARAMS.parts), tools_of(), start, weights, kept, PARAMS
    ).method
    assert isinstance(method, ParallelAnnealing)
    own = terms["storage"] / len(problem.workloads)
    assert method.cooling.coldest == pytest.approx(PARAMS.cooling.cold * own, rel=1e-6)
