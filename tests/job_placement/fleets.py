"""Small random fleets, nearly full of gangs that may be stopped, and one job that wants to run."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble, labels
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server


def bid_for(fleet: Fleet, job: Job) -> Bid:
    """The bid for a job that finds a place."""
    answer = fleet.place(job)
    assert isinstance(answer, Bid)
    return answer


def refused_for(fleet: Fleet, job: Job) -> Refused:
    """The answer for a job that finds no place."""
    answer = fleet.place(job)
    assert isinstance(answer, Refused)
    return answer


def admit(fleet: Fleet, job: Job) -> tuple[str, ...]:
    """Start a job that finds a place; returns its victims."""
    return fleet.commit(bid_for(fleet, job))


def server(name: str, kind: str = "a100", gpus: int = 2, region: str = "north") -> Server:
    """A server of the only rack of the only cluster."""
    return Server(name, region, "c1", "b1", kind, gpus, 64_000, 65_536)


def crowded(rng: np.random.Generator, *, fractions: bool = False, scarce: bool = True) -> JobPlacement:
    """One to five servers in two regions at most; up to seven running jobs, many of them on several servers.

    Args:
        fractions: some tasks need less than one GPU.
        scarce: cores may be what is missing.
    """
    regions, clusters, servers = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
    racks = 2 * clusters
    rack = rng.integers(racks, size=servers)
    supply = np.stack(
        [
            rng.integers(1, 5, servers) * 1000,
            rng.integers(4, 9, servers) if scarce else np.full(servers, 99),
            np.full(servers, 9),
        ],
        axis=1,
    )
    fleet = GeneratedFleet(
        regions=labels("r", regions)[::-1],
        gpu_types=("a100", "h100"),
        clusters=Clusters(labels("c", clusters), rng.integers(regions, size=clusters)),
        racks=Racks(labels("b", racks), np.arange(racks) // 2),
        servers=Servers(labels("s", servers), rack, rng.integers(2, size=servers) * (rng.random() < 0.3), supply),
    )
    running = _running(rng, supply.copy(), fractions)
    mgpu = int(rng.choice([300, 500, 700])) if fractions and rng.random() < 0.5 else int(rng.integers(0, 3)) * 1000
    accepts = np.flatnonzero([True, rng.random() < 0.7])
    waiting = Pending(
        tier=np.array([int(rng.integers(0, 2))]),
        tasks=np.array([int(rng.integers(1, 7))]),
        mgpu=np.array([mgpu]),
        mcores=rng.integers(0, 3, 1),
        mib=np.array([0]),
        value_milli=np.array([1000]),
        options=(np.zeros(len(accepts), np.int64), accepts),
    )
    return assemble(
        "crowded",
        fleet,
        running,
        waiting,
        within=rng.choice(3, size=1, p=[0.2, 0.3, 0.5]),
        prefer=rng.integers(3, size=1),
    )


def _running(rng: np.random.Generator, free: np.ndarray, fractions: bool) -> Running:
    running = Running()
    devices = [[1000] * (int(room) // 1000) for room in free[:, 0]]
    for _ in range(int(rng.integers(1, 8))):
        mgpu = int(rng.choice([300, 500])) if fractions and rng.random() < 0.5 else int(rng.integers(0, 4)) * 1000
        cores = int(rng.integers(0, 3))
        wanted = rng.permutation(len(free))[: int(rng.integers(1, 4))]
        at = [s for s in wanted.tolist() if free[s, 1] >= cores and _take(devices[s], mgpu)]
        if not at:
            continue
        number = len(running.tier)
        running.tier.append(int(rng.integers(0, 4)))
        running.preemptible.append(bool(rng.random() < 0.85))
        running.at_risk.append(int(rng.integers(0, 6)) * 1000)
        for s in at:
            running.held.append((number, s, 1, mgpu, cores, 0))
            free[s, 1] -= cores
    return running


def _take(devices: list[int], mgpu: int) -> bool:
    """Take so much from the GPUs as the reading of allocations without an index would, or leave them be."""
    if mgpu >= 1000:
        chosen = [d for d, room in enumerate(devices) if room == 1000][: mgpu // 1000]
        if len(chosen) < mgpu // 1000:
            return False
        for d in chosen:
            devices[d] = 0
    elif mgpu:
        fits = [(room, d) for d, room in enumerate(devices) if room >= mgpu]
        if not fits:
            return False
        devices[min(fits)[1]] -= mgpu
    return True
