"""Residency: a dataset is stored and read only in the regions listed for it; everything that answers knows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.planner.io.checksum import checksum
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.analysis.alternatives import phrase
from mast_opt.problems.data_placement.analysis.elastic_program import relief
from mast_opt.problems.data_placement.analysis.scenarios import lose_regions
from mast_opt.problems.data_placement.analysis.static_conflicts import conflicts
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement.brute import Brute
from tests.data_placement.edits import COPY, DERIVED, REMOTE, added, changed, placed
from tests.data_placement.support import RELATIVE, made, proven
from tests.data_placement.workshop import A100, IMAGES, LOGS, PLAN, PROBLEM, TRAIN, A, B, C, grid
from tests.narrowing import some

HOME = PROBLEM.with_columns(
    {
        "datasets.residency": grid((IMAGES, A), (IMAGES, B)),
        "datasets.forbidden": grid(),
        "datasets.pinned": grid(),
        "workloads.forbidden": grid(),
    }
)
"""Images live in a and b, where train, which reads them, runs too."""
FREE_HOME = replace(HOME, links=None)
MOVED = changed(changed(PLAN, "run_region", 0, C), "run_type", 0, A100)


def names(problem: DataPlacement, plan: Plan) -> set[str]:
    return {violation.name for violation in verify(problem, plan).violations}


BROKEN: dict[str, tuple[Plan, set[str]]] = {
    "nothing": (PLAN, set()),
    "a replica outside": (placed(PLAN, IMAGES, C), {"residency[images,c]", "copied[images,c]"}),
    "a copy that goes outside": (added(PLAN, COPY, IMAGES, B, C, 1), {"residency[images,c]"}),
    "work outside": (MOVED, {"residency[train,images,c]", "local[train,logs,c]", "local[train,images,c]"}),
    "work outside that reads from inside": (
        added(added(MOVED, REMOTE, TRAIN, IMAGES, B, C, 1000), REMOTE, TRAIN, LOGS, B, C, 1000),
        {"residency[train,images,c]"},
    ),
    "a listed read outside": (added(PLAN, REMOTE, TRAIN, IMAGES, B, C, 1), {"residency[train,images,c]"}),
    "a read where other data keeps the work out": (
        added(PLAN, REMOTE, TRAIN, LOGS, A, C, 1),
        {"remote[train,logs,a,c]"},
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_the_verifier_names_residency_and_where(case: str) -> None:
    plan, expected = BROKEN[case]
    wide = replace(HOME.links, capacity_mb_per_day=HOME.links.capacity_mb_per_day * 100)  # type: ignore[type-var,union-attr]
    assert names(replace(HOME, links=wide), plan) == expected


def test_without_links_the_run_alone_breaks_it() -> None:
    plan = changed(changed(DERIVED, "run_region", 0, C), "run_type", 0, A100)
    (violation,) = verify(FREE_HOME, plan).violations
    assert (violation.name, violation.amount, violation.limit) == ("residency[train,images,c]", 1.0, 0.0)


def test_a_replica_outside_today_may_only_be_copied_from() -> None:
    """Images are stored in c, outside; the new plan holds them in b, from c."""
    outside = HOME.with_columns(
        {
            "datasets.stored": grid((LOGS, A), (IMAGES, C)),
            "regions.ingress_limited": np.zeros(3, np.bool_),
            "links": None,
        }
    )
    assert names(outside, placed(DERIVED, IMAGES, C)) == {"residency[images,c]"}
    result = proven(base(outside).mip)
    plan = base(outside).decode(result.x)  # type: ignore[arg-type]
    assert not plan.place[IMAGES, C]
    assert verify(outside, plan).ok
    copied = plan.copy_dataset == IMAGES
    assert set(plan.copy_source[copied].tolist()) == {C}


@pytest.mark.parametrize("solver", ["highs", "cpsat", "scip", "cbc", "tetris"])
@pytest.mark.parametrize("remote_reads", [True, False])
@pytest.mark.parametrize("weights", [None, "gpus"])
def test_every_solver_finds_what_enumeration_finds(solver: str, remote_reads: bool, weights: str | None) -> None:
    """With GPU terms alone, reads have no price and only residency keeps work near its data."""
    problem = FREE_HOME.with_columns(
        {
            "datasets.residency": grid((IMAGES, B), (LOGS, A), (LOGS, B)),
            "workloads.splittable": np.zeros(3, np.bool_),
            "remote_reads": remote_reads,
            "regions.storage_mb": FREE_HOME.regions.storage_mb * 2,
        }
    )
    if weights:
        only = dict.fromkeys(problem.objective.weights, 0.0) | {"peak": 1.0, "overload": 10.0}
        problem = replace(problem, objective=replace(problem.objective, weights=only))
    best = Brute(problem, 1).optimum()
    assert best is not None
    solution = mast_opt.solve(problem, solver=solver, gap=0.0, threads=1, iterations=20 if solver == "tetris" else None)
    assert solution.objective == pytest.approx(best, rel=RELATIVE)
    assert solution.bound is None or solution.bound <= best * (1 + RELATIVE) + 1e-9


def test_the_bound_of_tetris_knows_residency() -> None:
    """Train and etl have to run in b, next to a new copy of logs, so the certified bound is higher."""
    tight = replace(FREE_HOME, datasets=replace(FREE_HOME.datasets, residency=grid((IMAGES, B), (LOGS, B))))
    found = [mast_opt.solve(p, solver="tetris", iterations=50, threads=1) for p in (FREE_HOME, tight)]
    bounds = [solution.bound for solution in found]
    assert bounds[0] is not None
    assert bounds[1] is not None
    assert bounds[1] > bounds[0] + 0.01
    assert bounds[1] <= found[1].objective + 1e-9  # type: ignore[operator]


def test_conflicts_that_show_without_solving() -> None:
    def words(problem: DataPlacement) -> dict[str, str]:
        return {conflict.constraint: conflict.message for conflict in conflicts(problem)}

    apart = replace(FREE_HOME, datasets=replace(FREE_HOME.datasets, residency=grid((IMAGES, A), (LOGS, B))))
    assert words(apart)["residency"] == (
        "workload train reads datasets whose residency has no region in common: logs (b), images (a)"
    )
    assert "residency" not in words(replace(apart, may_refuse=True))
    pinned = replace(FREE_HOME, datasets=replace(FREE_HOME.datasets, pinned=grid((IMAGES, C))))
    assert words(pinned)["residency"] == "dataset images is pinned to c, which is outside its residency (a and b)"
    many = replace(FREE_HOME, datasets=replace(FREE_HOME.datasets, copies_min=np.array([1, 3, 1])))
    assert words(many)["residency"] == "dataset images needs 3 copies but its residency is only a and b"
    kept_out = replace(FREE_HOME, workloads=replace(FREE_HOME.workloads, pinned=grid((TRAIN, C))))
    assert words(kept_out)["served"] == (
        "workload train can run in none of the 3 regions: closed by workload_rules in 2, "
        "outside the residency of images in 1"
    )
    assert proven(base(kept_out).mip).x is None


def test_explain_names_residency_and_a_repair_that_works() -> None:
    problem = replace(FREE_HOME, workloads=replace(FREE_HOME.workloads, pinned=grid((TRAIN, C))))
    (found,) = [limit for limit in relief(problem).limits if limit.name == "residency"]
    assert found.describe([0]) == "dataset images may be stored and read only in a and b (residency)"
    assert found.advice(0, 1.0) == "add c to the residency of dataset images"
    wider = some(found.relax)(problem, {0: 1.0})
    assert wider.datasets.residency[IMAGES, C]
    assert proven(base(wider).mip).x is not None


def test_alternatives_name_residency() -> None:
    violation = verify(FREE_HOME, placed(DERIVED, IMAGES, C)).violations[0]
    assert phrase(FREE_HOME, violation) == "dataset images may be stored only in a and b (residency)"
    plan = changed(changed(DERIVED, "run_region", 0, C), "run_type", 0, A100)
    (read,) = verify(FREE_HOME, plan).violations
    assert phrase(FREE_HOME, read) == "dataset images may be read only in a and b (residency)"


def test_work_whose_data_may_be_nowhere_else_cannot_run_where_the_region_is_lost() -> None:
    problem = replace(FREE_HOME, datasets=replace(FREE_HOME.datasets, residency=grid((IMAGES, B))), may_refuse=True)
    lost = lose_regions(problem, ["b"])
    assert not lost.allowed[TRAIN].any()
    assert lost.datasets.copies_min[IMAGES] == 0
    assert proven(base(lost).mip).x is not None


def test_the_table_is_read_back_and_an_instance_without_it_keeps_its_checksum(tmp_path: Path) -> None:
    for name in ("folder", "book.xlsx", "text.json"):
        mast_opt.write(HOME, tmp_path / name)
        again = mast_opt.read(tmp_path / name)
        assert np.array_equal(again.datasets.residency, HOME.datasets.residency)
        assert checksum(again) == checksum(HOME)
    assert checksum(HOME) != checksum(replace(HOME, datasets=replace(HOME.datasets, residency=grid())))


def test_the_family_features_has_residency_and_keeps_it_feasible() -> None:
    problem = made("features")
    assert problem.datasets.residency.any()
    assert (problem.datasets.residency.sum(axis=1) < len(problem.regions)).all()
    assert not (problem.datasets.stored & problem.outside).any()
    assert conflicts(problem) == ()
