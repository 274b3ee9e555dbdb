"""Ties go by the order of rows: with all labels renamed and rows left in place, every solver gives the same plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.job_placement.kind import KIND
from mast_opt.problems.job_placement.tables.problem_tables import problem_from_tables, problem_to_tables

SOLVERS = [name for name in KIND.solvers.heuristics if name != "exhaustive+repair"]


def decided(problem: mast_opt.JobPlacement, solver: str) -> list[list[int]]:
    plan = mast_opt.solve(problem, solver).plan
    assert plan is not None
    return [plan.job.tolist(), plan.server.tolist(), plan.tasks.tolist(), plan.preempt.tolist()]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("family", ["study", "shared-gpus"])
@pytest.mark.parametrize("seed", range(2))
def test_labels_decide_nothing(solver: str, family: str, seed: int) -> None:
    header, tables = problem_to_tables(mast_opt.generate("job-placement", family, seed=seed, servers=10))
    rng, axes = np.random.default_rng(seed), {}
    for axis, labels in tables.axes.items():
        numbers = rng.permutation(len(labels)).tolist()
        axes[axis] = tuple("none" if old == "none" else f"{axis}{at:03d}" for old, at in zip(labels, numbers))
    renamed = problem_from_tables(header, replace(tables, axes=axes))
    assert decided(renamed, solver) == decided(problem_from_tables(header, tables), solver)


@pytest.mark.parametrize("types", [("A100", "T4"), ("T4", "A100")])
@pytest.mark.parametrize("first", [0, 1])
def test_fractions_leave_the_type_alone_that_only_large_jobs_ask_for(types: tuple[str, str], first: int) -> None:
    servers = [("hi", types[0]), ("lo", types[1])]
    problem = mast_opt.from_tables(
        "job-placement",
        {
            "regions": [{"region": "r"}],
            "clusters": [{"cluster": "c", "region": "r"}],
            "servers": [
                {
                    "server": name,
                    "cluster": "c",
                    "rack": "b",
                    "gpu_type": kind,
                    "gpus": 8,
                    "cpu_cores": 96,
                    "memory_gb": 700,
                }
                for name, kind in (servers[first], servers[1 - first])
            ],
            "jobs": [
                *(
                    {
                        "job": f"half{n}",
                        "tier": 0,
                        "tasks": 1,
                        "gpus": 0.5,
                        "cpu_cores": 2,
                        "memory_gb": 4,
                        "submitted_s": n,
                    }
                    for n in range(5)
                ),
                {"job": "big", "tier": 0, "tasks": 1, "gpus": 8, "cpu_cores": 8, "memory_gb": 64, "submitted_s": 9},
            ],
            "job_gpu_types": [{"job": "big", "gpu_type": types[0]}],
            "job_datasets": [],
            "replicas": [],
            "running": [],
            "allocations": [],
        },
        name="reserved",
    )
    plan = mast_opt.solve(problem, "reserve-and-pack").plan
    assert plan is not None
    assert len(set(plan.job.tolist())) == 6
