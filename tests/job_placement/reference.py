"""A slow fleet that keeps nothing but names and recomputes everything, to hold the live one against."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mast_opt.problems.job_placement.engine.state import NEVER
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.running_job import cost_of
from mast_opt.problems.job_placement.live_fleet.types import Job, Share


def expected(books: FleetInventory) -> dict[str, np.ndarray]:
    """The arrays of the ledger outside any round, from the servers and the shares of the running jobs alone."""
    servers, tiers = len(books.servers), books.ranks.levels
    most = books.state.row_device.shape[1]  # places for GPUs stay when the widest server shrinks
    at = books.position
    free = np.zeros((servers, 2), np.int64)
    device = np.zeros((servers, most), np.int64)
    for name, server in books.servers.items():
        free[at[name]] = server.cpu_mcores, server.memory_mib
        if server.pool:
            device[at[name], 0] = 1000 * server.gpus
        else:
            device[at[name], : server.gpus] = 1000
    reclaim = np.zeros((5, tiers + 1, servers), np.int64)
    reclaim[3:] = NEVER
    used: dict[str, int] = dict.fromkeys(books.region_names, 0)
    for running in books.running.values():
        for share in running.shares:
            s = at[share.server]
            free[s] -= amounts(running.job, share)
            for d, amount in share.gpus.items():
                device[s, d] -= amount
    over = (free < 0).any(axis=1) | (device < 0).any(axis=1)
    assert {books.server_at(s) for s in np.flatnonzero(over).tolist()} == books.over_booked
    blocked = over | np.array([books.server_at(s) in books.blocked for s in range(servers)])
    for running in books.running.values():
        mgpu = sum(sum(share.gpus.values()) for share in running.shares)
        for share in running.shares:
            s, here = at[share.server], sum(share.gpus.values())
            cpu, memory = amounts(running.job, share)
            used[books.servers[share.server].region] += here
            limit = books.tiers.index(running.job.tier)
            if running.over_quota and books.ranks.reclaim == "any":
                limit = running.tier
            elif not running.job.preemptible and not (running.over_quota and books.ranks.reclaim == "lower-priority"):
                limit = 0
            if limit > 0 and not blocked[s]:
                cost = cost_of(running.job)
                for p in range(limit + 1):
                    reclaim[:3, p, s] += here, cpu, memory
                    reclaim[3, p, s] = min(reclaim[3, p, s], cost)
                    if here:
                        reclaim[4, p, s] = min(reclaim[4, p, s], cost // mgpu)
    whole, total = (device // 1000).sum(axis=1), device.sum(axis=1)
    room = np.stack([whole, total, free[:, 0], free[:, 1]])
    room[:2, blocked] = 0
    room[2:, blocked] = -1
    groups = len(books.everywhere)
    in_group = books.layout.group[None, :] == np.arange(groups)[:, None]
    return {
        "slack": np.repeat(free.T[:, :, None], tiers, axis=2),
        "slack_device": np.repeat(device[:, :, None], tiers, axis=2),
        "room": np.repeat(room[:, None, :], tiers, axis=1),
        "reclaim": reclaim,
        "used": np.array([used[name] for name in books.region_names]),
        "total_whole": np.repeat((in_group * room[0]).sum(axis=1)[None], tiers, axis=0),
        "total_free": np.repeat((in_group * room[1]).sum(axis=1)[None], tiers, axis=0),
        "total_reclaim": (in_group[None] * reclaim[0][:, None, :]).sum(axis=2),
    }


def amounts(job: Job, share: Share) -> tuple[int, int]:
    """Millicores and MiB of the tasks of a share."""
    gang = {part.name: part for part in job.parts}[share.part] if job.parts else job
    return share.tasks * gang.cpu_mcores, share.tasks * gang.memory_mib


def kept(books: FleetInventory) -> dict[str, np.ndarray]:
    """The same arrays as the live fleet has kept them up to date."""
    state = books.state
    tiers = state.room.shape[1]
    return {
        "slack": state.slack,
        "slack_device": state.slack_device,
        "room": state.room,
        "reclaim": state.reclaim,
        "used": state.region[3, : len(books.region_names)],
        "total_whole": state.total[0, :tiers],
        "total_free": state.total[1, :tiers],
        "total_reclaim": state.total[2],
    }


def assert_exact(books: FleetInventory) -> None:
    right = expected(books)
    for name, array in kept(books).items():
        assert np.array_equal(array, right[name]), name
    for name in books.running:
        gpus: dict[str, Counter[int]] = {}
        for share in books.running[name].shares:
            gpus.setdefault(share.server, Counter()).update(share.gpus)
        for one in books.holdings(name):
            held = {d: int(mgpu) for d, mgpu in enumerate(one.device.tolist()) if mgpu}
            assert held == dict(gpus.pop(one.server)), name
        assert not gpus, name
