"""The study of batches of real data in small: the optimum in queue order, and the part of the page."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fast_path import real, real_page
from benchmarks.fast_path.queue_optimum import queue_optimum
from mast_opt import solve
from mast_opt.planner.importers.gpu_fleet.instance import Settings
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.generate import FAMILIES
from tests.importers.test_gpu_fleet import JOBS, NODES, PODS

TINY = real.RealBatches(
    "tiny", real.OPENB, Settings(nodes=8, regions=2, clusters=1, pods=12, gangs=4, fill=90), seeds=2
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder, name, text in (
        (real.OPENB, "openb_node_list_all_node.csv", NODES),
        (real.OPENB, "openb_pod_list_gpuspec33.csv", PODS),
        (real.PHILLY, "philly.csv", JOBS),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(text)
    return tmp_path


def _holds_all(problem: JobPlacement, jobs: list[int]) -> bool:
    """Whether some plan holds all of these jobs, whoever is stopped."""
    value = np.zeros(len(problem.jobs), np.int64)
    value[jobs] = 1000
    weights = {name: float(name == "rejected") for name in problem.objective.weights}
    tiers = dict.fromkeys(problem.tiers, 1.0)
    objective = replace(problem.objective, weights=weights, tier_weights=tiers)
    only = replace(problem.with_columns({"jobs.value_milli": value}), objective=objective)
    return solve(only, "highs", gap=0.0, threads=1).objective == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_job_is_admitted_in_queue_order_if_some_plan_holds_it_with_all_before(seed: int) -> None:
    sizes = {"regions": 2, "clusters": 1, "servers": 3, "jobs": 9, "fill_percent": 90}
    problem = FAMILIES["standard"].generate(np.random.default_rng(seed), **sizes)
    admitted: list[int] = []
    for j in problem.order.tolist():
        admitted += [j] if _holds_all(problem, [*admitted, j]) else []
    for window in (1, 3):
        found = queue_optimum(problem, fewest_stops=False, window=window)
        assert found.proven
        assert sorted(admitted) == np.flatnonzero(found.admitted).tolist()
    assert 0 < len(admitted) < len(problem.jobs)


def test_the_fewest_stops_leave_less_to_the_least_important(data: Path) -> None:
    problem = TINY.draw(data, 0)
    free, few = (queue_optimum(problem, fewest_stops=few) for few in (False, True))
    first = problem.queue_tier == 0
    assert np.array_equal(free.admitted[first], few.admitted[first])
    order = problem.order
    assert free.admitted[order].tolist() >= few.admitted[order].tolist()


def test_the_study_resumes_and_writes_its_part(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "REPAIR_S", 0.3)
    monkeypatch.setattr(real_page, "REAL", (TINY,))
    results = data / "real.jsonl"
    real.real_study(real.RealRecords(results), data, (TINY,))
    first = results.read_text()
    results.write_text(first[:-20])
    real.real_study(real.RealRecords(results), data, (TINY,))
    records = real.RealRecords(results)
    assert len(records.runs) == first.count("\n") == 2 * 6

    batches = real_page.batches_of(records)
    assert len(batches) == 2
    for batch in batches:
        assert batch.proven
        whole = batch.gap(real.OPTIMUM, "exhaustive")
        steps = (real.OPTIMUM, real.IN_ORDER, real.IN_BID_ORDER, "exhaustive")
        assert whole == pytest.approx(sum(batch.gap(*pair) for pair in pairwise(steps)))
    words = real_page.real_part(records)
    assert "| tiny | 2 |" in words
    assert "| 0 | " in words
    assert real_page.real_part(real.RealRecords(data / "none.jsonl")) == ""
