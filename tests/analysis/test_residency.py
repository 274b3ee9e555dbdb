"""Residency in scenarios, frontiers and migrations: nothing is stored or read outside of it, and optima are those of
brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import mast_opt
from mast_opt import Scenario
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.scenario_files import happened
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.analysis.two_stage import TWO_STAGE
from mast_opt.problems.data_placement.problem import TERMS
from mast_opt.problems.registry import kind_of
from tests.data_placement.brute import Brute
from tests.data_placement.workshop import ETL, IMAGES, LOGS, PROBLEM, TRAIN, VIDEO, VIEW, A, B, C, grid, ints
from tests.narrowing import some

ROOMY = PROBLEM.with_columns(
    {
        "links": None,
        "regions.ingress_limited": np.zeros(3, np.bool_),
        "regions.headroom_milli": ints(0, 0, 0),
        "regions.supply_mgpu": ints((8, 8), (8, 16), (8, 8)) * 1000,
        "datasets.forbidden": grid(),
        "workloads.forbidden": grid(),
        "workloads.pinned": grid(),
    }
)
HOME = replace(ROOMY, datasets=replace(ROOMY.datasets, residency=grid((LOGS, A), (LOGS, B), (IMAGES, B), (IMAGES, C))))


def resident(problem: DataPlacement, plan: Plan) -> bool:
    """Row by row: is every replica, and every place where data is read, one of those that its residency lists?"""
    allowed = {
        i: {r for r in range(len(problem.regions)) if problem.datasets.residency[i, r]}
        or set(range(len(problem.regions)))
        for i in range(len(problem.datasets))
    }
    stored = all(r in allowed[i] for i, r in np.argwhere(plan.place).tolist())
    reads: dict[int, list[int]] = {}
    for w, i in zip(problem.reads.workload.tolist(), problem.reads.dataset.tolist()):
        reads.setdefault(w, []).append(i)
    runs = zip(plan.run_workload.tolist(), plan.run_region.tolist(), plan.run_share.tolist())
    return stored and all(r in allowed[i] for w, r, share in runs if share for i in reads.get(w, []))


def test_scenarios_keep_residency() -> None:
    scenarios = [Scenario(name, {"lose_regions": [name]}) for name in "abc"]
    answer = mast_opt.whatif(HOME, [*scenarios, Scenario("growth", {"grow_demand": 1.2})], robust="worst")
    assert answer.robust is not None
    solutions = [
        *(one.solution for one in (answer.base, *answer.outcomes)),
        *answer.robust.robust.values(),
        *answer.robust.base.values(),
    ]
    assert len(solutions) == 15
    for solution in solutions:
        assert solution.status is Status.OPTIMAL
        assert resident(HOME, some(solution.plan))


def test_data_is_lost_where_its_residency_has_no_region_left() -> None:
    only_a = ROOMY.with_columns(
        {"datasets.residency": grid((LOGS, A)), "datasets.stored": grid((LOGS, A), (LOGS, B), (IMAGES, B))}
    )
    answer = mast_opt.whatif(only_a, [Scenario("it", {"lose_regions": ["a"]})])
    lost = answer.outcomes[0]
    assert lost.lost is not None
    assert (lost.lost.datasets, lost.lost.work) == (("logs",), ("train", "etl"))
    assert not np.isin(some(lost.solution.plan).run_workload, [TRAIN, ETL]).any()
    assert not some(lost.solution.plan).place[LOGS].any()


def test_the_robust_plan_with_residency_is_the_best_of_all_replicas() -> None:
    """Every set of replicas within the residency is tried; the rest is solved for."""
    one = HOME.with_columns(
        {
            "datasets.residency": grid((LOGS, A), (LOGS, B), (IMAGES, B), (IMAGES, C), (VIDEO, C)),
            "datasets.copies_max": ints(2, 2, 1),
            "datasets.pinned": grid(),
        }
    )
    scenario = Scenario("it", {"lose_regions": ["b"]})
    base = kind_of(one).analysis.hooks().priced(one)
    changed = kind_of(one).analysis.hooks().priced(happened(kind_of(one), one, scenario))
    best = np.inf
    for logs, images in product([(1, 0, 0), (0, 1, 0), (1, 1, 0)], [(0, 1, 0), (0, 0, 1), (0, 1, 1)]):
        place = np.array([logs, images, (0, 0, 1)], np.bool_)
        plan = replace(some(mast_opt.solve(one).plan), place=place)
        values = [
            mast_opt.solve(TWO_STAGE.recourse(instance, plan, first), gap=1e-6).objective
            for instance, first in ((base, True), (changed, False))
        ]
        if None not in values:
            best = min(best, sum(map(some, values)) / 2)
    robust = mast_opt.whatif(one, [scenario], robust="weighted", gap=1e-6).robust
    assert robust is not None
    assert resident(one, some(robust.plan))
    assert robust.objective == pytest.approx(best, rel=1e-4)


def test_every_point_of_a_frontier_keeps_residency_and_the_ends_are_those_of_brute_force() -> None:
    """train and view read logs on the same GPUs: either one copy and twice the demand in b, or a second copy in a."""
    whole = HOME.with_columns(
        {
            "workloads.splittable": np.zeros(3, np.bool_),
            "remote_reads": False,
            "reads.dataset": ints(LOGS, IMAGES, LOGS, LOGS),
            "options.gpu_type": ints(0, 1, 2, 0),
            "options.mgpu": ints(8, 20, 0, 8) * 1000,
            "datasets.copies_min": ints(1, 1, 0),
        }
    )
    answer = mast_opt.pareto(whole, ("storage", "peak"), points=4, gap=1e-6)
    assert len(answer.points) >= 2
    for point in answer.points:
        assert point.proven
        assert resident(whole, point.plan)
        assert mast_opt.verify(whole, point.plan).ok
    for term, point in (("storage", answer.points[0]), ("peak", answer.points[-1])):
        weights = dict.fromkeys(TERMS, 0.0) | {term: 1.0}
        least = Brute(replace(whole, objective=replace(whole.objective, weights=weights)), 1).optimum()
        assert point.terms[term] == pytest.approx(float(some(least)), rel=1e-4)


def test_a_migration_ends_within_the_residency() -> None:
    """Logs are in c today, where they may not be: the copy to a is made from there, then that replica goes."""
    today = HOME.with_columns(
        {
            "datasets.stored": grid((LOGS, C), (IMAGES, B), (VIDEO, C)),
            "current_runs.workload": ints(VIEW),
            "current_runs.region": ints(C),
            "current_runs.gpu_type": ints(1),
            "current_runs.share": ints(1000),
        }
    )
    plan = mast_opt.solve(today).plan
    assert resident(today, some(plan))
    order = mast_opt.steps(today, some(plan))
    assert not order.stuck
    moves = [(move.action, move.source, move.target) for move in order.moves if move.what == "logs"]
    assert ("delete", "c", None) in moves
    assert all(target in ("a", "b") for action, _, target in moves if action == "copy")
    copied = [at for at, (action, source, _) in enumerate(moves) if action == "copy" and source == "c"]
    assert copied
    assert max(copied) < moves.index(("delete", "c", None))
