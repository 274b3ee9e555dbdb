"""Enumeration, GLPK on the .mod and HiGHS on the formulation find the same optimum, and its plan verifies."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.formulation.formulation import base, exact_shares, in_parts
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement import glpk
from tests.data_placement.brute import Brute
from tests.data_placement.strategies import problems
from tests.data_placement.support import RELATIVE, proven
from tests.examples import examples

HALVES = 2


def agree(found: float | None, expected: float | None) -> None:
    assert found == (expected if expected is None else pytest.approx(expected, rel=RELATIVE, abs=1e-9))


@examples(120)
@given(problem=problems(datasets=3, workloads=3, links=False, splits=False, roomy=True))
def test_brute_force_glpk_and_highs_agree_on_whole_work(problem: DataPlacement, tmp_path: Path) -> None:
    best = Brute(problem, parts=1).optimum()
    event(f"feasible: {best is not None}")
    agree(proven(base(problem).mip).objective, best)
    agree(glpk.optimum(problem, tmp_path), best)


@examples(120)
@given(problem=problems(datasets=3, workloads=3, links=False, splits=False, roomy=True, limited=True))
def test_brute_force_glpk_and_highs_agree_under_limits(problem: DataPlacement, tmp_path: Path) -> None:
    best = Brute(problem, parts=1).optimum()
    event(f"feasible: {best is not None}")
    agree(proven(base(problem).mip).objective, best)
    agree(glpk.optimum(problem, tmp_path), best)


@examples(40)
@given(problem=problems(datasets=2, workloads=2, splits=True, roomy=True, parts=HALVES, limited=True))
def test_brute_force_agrees_under_limits_on_halves_and_links(problem: DataPlacement) -> None:
    agree(proven(in_parts(problem, HALVES).mip).objective, Brute(problem, HALVES).optimum())


@examples(60)
@given(problem=problems(datasets=2, workloads=2, links=True, splits=False, roomy=True))
def test_brute_force_agrees_where_halves_cross_links(problem: DataPlacement, tmp_path: Path) -> None:
    agree(proven(in_parts(problem, HALVES).mip).objective, Brute(problem, HALVES).optimum())
    agree(proven(base(problem).mip).objective, glpk.optimum(problem, tmp_path))


@examples(60)
@given(problem=problems(datasets=2, workloads=2, splits=True, roomy=True, parts=HALVES))
def test_brute_force_agrees_on_work_in_halves(problem: DataPlacement, tmp_path: Path) -> None:
    agree(proven(in_parts(problem, HALVES).mip).objective, Brute(problem, HALVES).optimum())
    agree(proven(base(problem).mip).objective, glpk.optimum(problem, tmp_path))


@examples(120)
@given(problem=st.one_of(problems(roomy=True), problems(roomy=True, limited=True)))
def test_optimal_plans_verify_with_the_solvers_objective(problem: DataPlacement) -> None:
    formulation = exact_shares(problem)
    result = proven(formulation.mip)
    if result.x is None:
        return
    verdict = verify(problem, formulation.decode(result.x))
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(result.objective, rel=RELATIVE, abs=1e-9)
    relaxed = proven(base(problem).mip)
    assert relaxed.objective is not None
    assert relaxed.objective <= verdict.objective * (1 + RELATIVE) + 1e-9
