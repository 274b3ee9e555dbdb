"""Residency: a job that reads a dataset runs only in the regions listed for it, in every solver and in a live fleet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.planner.io.checksum import checksum
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.analysis.rejection_reasons import Obstacle, reasons
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.kind import KIND
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.narrowing import some


@pytest.fixture(scope="module")
def resident() -> JobPlacement:
    """Every dataset is everywhere; those that are read may be read only in the first region."""
    problem = FAMILIES["standard"].generate(np.random.default_rng(3), jobs=12, servers=24)
    assert len(problem.regions) > 1
    assert len(problem.reads.job)
    home = np.zeros_like(problem.datasets.stored)
    home[:, 0] = True
    return replace(
        problem, datasets=replace(problem.datasets, stored=np.ones_like(problem.datasets.stored), residency=home)
    )


def regions_of(problem: JobPlacement, plan: mast_opt.problems.job_placement.Plan) -> set[int]:
    reads = np.isin(plan.job, problem.reads.job)
    return set(problem.server_region[plan.server[reads]].tolist())


@pytest.mark.parametrize("solver", ["highs", *KIND.solvers.heuristics])
def test_every_solver_keeps_jobs_within_the_residency_of_their_data(solver: str, resident: JobPlacement) -> None:
    free = replace(resident, datasets=replace(resident.datasets, residency=np.zeros_like(resident.datasets.residency)))
    iterations = None if solver == "highs" or KIND.solvers.is_constructive(solver) else 5
    plans = [
        mast_opt.solve(problem, solver=solver, threads=1, gap=0.01, iterations=iterations).plan
        for problem in (free, resident)
    ]
    assert all(plan is not None for plan in plans)
    assert verify(resident, some(plans[1])).ok
    assert regions_of(resident, some(plans[1])) <= {0}
    if regions_of(free, some(plans[0])) - {0}:
        assert {v.constraint for v in verify(resident, some(plans[0])).violations} == {"residency"}


def test_the_verifier_names_job_dataset_and_region(resident: JobPlacement) -> None:
    free = replace(resident, datasets=replace(resident.datasets, residency=np.zeros_like(resident.datasets.residency)))
    found = mast_opt.solve(free, solver="exhaustive").plan
    outside = np.flatnonzero((free.server_region[some(found).server] > 0) & np.isin(some(found).job, free.reads.job))
    assert len(outside)
    j, r = int(some(found).job[outside[0]]), int(free.server_region[some(found).server[outside[0]]])
    named = {violation.name for violation in verify(resident, some(found)).violations}
    for i in resident.reads.dataset[resident.reads.job == j].tolist():
        assert f"residency[{resident.jobs.labels[j]},{resident.datasets.labels[i]},{resident.regions[r]}]" in named
    assert {reason.obstacle for reason in reasons(resident, j) if resident.clusters.region[reason.cluster] == r} == {
        Obstacle.RESIDENCY
    }


def test_remote_reads_at_a_price_do_not_open_other_regions(resident: JobPlacement) -> None:
    elsewhere = np.arange(len(resident.regions)) == 1
    priced = replace(
        resident,
        remote_reads=True,
        datasets=replace(resident.datasets, stored=np.zeros_like(resident.datasets.stored) | elsewhere),
    )
    assert not priced.open_region[priced.reads.job, 1].any()
    assert priced.open_region[priced.reads.job, 0].all()


def test_the_table_is_read_back_and_an_instance_without_it_keeps_its_checksum(
    tmp_path: Path, resident: JobPlacement
) -> None:
    mast_opt.write(resident, tmp_path / "jobs")
    again = mast_opt.read(tmp_path / "jobs")
    assert checksum(again) == checksum(resident)
    assert checksum(resident) != checksum(
        replace(resident, datasets=replace(resident.datasets, residency=np.zeros_like(resident.datasets.residency)))
    )


SERVERS = [
    Server(f"{region}-{n}", region, f"{region}-c", "r", "H100", 8, 96_000, 1 << 20) for region in "ab" for n in "12"
]
READER = Job("train", 0, tasks=1, mgpu=8000, datasets=("logs",))


def test_a_live_fleet_keeps_residency_whatever_the_replicas() -> None:
    fleet = Fleet(SERVERS, replicas={"logs": {"a", "b"}}, residency={"logs": {"b"}})
    bid = fleet.place(READER)
    assert isinstance(bid, Bid)
    assert bid.region == "b"
    by_cluster = {report.cluster: report for report in fleet.explain(READER)}
    assert by_cluster["a-c"].words == "a is outside the residency of logs"
    fleet.set_replicas("logs", {"a"})
    refused = fleet.place(READER)
    assert isinstance(refused, Refused)
    assert refused.reason == "no region holds all of its data (logs) within the residency of that data"
    for residency in ({"a"}, ()):
        with fleet.trial():
            fleet.set_replicas("logs", {"a"}, residency)
            bid = fleet.place(READER)
            assert isinstance(bid, Bid)
            assert bid.region == "a"
        assert isinstance(fleet.place(READER), Refused)


def test_the_fleet_of_an_instance_has_its_residency(resident: JobPlacement) -> None:
    fleet = Fleet.of(resident)
    for j in np.unique(resident.reads.job).tolist():
        bid = fleet.place(Job.of(resident, j))
        assert isinstance(bid, Refused) or bid.region == resident.regions[0]
