"""Enumeration, GLPK on the .mod and every open backend on the formulation find the same optimum."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.verification.verifier import verify
from tests.examples import examples
from tests.server_assignment.brute import Brute
from tests.server_assignment.strategies import plans, problems
from tests.server_assignment.support import RELATIVE, glpk_optimum, proven
from tests.solvers import OPEN


@examples(100)
@given(data=st.data(), problem=problems())
def test_the_verifier_says_what_the_definitions_say(data: st.DataObject, problem: ServerAssignment) -> None:
    plan: Plan = data.draw(plans(problem))
    brute, verdict = Brute(problem), verify(problem, plan)
    assert verdict.objective == pytest.approx(brute.objective(plan.reservation.tolist()), rel=1e-12, abs=1e-12)
    assert verdict.ok == brute.allowed(plan.reservation.tolist())
    event(f"ok: {verdict.ok}")


@examples(60)
@given(problem=problems(servers=5, reservations=2))
def test_brute_force_glpk_and_highs_agree(problem: ServerAssignment, tmp_path: Path) -> None:
    best = Brute(problem).optimum()
    assert proven(base(problem).mip).objective == pytest.approx(best, rel=RELATIVE, abs=1e-9)
    assert glpk_optimum(problem, tmp_path) == pytest.approx(best, rel=RELATIVE, abs=1e-9)


@functools.cache
def featured(seed: int) -> tuple[ServerAssignment, float]:
    """A problem with every optional table and column, and its optimum."""
    problem = mast_opt.generate("server-assignment", "features", servers=7, reservations=3, datacenters=2, seed=seed)
    return problem, Brute(problem).optimum()


@pytest.mark.parametrize("solver", OPEN)
@pytest.mark.parametrize("seed", range(3))
def test_every_backend_proves_it_through_the_whole_route(seed: int, solver: str) -> None:
    problem, best = featured(seed)
    solution = mast_opt.solve(problem, solver, gap=1e-7)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(best, rel=RELATIVE)
    assert solution.plan is not None
    assert verify(problem, solution.plan).ok


def test_one_term_after_another() -> None:
    """Servers before buffers: the least to hand out first, then the least at risk with that many."""
    problem = mast_opt.generate("server-assignment", "features", servers=6, reservations=3, datacenters=2, seed=1)
    order = ("shortfall", "use", "buffer")
    problem = replace(problem, objective=replace(problem.objective, order=order))
    solution = mast_opt.solve(problem, "highs", gap=0)
    assert solution.status is Status.OPTIMAL
    brute = Brute(problem)
    found = []
    for assigned in brute.assignments():
        if brute.allowed(assigned):
            terms = verify(problem, Plan(np.array(assigned, np.int64))).terms
            found.append(tuple(terms[name] for name in order))
    assert [stage.objective for stage in solution.stages] == pytest.approx(list(min(found)), abs=1e-9)
