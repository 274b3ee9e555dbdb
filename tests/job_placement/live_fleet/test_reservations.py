"""Reservations of a plan: where a waiting job fits first, and by when at the latest."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.fit_times import FOREVER
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.reservations import Works, facts, reservations
from mast_opt.problems.job_placement.live_fleet.types import Job
from mast_opt.problems.job_placement.plan import empty
from tests.instance_rows import JobRows
from tests.job_placement.verification.test_verifier import plan

SIZE: dict[str, Any] = {"cpu_cores": 8, "memory_gb": 8}
NEED: dict[str, Any] = {"cpu_cores": 1, "memory_gb": 1}


def two_regions() -> JobRows:
    """Four servers of four GPUs: s0 and s1 in west, free in 7,200 and 3,600 s; s2 and s3 in east, of which the first is
    never free."""
    builder = JobRows()
    for at, region in enumerate(("west", "west", "east", "east")):
        if at % 2 == 0:
            builder.add_cluster(f"c-{region}", region=region)
        builder.add_server(f"s{at}", f"c-{region}", gpus=4, gpu_type="h100", **SIZE)
    for at, limit in enumerate((7200, 3600, None)):
        columns: Any = {} if limit is None else {"ends_within_s": limit}
        builder.add_running(f"r{at}", tier=1, preemptible=False, gpu_hours_at_risk=0, **columns)
        builder.add_allocation(f"r{at}", f"s{at}", gpus=4, **NEED)
    return builder


def test_by_when_and_where() -> None:
    """The gang of two fits in west in 7,200 s. ``one`` could start in east now, and ``last`` after it by its limit."""
    builder = two_regions()
    builder.add_job("gang", tier=1, tasks=2, gpus=4, **NEED)
    builder.add_job("one", tier=1, tasks=1, gpus=4, limit_s=600, **NEED)
    builder.add_job("last", tier=1, tasks=1, gpus=4, **NEED)
    problem = builder.build()
    done = plan(problem, ("one", "s3", 1, None))
    assert facts(problem, done) == {
        "reservations": [
            {"job": "gang", "region": "west", "within_s": 7200, "servers": ["s0", "s1"]},
            {"job": "last", "region": "east", "within_s": 600, "servers": ["s3"]},
        ]
    }
    endless = problem.with_columns({"jobs.limit_ms": np.zeros(3, np.int64)})
    found = facts(endless, done)["reservations"][1]
    assert found == {"job": "last", "region": "east", "within_s": None, "servers": []}


def with_parts(*gpus: float) -> JobPlacement:
    """``both`` waits with a part of so many GPUs each."""
    builder = two_regions()
    builder.add_job("both", tier=1)
    for at, count in enumerate(gpus):
        builder.add_job_part("both", "abcd"[at], tasks=1, gpus=count, **NEED)
    return builder.build()


def test_a_job_of_several_parts_waits_for_all_of_them() -> None:
    problem = with_parts(4, 4)
    (found,) = reservations(problem, empty(problem), problem.order).values()
    assert (found.region, found.by_ms, {*found.servers}) == (0, 7_200_000, {"s0", "s1"})
    endless = problem.with_columns({"running.ends_within_ms": np.zeros(3, np.int64)})
    (found,) = reservations(endless, empty(endless), endless.order).values()
    assert (found.region, found.by_ms, found.servers) == (1, None, ())


@pytest.mark.parametrize("seed", range(20))
def test_times_are_those_of_trials_on_a_fleet(seed: int) -> None:
    """The first end of a running job after which the waiting job fits, whatever waits before it."""
    rng = random.Random(seed)
    builder = JobRows()
    for cluster in ("a", "b"):
        builder.add_cluster(cluster, region="r")
        for at in range(4):
            kind = rng.choice(["h100", "v100"])
            builder.add_server(f"{cluster}{at}", cluster, rack=f"{at // 2}", gpus=4, gpu_type=kind, **SIZE)
            for number in range(rng.randint(0, 4)):
                name, limit = f"{cluster}{at}-{number}", rng.choice([0, *range(1, 10)])
                tier, stoppable = rng.randint(0, 2), rng.random() < 0.5
                columns: Any = {"preemptible": stoppable, "gpu_hours_at_risk": 0, "ends_within_s": limit}
                builder.add_running(name, tier=tier, **columns)
                builder.add_allocation(name, f"{cluster}{at}", gpus=rng.choice([0.5, 1]), **NEED)
    for at in range(6):
        within = rng.choice(["server", "rack", "cluster"])
        gpus = rng.choice([0.5, 1, 2, 4])
        builder.add_job(f"j{at}", tier=rng.randint(0, 2), tasks=rng.randint(1, 4), gpus=gpus, within=within, **NEED)
    problem = builder.build()
    works = Works(problem, empty(problem))
    for j in range(6):
        by_ms = _first_fit(problem, j)
        for answer in (works.fits_by(j, [0]), Fleet.of(problem).fits_by(Job.of(problem, j), 0)):
            assert (FOREVER if answer is None else answer.by_ms) == by_ms


@pytest.mark.parametrize("seed", range(6))
def test_times_of_parts_are_those_of_trials(seed: int) -> None:
    """The fleet's search places the job when what runs has ended by then; it never does before the first trial in
    which it does."""
    rng = random.Random(seed)
    builder = JobRows()
    for cluster in ("a", "b"):
        builder.add_cluster(cluster, region="r")
        for at in range(3):
            builder.add_server(f"{cluster}{at}", cluster, rack=f"{at // 2}", gpus=4, gpu_type="h100", **SIZE)
            for number in range(rng.randint(1, 4)):
                name, limit = f"{cluster}{at}-{number}", rng.choice([0, *range(1, 10)])
                columns: Any = {"preemptible": rng.random() < 0.3, "gpu_hours_at_risk": 0, "ends_within_s": limit}
                builder.add_running(name, tier=rng.randint(0, 2), **columns)
                builder.add_allocation(name, f"{cluster}{at}", gpus=1, **NEED)
    for at in range(5):
        builder.add_job(f"j{at}", tier=rng.randint(0, 2), within=rng.choice(["rack", "cluster", "region"]))
        for part in range(rng.randint(2, 3)):
            builder.add_job_part(f"j{at}", f"p{part}", tasks=rng.randint(1, 3), gpus=rng.choice([0.5, 1, 2]), **NEED)
    problem = builder.build()
    works, found = Works(problem, empty(problem)), 0
    for j in np.flatnonzero(problem.counts_once).tolist():
        by_ms, answer = _first_fit(problem, j), works.fits_by(j, [0])
        assert (FOREVER if answer is None else answer.by_ms) == by_ms
        found += answer is not None
    assert found > 1


def _first_fit(problem: JobPlacement, j: int) -> int:
    job, fleet = Job.of(problem, j), Fleet.of(problem)
    ends = {name: int(end) or FOREVER for name, end in zip(fleet.running(), problem.running.ends_within_ms)}
    for name in fleet.running():
        if fleet.job(name).preemptible and fleet.job(name).tier > job.tier:
            ends[name] = 0
    for now in sorted({0, *ends.values()}):
        for name in fleet.running():
            if ends[name] <= now:
                fleet.release(name)
        if isinstance(fleet.place(job, preempt=False), Bid):
            return now
    return FOREVER
