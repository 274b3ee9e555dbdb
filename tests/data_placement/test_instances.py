"""The hand-made instances: every solver finds the answer that is worked out next to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.core.solve_result import Status
from mast_opt.planner.io import read
from mast_opt.problems.data_placement.analysis.static_conflicts import conflicts
from mast_opt.problems.data_placement.formulation.formulation import base, exact_shares
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement import glpk
from tests.data_placement.support import RELATIVE, proven

FOLDER = Path(__file__).parents[2] / "instances" / "data_placement"
OPTIMA = {
    "two-regions": 2.1,
    "hot-dataset": 1.7,
    "links-bind": 1.7,
    "unserved": 1000 / 3 + 5 / 3 + 0.1,
    "split-shares": 1.7,
    "residency": 2.2,
}


@pytest.mark.parametrize("name", OPTIMA)
def test_the_answer_is_the_one_worked_out(name: str, tmp_path: Path) -> None:
    problem = read(FOLDER / name)
    assert conflicts(problem) == ()
    formulation = exact_shares(problem)
    result = proven(formulation.mip)
    assert result.x is not None
    verdict = verify(problem, formulation.decode(result.x))
    assert verdict.violations == ()
    for found in (
        verdict.objective,
        result.objective,
        proven(base(problem).mip).objective,
        glpk.optimum(problem, tmp_path),
    ):
        assert found == pytest.approx(OPTIMA[name], rel=RELATIVE)


def test_the_copies_of_links_bind_come_from_both_regions() -> None:
    problem = read(FOLDER / "links-bind")
    formulation = base(problem)
    result = proven(formulation.mip)
    assert result.x is not None
    plan = formulation.decode(result.x)
    sources = [problem.regions.labels[q] for q in plan.copy_source]
    assert dict(zip(sources, plan.copy_share.tolist())) == {"near": 600, "far": 400}


def test_the_shares_of_split_shares() -> None:
    problem = read(FOLDER / "split-shares")
    formulation = base(problem)
    result = proven(formulation.mip)
    assert result.x is not None
    plan = formulation.decode(result.x)
    assert dict(zip([problem.regions.labels[r] for r in plan.run_region], plan.run_share.tolist())) == {
        "east": 600,
        "west": 400,
    }


def test_infeasible_pins_is_seen_without_solving_and_proven_by_solving(tmp_path: Path) -> None:
    problem = read(FOLDER / "infeasible-pins")
    (conflict,) = conflicts(problem)
    assert str(conflict) == "datasets pinned to vault need 7 TB but it has 5 TB usable storage"
    assert proven(base(problem).mip).status is Status.INFEASIBLE
    assert glpk.optimum(problem, tmp_path) is None
