"""Regions with room for a job, against a count server by server."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_fold import PastJob, PastServer
from mast_opt.live.loop.past_state import PastRoom


def server(rng: np.random.Generator, number: int) -> PastServer:
    region, cluster, rack = (str(rng.choice(list(names))) for names in ("ef", "xy", "12"))
    up = ev.ServerUp(f"s{number}", region, f"{region}{cluster}", rack, str(rng.choice(["A", "H"])), 8, 20, 40)
    return PastServer(up, free=[int(rng.integers(-2, 9)) * 1000, int(rng.integers(0, 20)), int(rng.integers(0, 40))])


def any_job(rng: np.random.Generator) -> PastJob:
    spec = JobSpec(
        tasks=int(rng.integers(1, 6)),
        mgpu=int(rng.choice([0, 500, 1000, 4000])),
        cpu_mcores=int(rng.choice([0, 4])),
        memory_mib=int(rng.choice([0, 9])),
        gpu_types=[None, {"A": 1000}, {"A": 500, "H": 2000}, {"Z": 1000}][int(rng.integers(4))],
        within=str(rng.choice(["server", "rack", "cluster"])),
    )
    return PastJob("a", spec, 0)


def counted(servers: list[PastServer], job: PastJob) -> tuple[str, ...]:
    room: Counter[tuple[str, ...]] = Counter()
    for one in servers:
        if job.spec.gpu_types is None or one.up.gpu_type in job.spec.gpu_types:
            fits = [have // need for have, need in zip(one.free, job.need(one.up.gpu_type, "")) if need]
            near = {"server": (one.up.rack, one.up.server), "rack": (one.up.rack,)}.get(job.spec.within, ())
            room[one.up.region, one.up.cluster, *near] += max(0, min(fits, default=0))
    return tuple(sorted({group[0] for group, tasks in room.items() if tasks >= job.spec.tasks}))


@pytest.mark.parametrize("seed", range(5))
def test_against_a_count_server_by_server(seed: int) -> None:
    rng = np.random.default_rng(seed)
    servers = [server(rng, number) for number in range(12)]
    room = PastRoom(servers)
    answers = Counter[int]()
    for _ in range(200):
        job = any_job(rng)
        assert room.regions(job) == counted(servers, job)
        answers[len(room.regions(job))] += 1
        one = servers[int(rng.integers(len(servers)))]
        one.free[int(rng.integers(3))] += int(rng.integers(-3, 4)) * 500
        room.changed(one.up.server)
        room.changed("in no service")
    assert all(answers[regions] for regions in range(3))


def test_servers_that_go_and_come_back() -> None:
    rng = np.random.default_rng(0)
    servers = [server(rng, number) for number in range(12)]
    down = {0, 7}
    for at in down:
        servers[at].in_service = False
    room = PastRoom(servers)
    for _ in range(300):
        at = int(rng.integers(len(servers)))
        if at in down:
            servers[at] = PastServer(servers[at].up, free=[8000, 20, 40])
        elif rng.random() < 0.5:
            servers[at].in_service = False
        else:
            servers[at].moves = True
        assert room.follow(servers[at])
        room.changed(servers[at].up.server)
        down ^= {at}
        job = any_job(rng)
        assert room.regions(job) == counted([one for at, one in enumerate(servers) if at not in down], job)
    assert not room.follow(PastServer(replace(servers[0].up, region="g")))
    assert not room.follow(PastServer(replace(servers[0].up, server="new")))


def test_no_server_has_no_room() -> None:
    assert PastRoom([]).regions(any_job(np.random.default_rng(0))) == ()
