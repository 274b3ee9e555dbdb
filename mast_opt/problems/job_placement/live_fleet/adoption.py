"""Changes of running jobs and servers that hosts report to a live fleet: shares, capacities, numbers of tasks."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.best_bid import assign_devices
from mast_opt.problems.job_placement.live_fleet.booking import devices_of, servers_of, shares_by_part
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Running
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share, gangs_of, whole
from mast_opt.problems.job_placement.units import MOST_POOLED, RACK, WHOLE, Bools, Ints


def holdings_of(job: Job, shares: tuple[Share, ...], books: FleetInventory) -> tuple[Holding, ...]:
    """Holdings of a running job, one for each of its shares, part by part.

    Raises UsageError unless these are all tasks of the job, or of each of its parts, on servers and GPUs that the fleet
    has. Whether there is room, and whether the job may run there, does not matter.
    """
    every = zip(gangs_of(job), shares_by_part(f"job {job.name}", job, shares))
    return tuple(one for gang, some in every for one in _holdings_of(gang, some, books))


def merged(held: Iterable[Holding]) -> tuple[Holding, ...]:
    """The holdings of a running job with those of one server added up, in the order of the servers' first ones.

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
    """Holdings of a running job from the shares that its host reports. Raises UsageError where they are not
    its tasks.
    """
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
    """The shares of a running job's holdings, part by part, in plain numbers and without GPUs of which nothing is
    taken.
    """
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
    """The shares of a resized job with fewer tasks. Servers in ``first`` lose theirs first, then those with the fewest
    tasks, of equals the last one; on a server, GPUs with high numbers are given up first.
    """
    shares, left = list(running.shares), running.job.tasks - tasks
    for at in sorted(range(len(shares)), key=lambda at: (shares[at].server not in first, shares[at].tasks, -at)):
        gone = min(left, shares[at].tasks)
        left -= gone
        shares[at] = _fewer(shares[at], shares[at].tasks - gone, mgpu)
    return tuple(share for share in shares if share.tasks)


def _fewer(share: Share, tasks: int, mgpu: int) -> Share:
    """A share of a resized job with fewer tasks; its GPUs of the lowest numbers stay."""
    left, gpus = tasks * mgpu, {}
    for d in sorted(share.gpus):
        gpus[d] = min(share.gpus[d], left)
        left -= gpus[d]
    return Share(share.server, tasks, {d: taken for d, taken in gpus.items() if taken})


def enlarged(running: Running, tasks: int, mgpu: int, books: FleetInventory) -> tuple[Share, ...] | None:
    """The shares of a resized job with more tasks; None where there is no room for these among the servers of the same
    cluster and GPU type, or as near as ``within`` asks.
    """
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
    """The servers that a resized job of the fleet is on, then those of the same racks, then all; as far as it may be
    spread.
    """
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
        fit = np.minimum(fit, state.room[col.A_WHOLE, tier, at] // (mgpu // WHOLE))
    elif mgpu:
        fit = np.minimum(fit, (state.slack_device[at, :, : tier + 1].min(axis=2) // mgpu).sum(axis=1))
    for row, need in ((col.A_CPU, job.cpu_mcores), (col.A_MEMORY, job.memory_mib)):
        if need:
            fit = np.minimum(fit, state.room[row, tier, at] // need)
    return np.where(state.server[col.S_BLOCKED, at] == 1, 0, np.maximum(fit, 0))


def _take(fit: Ints, takes: Ints, allowed: Bools, tasks: int) -> int:
    """Move tasks of a resized job from ``fit`` to ``takes`` on allowed servers: the one with the least room that holds
    all, while there is none the one with the most; returns how many.
    """
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
    """Shares of a resized job joined with its further tasks on each server."""
    for share in shares:
        tasks, device = more.pop(share.server, (0, []))
        gpus = dict(share.gpus)
        for d, mgpu in enumerate(device):
            if mgpu:
                gpus[d] = gpus.get(d, 0) + mgpu
        yield Share(share.server, share.tasks + tasks, dict(sorted(gpus.items())))
    for server, (tasks, device) in more.items():
        yield Share(server, tasks, {d: mgpu for d, mgpu in enumerate(device) if mgpu})
