"""The queue of a fleet played forward: promises and waits of jobs, most of them of several parts, on random fleets.

``python -m tests.job_placement.live_fleet.test_queue_forward 1000`` tries a thousand.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.queue_forward import starts_of_queue
from mast_opt.problems.job_placement.live_fleet.types import Job, Part
from tests.job_placement.fleets import server
from tests.job_placement.operations import new_job, new_multipart_job, new_server

LONGEST = 200
TIERS = (0, 1, 2)


def drawn(seed: int) -> tuple[Fleet, list[Job], dict[str, int], frozenset[str]]:
    """A fleet with work of which nobody is stopped, a queue by tier, how long each job runs, and its regions."""
    rng = np.random.default_rng(seed)
    servers = [new_server(rng, f"s{n}") for n in range(int(rng.integers(4, 12)))]
    fleet, empty = (Fleet(servers, tiers=TIERS) for _ in range(2))
    there = frozenset(one.region for one in servers)
    jobs = [(new_multipart_job if rng.random() < 0.6 else new_job)(rng, f"j{n}") for n in range(40)]
    limits = rng.integers(1, LONGEST, len(jobs)).tolist()
    jobs = [
        replace(job, datasets=(), tenant="", preemptible=False, limit_ms=ms, read_mb_per_day={}, costs={})
        for job, ms in zip(jobs, limits)
    ]
    lengths = {job.name: int(rng.integers(1, (job.limit_ms or 1) + 1)) for job in jobs}
    for job in jobs[:15]:
        fleet.place_and_commit(job, started_ms=0)
    queue = sorted((job for job in jobs if job.name not in fleet.running()), key=lambda job: job.tier)
    return fleet, [job for job in queue if isinstance(empty.place(job), Bid)], lengths, there


def played(seed: int) -> Counter[str]:
    """Promises of jobs with parts and without, those that were late, and starts; each job waits (n + 1) times the
    longest limit at most, with n jobs before it."""
    fleet, queue, lengths, there = drawn(seed)
    before = fleet.snapshot_bytes()
    regions = dict.fromkeys((job.name for job in queue), there)
    starts, promised = starts_of_queue(fleet, queue, regions, lengths, list(regions))
    assert fleet.snapshot_bytes() == before
    assert starts.keys() == regions.keys()
    found = Counter[str](starts=len(starts))
    for number, job in enumerate(queue):
        assert starts[job.name] <= (number + 1) * LONGEST, (seed, job.name)
        if job.name in promised:
            found["with parts" if job.parts else "without"] += 1
            found["late"] += starts[job.name] > promised[job.name].by_ms
    return found


def test_promises_are_kept_on_random_fleets() -> None:
    found = sum((played(seed) for seed in range(20)), Counter[str]())
    assert found["late"] == 0
    assert found["with parts"] > 25
    assert found["without"] > 25


def test_a_job_of_two_parts_is_passed_only_by_what_ends_before_its_promise() -> None:
    """It needs both servers from 100 on. Of two jobs behind it, the one that ends at 90 starts at once, and the one
    that might end at 110 after it; work without a length never ends."""
    fleet = Fleet([server("a"), server("b")], tiers=(0,))
    fleet.place_and_commit(Job("runs", 0, mgpu=2000, limit_ms=100), started_ms=0)
    pair = Job("pair", 0, parts=(Part("x", mgpu=2000), Part("y", mgpu=2000)), limit_ms=50)
    queue = [pair, Job("long", 0, limit_ms=110), Job("short", 0, limit_ms=90), Job("endless", 0)]
    regions = dict.fromkeys((job.name for job in queue), frozenset({"north"}))
    lengths = {"runs": 60, "pair": 50, "long": 5, "short": 70}
    starts, promised = starts_of_queue(fleet, queue, regions, lengths, list(regions))
    assert starts == {"short": 0, "pair": 70, "long": 120, "endless": 120}
    assert {name: one.by_ms for name, one in promised.items()} == {"pair": 100, "long": 120}
    assert starts_of_queue(fleet, queue, regions, {"runs": 60}, ["pair"])[0] == {"short": 0}
    assert starts_of_queue(fleet, queue, regions | {"pair": frozenset()}, lengths, ["long"])[0]["long"] == 0


if __name__ == "__main__":
    print(dict(sum((played(seed) for seed in range(int(sys.argv[1]))), Counter[str]())))
