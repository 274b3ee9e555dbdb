"""Best bid for one job (job-placement engine): free capacity, else the cheapest victims; then its servers and GPUs.

Where costs depend on the cluster, the price decides between equal spreads. A bid that is accepted is booked where it
says, if there is room.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, entry, kernel
from mast_opt.problems.job_placement.engine import capacity_ledger as ledger
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.feasibility import (
    NOWHERE,
    Request,
    choose_devices,
    excess,
    groups_in_order,
    level_in,
    search,
    tasks_on,
)
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.preemption.victim_search import Victims, search_victims
from mast_opt.problems.job_placement.engine.server_selection import (
    LEAST_LOSS,
    TIGHT,
    Placement,
    on_one_server,
    pack,
    search_least_loss,
)
from mast_opt.problems.job_placement.engine.state import EngineState, Small
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
    _name_devices(state, job.mgpu[state.group[col.G_TYPE, g]], job, placed)
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
    last = ledger.last_tier_of_victim(state, victim)
    row = state.job[col.J_ROW, victim]
    while row >= 0:
        ledger.shift(state, row, last, sign)
        ledger.refresh(state, state.row[col.L_SERVER, row])
        row = state.row[col.L_NEXT, row]


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
            cost = state.job[col.J_COST, victims[at]]
            if not tried[at] and (costliest < 0 or cost > state.job[col.J_COST, victims[costliest]]):
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
    number = ledger.new_job(state, job.tier, limit, cost, fresh)
    for row in range(len(placed.server)):
        tasks = placed.tasks[row]
        ledger.new_row(state, number, placed.server[row], tasks * job.cpu, tasks * job.memory, placed.device[row])
    ledger.start(state, number, job.tier if fresh else state.room.shape[1] - 1)
    return number


@kernel
def stop_all(state: EngineState, victims: Ints, fresh: bool) -> None:
    """Stop the victims; ``fresh``: see ``take``."""
    for at in range(len(victims)):
        last = ledger.last_tier_of_victim(state, victims[at]) if fresh else state.room.shape[1] - 1
        ledger.stop(state, victims[at], last)


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


@entry
def book(state: EngineState, job: Request, placed: Placement, victims: Ints, limit: int, cost: int, fresh: bool) -> int:
    """Book a job like ``take`` where every server has room once the victims have stopped; otherwise change nothing.

    Returns the job's place among the running jobs, or −1 − the first row of ``placed`` that has no room.
    """
    for row in range(len(placed.server)):
        cpu, memory = placed.tasks[row] * job.cpu, placed.tasks[row] * job.memory
        if not _has_room(state, job.tier, placed.server[row], cpu, memory, placed.device[row], victims):
            return -1 - row
    return int(take(state, job, placed, victims, limit, cost, fresh))


@entry
def book_amounts(
    state: EngineState, tier: int, rows: Ints, device: Small, victims: Ints, limit: int, cost: int, fresh: bool
) -> int:
    """Book a job whose tasks are not alike, like ``book``.

    Args:
        rows: [A, 3] position, millicores, MiB of what it holds on each server.
        device: [A, D] milli-GPUs of each GPU.
    """
    for row in range(len(rows)):
        if not _has_room(state, tier, rows[row, 0], rows[row, 1], rows[row, 2], device[row], victims):
            return -1 - row
    stop_all(state, victims, fresh)
    number = ledger.new_job(state, tier, limit, cost, fresh)
    for row in range(len(rows)):
        ledger.new_row(state, number, rows[row, 0], rows[row, 1], rows[row, 2], device[row])
    ledger.start(state, number, tier if fresh else state.room.shape[1] - 1)
    return number


@kernel
def _has_room(state: EngineState, tier: int, s: int, cpu: int, memory: int, device: Small, victims: Ints) -> bool:
    for at in range(len(victims)):
        row = state.job[col.J_ROW, victims[at]]
        while row >= 0:
            if state.row[col.L_SERVER, row] == s:
                cpu -= state.row[col.L_CPU, row]
                memory -= state.row[col.L_MEMORY, row]
            row = state.row[col.L_NEXT, row]
    fits = state.server[col.S_BLOCKED, s] == 0
    for p in range(tier + 1):
        fits = fits and state.slack[0, s, p] >= cpu and state.slack[1, s, p] >= memory
    for d in range(len(device)):
        fits = fits and (device[d] == 0 or _room_on(state, s, d, tier, victims) >= device[d])
    return bool(fits)


@kernel
def _room_on(state: EngineState, s: int, d: int, tier: int, victims: Ints) -> int:
    """Milli-GPUs of one GPU for work of the tier once the victims have stopped."""
    room = state.slack_device[s, d, 0]
    for p in range(1, tier + 1):
        room = min(room, state.slack_device[s, d, p])
    for at in range(len(victims)):
        row = state.job[col.J_ROW, victims[at]]
        while row >= 0:
            if state.row[col.L_SERVER, row] == s:
                room += state.row_device[row, d]
            row = state.row[col.L_NEXT, row]
    return int(room)


Prices = NDArray[np.float64] | None
"""[G] of a job in each group; None where all are equal."""


def place_priced(
    state: EngineState,
    job: Request,
    allowed: Bools,
    style: int,
    price: Prices,
    limits: SearchLimits = DEFAULT_LIMITS,
) -> BestBid | None:
    """Best bid for a job like ``best_bid``, with the price [G] of each group between spread and load; None where all
    prices are equal. With the style LEAST_LOSS, the loss of value comes between price and load, and the style is TIGHT
    where there are victims."""
    groups = _ordered(state, job, allowed, style, price)
    found = _place_free(state, job, allowed, style, price, groups)
    if found is not None:
        return found
    victims = search_victims(state, job, allowed, limits, groups)
    return None if victims is None else bid_of(state, job, TIGHT if style == LEAST_LOSS else style, victims)


def place_free(state: EngineState, job: Request, allowed: Bools, style: int, price: Prices) -> BestBid | None:
    """Best bid like ``place_priced``, without victims."""
    return _place_free(state, job, allowed, style, price, _ordered(state, job, allowed, style, price))


def _ordered(state: EngineState, job: Request, allowed: Bools, style: int, price: Prices) -> Ints | None:
    """The groups by price; None where neither price nor loss of value decides."""
    return groups_by_price(state, job, allowed, price) if price is not None or style == LEAST_LOSS else None


def _place_free(
    state: EngineState, job: Request, allowed: Bools, style: int, price: Prices, groups: Ints | None
) -> BestBid | None:
    """Best bid of the engine on free capacity, without victims; None if the job fits nowhere."""
    if groups is not None and style == LEAST_LOSS:
        return _least_loss(state, job, groups, price)
    group, level = search(state, job, allowed) if groups is None else _first(state, job, groups)
    if group < 0:
        return None
    return BestBid(group, level, on_servers(state, group, level, job, style, NOBODY), NOBODY, None, True)


def _least_loss(state: EngineState, job: Request, groups: Ints, price: Prices) -> BestBid | None:
    """Best bid of the engine on free capacity where fragmentation grows least; None if the job fits nowhere."""
    rank = np.zeros(len(groups), np.int64) if price is None else np.unique(price[groups], return_inverse=True)[1]
    group, level, server = search_least_loss(state, job, groups, rank)
    if server >= 0:
        placed = on_one_server(state, server, int(job.mgpu[state.group[col.G_TYPE, group]]), job)
        return BestBid(group, level, placed, NOBODY, None, True)
    if group >= 0:
        return BestBid(group, level, on_servers(state, group, level, job, LEAST_LOSS, NOBODY), NOBODY, None, True)
    return None


def search_priced(state: EngineState, job: Request, allowed: Bools, price: Prices) -> tuple[int, int]:
    """Victims of a search like ``search``, with the price between spread and load."""
    if price is None:
        return search(state, job, allowed)
    return _first(state, job, groups_by_price(state, job, allowed, price))


def groups_by_price(state: EngineState, job: Request, allowed: Bools, price: Prices) -> Ints:
    """Groups ordered like ``groups_in_order``, with the price before load."""
    groups = groups_in_order(state, job, allowed)
    return groups if price is None else groups[np.argsort(price[groups], kind="stable")]


def _first(state: EngineState, job: Request, groups: Ints) -> tuple[int, int]:
    """(group, level) of the first group with the closest level beyond what the job prefers, or (−1, NOWHERE)."""
    best, best_level = -1, NOWHERE
    for g in groups.tolist():
        level = int(level_in(state, g, job))
        if level < NOWHERE and (best < 0 or max(level, job.prefer) < max(best_level, job.prefer)):
            best, best_level = g, level
            if level <= job.prefer:
                break
    return best, best_level
