"""Best bid for one job (job-placement engine): free capacity, else the cheapest victims; then its servers and GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, entry, kernel
from mast_opt.problems.job_placement.engine.capacity_ledger import (
    last_tier_of_victim,
    new_job,
    new_row,
    refresh,
    shift,
    start,
    stop,
)
from mast_opt.problems.job_placement.engine.feasibility import Request, choose_devices, tasks_on
from mast_opt.problems.job_placement.engine.free_capacity_search import NOWHERE, excess, level_in, search
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.preemption.victim_search import Victims, search_victims
from mast_opt.problems.job_placement.engine.server_selection import Placement, pack
from mast_opt.problems.job_placement.engine.state import G_TYPE, J_COST, J_ROW, L_NEXT, L_SERVER, EngineState
from mast_opt.problems.job_placement.units import Bools, Ints

NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class BestBid:
    """A bid: where a job would go, and which victims it would displace."""

    group: int
    level: int
    placed: Placement
    victims: Ints
    """Places of the running jobs in the state."""
    threshold: int | None
    """The most important tier of a victim; None without victims."""
    proven: bool
    """Whether no bid is better."""


def best_bid(
    state: EngineState, job: Request, allowed: Bools, style: int, limits: SearchLimits = DEFAULT_LIMITS
) -> BestBid | None:
    """The best bid for a job, or None if it fits nowhere. The state is as before when this returns.

    Args:
        allowed: [G] groups that may be used.
        style: which of equally good servers to take, see ``pack``.
        limits: of the search for victims.
    """
    group, level = search(state, job, allowed)
    if group >= 0:
        return BestBid(group, level, on_servers(state, group, level, job, style, NOBODY), NOBODY, None, True)
    found = search_victims(state, job, allowed, limits)
    return None if found is None else bid_of(state, job, style, found)


def bid_of(state: EngineState, job: Request, style: int, found: Victims) -> BestBid:
    """The bid for a job once these victims are stopped."""
    jobs = found.jobs if found.proven else needed(state, found.group, job, found.jobs)
    placed = on_servers(state, found.group, NOWHERE, job, style, jobs)
    return BestBid(found.group, int(placed.level[0]), placed, jobs, found.threshold, found.proven)


@compiled
def on_servers(state: EngineState, g: int, level: int, job: Request, style: int, victims: Ints) -> Placement:
    """Servers and GPUs for a job in a group in which it fits once the victims are gone; none if it does not. With the
    level NOWHERE, the closest one that fits is taken."""
    _assume_all_stopped(state, victims, 1)
    if level == NOWHERE:
        level = level_in(state, g, job)
    placed = pack(state, g, level, job, style)
    _name_devices(state, job.mgpu[state.group[G_TYPE, g]], job, placed)
    _assume_all_stopped(state, victims, -1)
    return placed


@kernel
def _name_devices(state: EngineState, mgpu: int, job: Request, placed: Placement) -> None:
    for row in range(len(placed.server)):
        choose_devices(state, placed.server[row], mgpu, placed.tasks[row], job.tier, placed.device[row])


@kernel
def _assume_all_stopped(state: EngineState, victims: Ints, sign: int) -> None:
    for at in range(len(victims)):
        _assume_stopped(state, victims[at], sign)


@kernel
def _assume_stopped(state: EngineState, victim: int, sign: int) -> None:
    """Pretend (sign 1) that a victim is stopped, or no longer (sign −1)."""
    last = last_tier_of_victim(state, victim)
    row = state.job[J_ROW, victim]
    while row >= 0:
        shift(state, row, last, sign)
        refresh(state, state.row[L_SERVER, row])
        row = state.row[L_NEXT, row]


@compiled
def needed(state: EngineState, g: int, job: Request, victims: Ints) -> Ints:
    """The victims without those that the job fits without, at no wider level; the most expensive are tried first."""
    stopped = np.ones(len(victims), np.bool_)
    tried = np.zeros(len(victims), np.bool_)
    _assume_all_stopped(state, victims, 1)
    level = excess(level_in(state, g, job), job)
    for _ in range(len(victims)):
        costliest = -1
        for at in range(len(victims)):
            cost = state.job[J_COST, victims[at]]
            if not tried[at] and (costliest < 0 or cost > state.job[J_COST, victims[costliest]]):
                costliest = at
        tried[costliest] = True
        _assume_stopped(state, victims[costliest], -1)
        now = level_in(state, g, job)
        if now < NOWHERE and excess(now, job) <= level:
            stopped[costliest] = False
        else:
            _assume_stopped(state, victims[costliest], 1)
    _assume_all_stopped(state, victims[stopped], -1)
    return victims[stopped]


@entry
def take(state: EngineState, job: Request, placed: Placement, victims: Ints, limit: int, cost: int, fresh: bool) -> int:
    """Stop the victims and start the job there; returns its place among the running jobs.

    Args:
        fresh: within a round, so that what victims free serves only more important jobs than they are.
    """
    stop_all(state, victims, fresh)
    number = new_job(state, job.tier, limit, cost, fresh)
    for row in range(len(placed.server)):
        tasks = placed.tasks[row]
        new_row(state, number, placed.server[row], tasks * job.cpu, tasks * job.memory, placed.device[row])
    start(state, number, job.tier if fresh else state.room.shape[1] - 1)
    return number


@kernel
def stop_all(state: EngineState, victims: Ints, fresh: bool) -> None:
    """Stop the victims; ``fresh``: see ``take``."""
    for at in range(len(victims)):
        last = last_tier_of_victim(state, victims[at]) if fresh else state.room.shape[1] - 1
        stop(state, victims[at], last)


@entry
def assign_devices(
    state: EngineState, server: Ints, tasks: Ints, mgpu: int, job: Request, device: NDArray[np.int32]
) -> bool:
    """Choose the GPUs of a job whose servers are given; False if one of them has no room."""
    for row in range(len(server)):
        if tasks_on(state, server[row], mgpu, job) < tasks[row]:
            return False
        choose_devices(state, server[row], mgpu, tasks[row], job.tier, device[row])
    return True
