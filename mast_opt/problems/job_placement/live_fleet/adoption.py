"""Checks of what hosts report to a live fleet: shares of running jobs, capacities of servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.live_fleet.booking import devices_of, servers_of, shares_by_part
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.part_gangs import gangs_of
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Running
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share, whole
from mast_opt.problems.job_placement.units import MOST_POOLED, WHOLE


def holdings_of(job: Job, shares: tuple[Share, ...], books: FleetInventory) -> tuple[Holding, ...]:
    """Holdings of a running job, one for each of its shares, part by part.

    Raises UsageError unless these are all tasks of the job, or of each of its parts, on servers and GPUs that the fleet
    has. Whether there is room, and whether the job may run there, does not matter.
    """
    every = zip(gangs_of(job), shares_by_part(f"job {job.name}", job, shares))
    return tuple(one for gang, some in every for one in _holdings_of(gang, some, books))


def merged(held: Iterable[Holding]) -> tuple[Holding, ...]:
    """The holdings with those of one server added up, in the order of the servers' first ones.

    Raises UsageError for more GPUs of a server than any has.
    """
    found: dict[str, Holding] = {}
    for one in held:
        had = found.get(one.server)
        if had is not None:
            device = had.device.astype(np.int64) + one.device
            if (device > MOST_POOLED * WHOLE).any():
                raise UsageError(f"{one.server}: {int(device.max()):,} milli-GPUs are held; no server has so many")
            cpu, memory = had.cpu_mcores + one.cpu_mcores, had.memory_mib + one.memory_mib
            one = Holding(one.server, cpu, memory, device.astype(np.int32))
        found[one.server] = one
    return tuple(found.values())


def _holdings_of(job: Job, shares: tuple[Share, ...], books: FleetInventory) -> tuple[Holding, ...]:
    owner = f"job {job.name}"
    servers_of(owner, shares, books)
    tasks = [whole(owner, f"tasks on {share.server}", share.tasks, least=1) for share in shares]
    if sum(tasks) != job.tasks:
        raise UsageError(f"{owner}: its shares have {sum(tasks)} tasks; expected the {job.tasks} of the job")
    width = books.state.row_device.shape[1]
    return tuple(
        Holding(
            share.server,
            count * job.cpu_mcores,
            count * job.memory_mib,
            np.array(devices_of(owner, share, books.servers[share.server], width), np.int32),
        )
        for share, count in zip(shares, tasks)
    )


def shares_of(job: Job, shares: tuple[Share, ...], held: tuple[Holding, ...]) -> tuple[Share, ...]:
    """The shares of these holdings, part by part, in plain numbers and without GPUs of which nothing is taken."""
    if job.parts:
        shares = tuple(share for some in shares_by_part(f"job {job.name}", job, shares) for share in some)
    return tuple(
        replace(share, tasks=int(share.tasks), gpus={d: mgpu for d, mgpu in enumerate(one.device.tolist()) if mgpu})
        for share, one in zip(shares, held)
    )


def need_is_unknown(running: Running, books: FleetInventory) -> bool:
    """Whether a running job holds other cores or memory than its tasks need, as jobs of an instance may; these have no
    parts."""
    job = running.job
    return not job.parts and any(
        (held.cpu_mcores, held.memory_mib) != (share.tasks * job.cpu_mcores, share.tasks * job.memory_mib)
        for share, held in zip(running.shares, books.holdings_by_share(job.name))
    )


def check_in_use(books: FleetInventory, old: Server, new: Server) -> None:
    """Raise UsageError if a server would have less of something than before and than what runs there holds, or if GPUs
    in use would go or lose or get their numbers."""
    at, state = books.position[old.name], books.state
    device = state.slack_device[at, :, 0]
    for what, before, now, used in (
        ("cpu_mcores", old.cpu_mcores, new.cpu_mcores, old.cpu_mcores - int(state.slack[0, at, 0])),
        ("memory_mib", old.memory_mib, new.memory_mib, old.memory_mib - int(state.slack[1, at, 0])),
    ):
        if now < min(before, used):
            raise UsageError(f"{old.name}: {what} is {now:,}; what runs there holds {used:,}")
    if old.pool and new.pool:
        used = old.gpus * WHOLE - int(device[0])
        if new.gpus * WHOLE < min(used, old.gpus * WHOLE):
            raise UsageError(f"{old.name}: gpus is {new.gpus:,}; what runs there holds {used / WHOLE:,.10g}")
        return
    least = 0 if old.pool != new.pool else new.gpus
    size = old.gpus * WHOLE if old.pool else WHOLE
    used_at = [d for d in range(1 if old.pool else old.gpus) if device[d] != size and d >= least]
    if used_at:
        if old.pool != new.pool:
            raise UsageError(f"{old.name} cannot become or cease to be a pool while its GPUs are in use")
        raise UsageError(f"{old.name}: gpus is {new.gpus:,}, but GPU {used_at[-1]} is in use")
