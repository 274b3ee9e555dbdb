"""Parts of splittable workloads: their plan is a plan of the workloads, worth the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.plan import fill_copies, fill_remote
from mast_opt.problems.data_placement.problem import SHARE, TERMS
from mast_opt.problems.data_placement.tetris.incumbent import assignment_of
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.state import cost, state_of
from mast_opt.problems.data_placement.tetris.workload_parts import PartsParams, WorkloadParts
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement.support import made
from tests.narrowing import some


class ManyReads(PartsParams):
    growth = 50.0


class FewReads(PartsParams):
    growth = 2.5


FINE = ManyReads(cell_share=0.01, most=7)


def at_random(problem: DataPlacement, seed: int) -> Plan:
    """Replicas and regions of work at random, within pins, bans and supplies."""
    rng = np.random.default_rng(seed)
    place = rng.random(problem.datasets.stored.shape) < 0.5
    may = problem.option_regions
    option, region = np.nonzero(may)
    order = rng.permutation(len(option))
    workload, first = np.unique(problem.options.workload[option[order]], return_index=True)
    chosen = order[first]
    kind = problem.options.gpu_type[option[chosen]]
    run = (workload, region[chosen], kind, np.full(len(workload), SHARE))
    return Plan(place, *run, *fill_copies(problem, place), *fill_remote(problem, place, *run))


@pytest.mark.parametrize(("family", "sizes"), [("organisation", {}), ("features", {})])
def test_a_plan_of_parts_is_worth_the_same_merged(family: str, sizes: dict[str, int]) -> None:
    problem = made(family, datasets=20, workloads=40, regions=4, **sizes)
    problem = replace(problem, links=None) if problem.links is not None else problem
    parts = WorkloadParts.of(problem, FINE)
    counts = np.bincount(parts.owner)
    assert counts.max() == 7
    assert (counts[~problem.workloads.splittable] == 1).all()
    assert np.array_equal(np.bincount(parts.owner, weights=parts.share), np.full(len(counts), SHARE))
    counted = arrays_of(parts.problem, dict.fromkeys(TERMS, 0.0) | {"moved_items": 1.0}, parts.share)
    assert np.bincount(parts.owner, counted.move_price) == pytest.approx(1 / 60)
    for seed in range(5):
        plan = at_random(parts.problem, seed)
        divided, merged = verify(parts.problem, plan), verify(problem, parts.merged(problem, plan))
        one, whole = dict(divided.terms), dict(merged.terms)
        one["moved_items"] = cost(counted, state_of(counted, *assignment_of(parts.problem, plan), 1))
        swapped = [(whole.pop(name), one.pop(name)) for name in ("retyped_work", "moved_items")]
        assert whole == pytest.approx(one, rel=2e-3, abs=2e-3)
        assert all(after <= before + 2e-3 for after, before in swapped)  # parts may swap their types and regions
        exceeded = {violation.constraint for violation in merged.violations}
        assert exceeded <= {violation.constraint for violation in divided.violations}


def test_the_runs_of_a_plan_are_shared_out_and_come_back() -> None:
    problem = made("organisation", datasets=20, workloads=40, regions=4)
    parts = WorkloadParts.of(problem, FINE)
    runs = problem.current_runs
    run = (runs.workload, runs.region, runs.gpu_type, runs.share)
    none = (np.zeros(0, np.int64),) * 4
    place = problem.datasets.stored
    plan = Plan(place, *run, *none, *fill_remote(problem, place, *run))
    divided = parts.assigned(problem, plan)
    shares = np.bincount(divided.run_workload, weights=divided.run_share)
    assert shares == pytest.approx(np.full(len(parts.owner), SHARE), abs=2)
    back = parts.merged(problem, divided)
    assert np.array_equal(back.run_workload, plan.run_workload)
    assert np.array_equal(back.run_type, plan.run_type)
    assert back.run_share == pytest.approx(plan.run_share, abs=8)
    assert verify(parts.problem, divided).terms["moved_work"] == pytest.approx(0.0, abs=1e-3)


def test_work_that_cannot_be_split_leaves_the_problem_as_it_is() -> None:
    problem = made("standard", datasets=20, workloads=30, regions=4)
    assert WorkloadParts.of(problem, PartsParams()).problem is problem
    split = made("organisation", datasets=20, workloads=40, regions=4)
    assert WorkloadParts.of(split, PartsParams(most=1)).problem is split


def test_reads_grow_within_the_limit() -> None:
    problem = made("organisation", datasets=60, workloads=120, regions=4)
    parts = WorkloadParts.of(problem, FewReads(cell_share=0.001, most=1000))
    assert 1.5 * len(problem.reads) < len(parts.problem.reads) <= 2.5 * len(problem.reads)


def test_parts_balance_what_whole_workloads_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = made("organisation", datasets=20, workloads=40, regions=4)
    objectives = []
    for most in (1, 16):
        monkeypatch.setattr(TetrisParams, "parts", PartsParams(most=most))
        objectives.append(some(mast_opt.solve(problem, "tetris", iterations=40, threads=1).objective))
    assert objectives[1] < 0.99 * objectives[0]
