"""Brute force, GLPK and every backend agree on tiny instances, and the verifier agrees with brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.core.solve_result import SolveParams
from mast_opt.planner.solving import solve
from mast_opt.problems.backends import get
from mast_opt.problems.job_placement import JobPlacement, Plan
from mast_opt.problems.job_placement.formulation.aggregated import relaxation
from mast_opt.problems.job_placement.formulation.formulation import base
from mast_opt.problems.job_placement.tables.mathprog import write_dat
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.registry import SolverName
from tests import mathprog
from tests.job_placement.brute import Brute
from tests.job_placement.formulation.test_mathprog import MODEL, QUICK
from tests.job_placement.strategies import problems
from tests.narrowing import some
from tests.solvers import HERE


@settings(max_examples=40, deadline=None, suppress_health_check=QUICK)
@given(problem=problems())
def test_glpk_proves_what_brute_force_finds(problem: JobPlacement, tmp_path: Path) -> None:
    data = tmp_path / "instance.dat"
    write_dat(problem, data)
    assert mathprog.optimum(MODEL, data) == pytest.approx(Brute(problem).optimum()[0], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("solver", HERE)
def test_backends_prove_what_brute_force_finds(solver: str) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(problem=problems())
    def agree(problem: JobPlacement) -> None:
        solution = solve(problem, solver, gap=1e-7, threads=1)
        optimum = Brute(problem).optimum()[0]
        assert solution.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
        assert solution.bound is not None
        assert optimum - 1e-4 * (1 + optimum) <= solution.bound <= optimum + 1e-6 * (1 + optimum)

    agree()


@settings(max_examples=15, deadline=None, suppress_health_check=QUICK)
@given(problem=problems(jobs=2, running=2, moves=True))
def test_glpk_proves_the_best_moves(problem: JobPlacement, tmp_path: Path) -> None:
    data = tmp_path / "instance.dat"
    write_dat(problem, data)
    assert mathprog.optimum(MODEL, data) == pytest.approx(Brute(problem).optimum()[0], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
@pytest.mark.parametrize("formulation", ["base", "strong"])
def test_exact_solvers_find_the_best_moves(solver: SolverName, formulation: str) -> None:
    """Brute force moves running jobs in every way; what the solver finds has been verified."""

    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(problem=problems(jobs=2, running=2, moves=True))
    def agree(problem: JobPlacement) -> None:
        solution = solve(problem, solver, gap=1e-7, threads=1, formulation=formulation)
        optimum = Brute(problem).optimum()[0]
        assert solution.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
        assert relaxed(problem) <= optimum + 1e-6 * (1 + optimum)

    agree()


@settings(max_examples=15, deadline=None, suppress_health_check=QUICK)
@given(problem=problems(running=2, parts=True))
def test_glpk_proves_the_best_placement_of_parts(problem: JobPlacement, tmp_path: Path) -> None:
    data = tmp_path / "instance.dat"
    write_dat(problem, data)
    assert mathprog.optimum(MODEL, data) == pytest.approx(Brute(problem).optimum()[0], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("solver", "formulation"), [*((solver, "base") for solver in HERE), ("highs", "strong")])
def test_backends_place_parts_as_brute_force_does(solver: SolverName, formulation: str) -> None:
    @settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(problem=problems(running=2, parts=True))
    def agree(problem: JobPlacement) -> None:
        solution = solve(problem, solver, gap=1e-7, threads=1, formulation=formulation)
        optimum = Brute(problem).optimum()[0]
        assert solution.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
        assert relaxed(problem) <= optimum + 1e-6 * (1 + optimum)

    agree()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(jobs=2, running=2, moves=True))
def test_repair_finds_the_best_moves_and_a_true_bound(problem: JobPlacement) -> None:
    optimum = Brute(problem).optimum()[0]
    solution = solve(problem, "exhaustive+repair", iterations=6, gap=1e-7, threads=1)
    assert solution.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert some(solution.bound) <= optimum + 1e-6 * (1 + optimum)
    greedy = solve(problem, "exhaustive", threads=1)
    assert len(some(greedy.plan).moved) == 0
    assert some(greedy.objective) >= optimum - 1e-6


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(jobs=2))
def test_the_verifier_values_every_feasible_plan_as_brute_force_does(problem: JobPlacement) -> None:
    brute = Brute(problem)
    _, gangs, stopped = brute.optimum()
    plan = as_plan(brute, gangs, stopped)
    verdict = verify(problem, plan)
    assert {v.constraint for v in verdict.violations} <= {"split"}
    expected = brute.terms(tuple(gangs), stopped)
    assert dict(verdict.terms) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(moves=True, parts=True))
def test_decoding_what_was_encoded_gives_the_plan(problem: JobPlacement) -> None:
    solution = solve(problem, "highs", threads=1)
    formulation = base(problem)
    x = formulation.encode(some(solution.plan))
    again = formulation.decode(x)
    assert again == solution.plan
    activity = formulation.mip.activity(x)
    assert (activity >= formulation.mip.row_lower - 1e-6).all()
    assert (activity <= formulation.mip.row_upper + 1e-6).all()
    assert formulation.mip.objective(x) == pytest.approx(solution.objective, rel=1e-9, abs=1e-9)


def as_plan(brute: Brute, gangs: Sequence[Sequence[tuple[int, int]] | None], stopped: tuple[bool, ...]) -> Plan:
    """The plan without the GPUs that fractions share: brute force only says that they exist."""
    rows = [(j, s, n) for j, gang in enumerate(gangs) for s, n in gang or ()]
    job, server, tasks = np.array(rows, np.int64).reshape(-1, 3).T
    none = np.zeros(len(rows), np.int64)
    return Plan(job, server, tasks, none, np.zeros(len(rows), np.bool_), np.array(stopped, np.bool_))


def relaxed(problem: JobPlacement) -> float:
    """The linear relaxation over groups of servers."""
    mip = relaxation(problem).mip
    result = get("highs").solve(replace(mip, integral=np.zeros_like(mip.integral)), SolveParams(threads=1))
    assert result.bound is not None
    return result.bound
