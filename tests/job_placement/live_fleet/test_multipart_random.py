"""Jobs of several parts in the live fleet: random states, and what the batch solver does with the same jobs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from mast_opt.problems.job_placement.units import WHOLE_JOB_LEVELS
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.instance_rows import JobRows
from tests.job_placement.brute import Brute
from tests.job_placement.live_fleet.test_agreement import placed
from tests.job_placement.operations import new_multipart_job, random_operation, small_fleet
from tests.job_placement.reference import assert_exact
from tests.job_placement.strategies import problems


def test_bids_hold_in_random_states() -> None:
    """Each bid gives every part its tasks, on one GPU type of one cluster and within the levels, and nothing is
    over-booked afterwards."""
    rng, seen = np.random.default_rng(8), 0
    fleet = small_fleet(rng)
    for number in range(400):
        random_operation(rng, fleet, number)
        job = new_multipart_job(rng, f"asked{number}")
        answer = fleet.place(job)
        if isinstance(answer, Refused):
            continue
        assert len(job.parts) == 1 or fleet.bids(job)[0] == answer
        servers = fleet._books.servers
        places = {"region": ("region",), "cluster": ("cluster",), "rack": ("cluster", "rack"), "server": ("name",)}
        for part, where in zip(job.parts, answer.parts):
            shares = [share for share in answer.shares if share.part == part.name]
            assert sum(share.tasks for share in shares) == part.tasks
            on = [servers[share.server] for share in shares]
            assert {(at.cluster, at.gpu_type) for at in on} == {(where.cluster, where.gpu_type)}
            assert len({_place(at, places[part.within]) for at in on}) == 1
        assert len({_place(servers[share.server], places[job.within]) for share in answer.shares}) == 1
        over = set(fleet.over_booked())
        running = set(fleet.running())
        assert set(fleet.commit(answer)) == running - set(fleet.running())
        assert set(fleet.over_booked()) <= over
        seen += bool(answer.victims)
        if number % 20 == 0:
            assert_exact(fleet._books)
    assert seen > 20


def _place(server: Server, fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(getattr(server, field) for field in fields)


def alone(p: JobPlacement, first: int) -> JobPlacement:
    """The instance with one of its pending jobs only, all parts of it."""
    rows = np.flatnonzero(p.first_part == first)

    def own(relation: Any) -> Any:
        kept = relation.rows(np.isin(relation.job, rows))
        return replace(kept, job=kept.job - first)

    parts = own(p.parts)
    whole = np.unique(parts.whole)
    labels = tuple(p.multipart_jobs.labels[g] for g in whole.tolist())
    return replace(
        p,
        jobs=p.jobs.rows(rows),
        options=own(p.options),
        reads=own(p.reads),
        costs=own(p.costs),
        multipart_jobs=replace(p.multipart_jobs, labels=labels, within=p.multipart_jobs.within[whole]),
        parts=replace(parts, whole=np.zeros(len(parts), np.int64)),
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(jobs=3, servers=5, running=4, parts=True))
def test_all_parts_go_where_the_batch_puts_them(problem: JobPlacement) -> None:
    for first in np.flatnonzero(problem.counts_once).tolist():
        p = alone(problem, first)
        plan, answer = placed(p).plan(), Fleet.of(p).place(Job.of(p, 0))
        assert verify(p, plan).ok
        if isinstance(answer, Refused):
            assert not len(plan.job), answer.reason
            continue
        assert set(answer.victims) == {p.running.labels[v] for v in np.flatnonzero(plan.preempt).tolist()}
        shares = [(share.part, share.server, share.tasks) for share in answer.shares]
        names = p.parts.labels if len(p.parts) else [""]
        rows = [(names[j], p.servers.labels[s], n) for j, s, n in zip(plan.job, plan.server, plan.tasks)]
        added = {pair: sum(n for *other, n in rows if tuple(other) == pair) for pair in {row[:2] for row in rows}}
        assert sorted(shares) == sorted((*pair, n) for pair, n in added.items())


def test_what_the_search_misses() -> None:
    """Of small random jobs of two parts, the search places those that enumeration places, and no other."""
    rng, missed, both = np.random.default_rng(5), 0, 0
    for _ in range(20):
        p = _crowded(rng)
        brute = Brute(p)
        fits = any(brute.feasible(gangs, (False,)) for gangs in product(*(list(brute.gangs(j)) for j in range(2))))
        answer = Fleet.of(p).place(Job.of(p, 0))
        assert fits or isinstance(answer, Refused)
        both += isinstance(answer, Bid)
        missed += fits and isinstance(answer, Refused)
    assert both > 2
    assert missed == 0


def _crowded(rng: np.random.Generator) -> JobPlacement:
    """Five servers in two regions, partly taken, and a job of two parts."""
    builder = JobRows("crowded")
    for c in range(3):
        builder.add_cluster(f"c{c}", region="ab"[c % 2])
    builder.add_running("old", tier=0, preemptible=False, gpu_hours_at_risk=1)
    for s in range(5):
        gpus, cores = int(rng.integers(1, 4)), int(rng.integers(2, 7))
        at, rack = f"c{rng.integers(3)}", str(rng.integers(2))
        builder.add_server(f"s{s}", at, gpu_type="k", gpus=gpus, cpu_cores=cores, memory_gb=1, rack=rack)
        builder.add_allocation("old", f"s{s}", gpus=int(rng.integers(gpus)), cpu_cores=1, memory_gb=0)
    builder.add_job("job", tier=0, value=1, within=str(rng.choice(WHOLE_JOB_LEVELS)))
    for part in "pq":
        tasks, gpus, cores = (int(rng.integers(*ends)) for ends in ((1, 3), (0, 3), (1, 4)))
        within = str(rng.choice(["cluster", "cluster", "rack"]))
        builder.add_job_part("job", part, tasks=tasks, gpus=gpus, cpu_cores=cores, memory_gb=0, within=within)
    return builder.build()
