"""Jobs that a policy cannot tell apart have one allocation without any of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.live.policies import gavel
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.methods import solver
from mast_opt.problems.resource_allocation.methods.subproblems import equal_jobs, without_job

KINDS = np.array([[3.0, 2.0, 1.0], [4.0, 1.0, 1.0], [1.0, 1.5, 1.0]])


def test_what_makes_jobs_equal() -> None:
    problem = ResourceAllocation.from_arrays(
        "nash",
        resources={"amount": [4.0, 2.0]},
        jobs={"weight": [1.0, 1.0, 2.0, 1.0]},
        configurations=8,
        members={
            "configuration": range(8),
            "job": [0, 0, 1, 1, 2, 2, 3, 3],
            "rate": [2.0, 1.0, 1.0, 2.0, 2.0, 1.0, 2.0, 1.0],
        },
        uses={"configuration": range(8), "resource": [0, 1, 1, 0, 0, 1, 0, 1], "amount": [1.0] * 7 + [2.0]},
    )
    assert equal_jobs(problem).tolist() == [0, 0, 2, 3]
    alike = problem.with_columns({"jobs.weight": np.ones(4), "uses.amount": np.ones(8)})
    assert equal_jobs(alike).tolist() == [0, 0, 0, 0]
    floors = alike.with_columns({"jobs.min_rate": np.array([0.0, 0.1, 0.0, 0.1])})
    assert equal_jobs(floors).tolist() == [0, 1, 0, 1]
    packed = replace(
        alike,
        members=replace(
            alike.members,
            configuration=np.array([0, 1, 2, 3, 4, 5, 6, 7, 0]),
            job=np.array([0, 0, 1, 1, 2, 2, 3, 3, 1]),
            rate=np.ones(9),
        ),
    )
    assert equal_jobs(packed).tolist() == [0, 1, 2, 3]


def test_what_they_keep_is_what_a_solve_without_each_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = np.array([0, 1, 0, 2, 0, 1, 2, 2])
    jobs = gavel.Jobs(rate=KINDS[kind], weight=np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]))
    solves: list[int] = []

    def counted(problem: ResourceAllocation, job: int) -> ResourceAllocation:
        solves.append(job)
        return without_job(problem, job)

    monkeypatch.setattr(solver, "without_job", counted)
    found = gavel.solve(jobs, [2.0, 2.0, 1.0], "strategy-proof")
    assert solves == [0, 1, 3, 4]
    monkeypatch.setattr(solver, "equal_jobs", lambda problem: np.arange(len(problem.jobs)))
    each = gavel.solve(jobs, [2.0, 2.0, 1.0], "strategy-proof")
    assert len(solves) == 4 + 8
    assert found.kept is not None
    assert each.kept is not None
    assert found.kept == pytest.approx(each.kept, abs=1e-4)
