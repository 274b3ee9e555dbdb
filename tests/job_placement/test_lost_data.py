"""Data that exists nowhere cannot be read, at whatever price; and the order of a job's GPU types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.planner.io import read, validate, write
from mast_opt.problems.job_placement import JobPlacement, Plan
from mast_opt.problems.job_placement.analysis.rejection_reasons import reason_in_words
from mast_opt.problems.job_placement.kind import KIND
from mast_opt.problems.job_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.job_placement.tables.test_tables import BASE, loaded
from tests.narrowing import some

SERVER = BASE["servers"][0]
JOB = BASE["jobs"][0]
TWO_REGIONS: dict[str, Any] = {
    "regions": [{"region": "r"}, {"region": "q"}],
    "clusters": [{"cluster": "c", "region": "r"}, {"cluster": "d", "region": "q"}],
    "servers": [SERVER, {**SERVER, "server": "t", "cluster": "d"}],
    "job_datasets": [{"job": "j", "dataset": "logs", "tb_per_day": 1}],
}


def priced(tmp_path: Path, **tables: Any) -> JobPlacement:
    """Remote reads are priced, at 0, so that solvers that follow a fixed order take the instance too."""
    problem = loaded(tmp_path, **{**TWO_REGIONS, **tables})
    free = replace(problem.objective, weights={**problem.objective.weights, "remote": 0.0})
    return replace(problem, remote_reads=True, objective=free)


@pytest.mark.parametrize("solver", ["highs", *KIND.solvers.heuristics])
def test_no_solver_admits_a_job_whose_data_no_region_holds(solver: str, tmp_path: Path) -> None:
    problem = priced(tmp_path)
    iterations = None if solver == "highs" or KIND.solvers.is_constructive(solver) else 2
    found = mast_opt.solve(problem, solver, threads=1, iterations=iterations).plan
    assert len(some(found).job) == 0
    assert reason_in_words(problem, 0).endswith("no region holds a dataset that the job reads")
    there = replace(problem, datasets=replace(problem.datasets, stored=np.array([[False, True]])))
    assert len(some(mast_opt.solve(there, solver, threads=1, iterations=iterations).plan).job) == 1


def test_the_verifier_rejects_a_plan_that_reads_lost_data(tmp_path: Path) -> None:
    problem = priced(tmp_path)
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    plan = Plan(none, none, one, none, np.zeros(1, np.bool_), np.zeros(len(problem.running), np.bool_))
    assert [violation.name for violation in verify(problem, plan).violations] == ["data[j,r]"]
    assert verify(replace(problem, datasets=replace(problem.datasets, stored=np.array([[False, True]]))), plan).ok


def test_validate_warns_of_data_without_replicas(tmp_path: Path) -> None:
    write(priced(tmp_path), tmp_path / "lost")
    warnings = validate(tmp_path / "lost").warnings
    assert [(one.value, one.message) for one in warnings] == [
        ("logs", "no region holds this dataset, so the job cannot run")
    ]
    write(read(tmp_path / "lost").with_columns({"datasets.stored": np.array([[False, True]])}), tmp_path / "there")
    assert not validate(tmp_path / "there").warnings


def test_whatif_names_lost_datasets_and_jobs(tmp_path: Path) -> None:
    problem = priced(tmp_path, replicas=[{"dataset": "logs", "region": "q"}])
    scenarios = [mast_opt.Scenario(name, {"lose_regions": [name]}) for name in ("q", "r")]
    outcomes = mast_opt.whatif(problem, scenarios, solver="exhaustive").outcomes
    lost = [some(one.lost) for one in outcomes]
    assert [(one.datasets, one.tb, one.work, one.noun) for one in lost] == [
        (("logs",), None, ("j",), "job"),
        ((), None, (), "job"),
    ]
    assert [len(some(one.solution.plan).job) for one in outcomes] == [0, 1]


def quota(tmp_path: Path, servers: list[str], accepted: list[str]) -> JobPlacement:
    """Two jobs of a tenant with one GPU of each type; the second takes only type b."""
    (tmp_path / "-".join(servers + accepted)).mkdir()
    return loaded(
        tmp_path / "-".join(servers + accepted),
        servers=[{**SERVER, "server": f"s{kind}", "gpu_type": kind} for kind in servers],
        jobs=[{**JOB, "job": name, "tenant": "t", "submitted_s": n} for n, name in enumerate("jk")],
        job_gpu_types=[*({"job": "j", "gpu_type": kind} for kind in accepted), {"job": "k", "gpu_type": "b"}],
        quotas=[{"tenant": "t", "gpus": 1, "gpu_type": kind} for kind in "ab"],
        running=[{"job": "v", "tier": 3, "preemptible": True, "gpu_hours_at_risk": 1}],
        allocations=[{"job": "v", "server": "sa", "tasks": 1, "gpus": 1, "cpu_cores": 1, "memory_gb": 1}],
    )


@pytest.mark.parametrize("servers", [["a", "b"], ["b", "a"]])
@pytest.mark.parametrize(
    "accepted", [["a", "b"], ["b", "a"], []], ids=["a first", "b first", "as the servers are listed"]
)
def test_quotas_take_types_in_the_order_of_the_job(servers: list[str], accepted: list[str], tmp_path: Path) -> None:
    problem = quota(tmp_path, servers, accepted)
    second = 0 if (accepted or servers)[0] == "a" else 3
    assert [problem.tiers[tier] for tier in problem.queue_tier.tolist()] == [0, second]
    again = problem_from_tables(*problem_to_tables(problem))
    assert np.array_equal(again.queue_tier, problem.queue_tier)
    assert np.array_equal(again.options.gpu_type, problem.options.gpu_type)
