"""Resizing of running jobs (job placement): which tasks of a job go, and where further ones run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.engine.best_bid import assign_devices
from mast_opt.problems.job_placement.engine.state import A_CPU, A_MEMORY, A_WHOLE, S_BLOCKED
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.running_job import Running
from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.job_placement.units import RACK, WHOLE, Bools, Ints


def need_of(running: Running, books: FleetInventory) -> int:
    """Milli-GPUs of a task of a running job.

    Raises UsageError where the job does not hold what its tasks need, as is so with jobs of an instance, of which only
    the total is known.
    """
    job, needs = running.job, set()
    for share, held in zip(running.shares, books.holdings_by_share(running.job.name)):
        kind = books.servers[share.server].gpu_type
        need = job.mgpu if job.gpu_types is None else job.gpu_types.get(kind, -1)
        total = tuple(share.tasks * each for each in (need, job.cpu_mcores, job.memory_mib))
        if (sum(share.gpus.values()), held.cpu_mcores, held.memory_mib) != total:
            needs.add(-1)
        needs.add(need)
    if len(needs) != 1 or -1 in needs:
        raise UsageError(f"what a task of {job.name} needs is unknown where it runs; adopt it with these needs first")
    return needs.pop()


def shrunk(running: Running, tasks: int, mgpu: int, first: Collection[str]) -> tuple[Share, ...]:
    """The shares with fewer tasks. Servers in ``first`` lose theirs first, then those with the fewest tasks, of equals
    the last one; on a server, GPUs with high numbers are given up first."""
    shares, left = list(running.shares), running.job.tasks - tasks
    for at in sorted(range(len(shares)), key=lambda at: (shares[at].server not in first, shares[at].tasks, -at)):
        gone = min(left, shares[at].tasks)
        left -= gone
        shares[at] = _fewer(shares[at], shares[at].tasks - gone, mgpu)
    return tuple(share for share in shares if share.tasks)


def _fewer(share: Share, tasks: int, mgpu: int) -> Share:
    left, gpus = tasks * mgpu, {}
    for d in sorted(share.gpus):
        gpus[d] = min(share.gpus[d], left)
        left -= gpus[d]
    return Share(share.server, tasks, {d: taken for d, taken in gpus.items() if taken})


def enlarged(running: Running, tasks: int, mgpu: int, books: FleetInventory) -> tuple[Share, ...] | None:
    """The shares with more tasks; None where there is no room for these among the servers of the same cluster and GPU
    type, or as near as ``within`` asks."""
    left = tasks - running.job.tasks
    layout, own = books.layout, [books.position[share.server] for share in running.shares]
    group = int(layout.group[own[0]])
    at = np.arange(int(layout.group_start[group]), int(layout.group_start[group + 1]))
    mine = np.isin(at, own)
    near = np.isin(layout.rack[at], layout.rack[own])
    request = books.request(replace(running.job, tasks=tasks), running.tier)
    fit = _fit(books, at, mgpu, running, left)
    takes = np.zeros(len(at), np.int64)
    for allowed in _scopes(request.within, mine, near):
        left -= _take(fit, takes, allowed, left)
    if left:
        return None
    chosen = np.flatnonzero(takes)
    device = np.zeros((len(chosen), books.state.row_device.shape[1]), np.int32)
    fits = assign_devices(books.state, at[chosen], takes[chosen], mgpu, request, device)
    assert fits, f"{running.job.name} does not fit where it was said to"
    more = {books.server_at(int(at[s])): (int(takes[s]), row.tolist()) for s, row in zip(chosen, device)}
    return tuple(_joined(running.shares, more))


def _scopes(within: int, mine: Bools, near: Bools) -> Iterator[Bools]:
    """The servers that the job is on, then those of the same racks, then all; as far as it may be spread."""
    yield mine
    if within >= RACK:
        yield near
    if within > RACK:
        yield np.ones_like(mine)


def _fit(books: FleetInventory, at: Ints, mgpu: int, running: Running, most: int) -> Ints:
    """[·] further tasks that servers hold, at most so many."""
    state, tier, job = books.state, running.tier, running.job
    fit = np.full(len(at), most)
    if mgpu >= WHOLE:
        fit = np.minimum(fit, state.room[A_WHOLE, tier, at] // (mgpu // WHOLE))
    elif mgpu:
        fit = np.minimum(fit, (state.slack_device[at, :, : tier + 1].min(axis=2) // mgpu).sum(axis=1))
    for row, need in ((A_CPU, job.cpu_mcores), (A_MEMORY, job.memory_mib)):
        if need:
            fit = np.minimum(fit, state.room[row, tier, at] // need)
    return np.where(state.server[S_BLOCKED, at] == 1, 0, np.maximum(fit, 0))


def _take(fit: Ints, takes: Ints, allowed: Bools, tasks: int) -> int:
    """Move tasks from ``fit`` to ``takes`` on allowed servers: the one with the least room that holds all, while there
    is none the one with the most; returns how many."""
    left = tasks
    while left:
        room = np.where(allowed, fit, 0)
        if not room.any():
            break
        at = int(np.where(room >= left, room, room.max() + 1).argmin() if (room >= left).any() else room.argmax())
        taken = min(left, int(fit[at]))
        takes[at] += taken
        fit[at] -= taken
        left -= taken
    return tasks - left


def _joined(shares: tuple[Share, ...], more: dict[str, tuple[int, list[int]]]) -> Iterator[Share]:
    for share in shares:
        tasks, device = more.pop(share.server, (0, []))
        gpus = dict(share.gpus)
        for d, mgpu in enumerate(device):
            if mgpu:
                gpus[d] = gpus.get(d, 0) + mgpu
        yield Share(share.server, share.tasks + tasks, dict(sorted(gpus.items())))
    for server, (tasks, device) in more.items():
        yield Share(server, tasks, {d: mgpu for d, mgpu in enumerate(device) if mgpu})
