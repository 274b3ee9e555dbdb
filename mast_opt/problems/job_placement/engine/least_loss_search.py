"""Search for free capacity by loss of value (job-placement engine): of the closest places, the one that spoils least.

Bids compare by level of spread beyond what the job prefers, price, loss of value, and the order of the groups (load of
the region, names). A gang on several servers is tried in every group in which it fits at the best level.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine.feasibility import Request, choose_devices
from mast_opt.problems.job_placement.engine.fill_value import least_loss, slot_of, view_of
from mast_opt.problems.job_placement.engine.free_capacity_search import NOWHERE, closest_level, excess, level_in
from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS, Placement, take_servers
from mast_opt.problems.job_placement.engine.state import G_START, G_TYPE, T_FREE, EngineState
from mast_opt.problems.job_placement.units import RACK, SERVER, Ints

NO_LOSS = 1 << 62
"""More than the loss of any bid."""


@compiled
def search_least_loss(state: EngineState, job: Request, groups: Ints, price: Ints) -> tuple[int, int, int]:
    """(group, level, server) of the best bid without victims, (−1, NOWHERE, −1) if there is none. The server is −1
    where the job needs several.

    Args:
        groups: that the job may use, by price, load of the region, and names.
        price: [·] rank of the price of each of them, ascending.
    """
    most = 0
    for g in groups:
        most = max(most, state.group[G_START, g + 1] - state.group[G_START, g])
    fit, takes = np.empty(most, np.int64), np.empty(most, np.int64)
    work = np.empty((2, state.row_device.shape[1] + state.sample.shape[1]), np.int64)
    return _search(state, job, groups, price, fit, takes, work)


@kernel
def _search(
    state: EngineState, job: Request, groups: Ints, price: Ints, fit: Ints, takes: Ints, work: Ints
) -> tuple[int, int, int]:
    tier = view_of(state, job)
    slot, least = slot_of(state, job, tier), excess(closest_level(state, job), job)
    best, best_level, best_server, best_loss, best_price = -1, NOWHERE, -1, NO_LOSS, 0
    for at in range(len(groups)):
        g = groups[at]
        over = excess(best_level, job)
        if best >= 0 and over == least and price[at] > best_price:
            break
        mgpu = job.mgpu[state.group[G_TYPE, g]]
        if mgpu < 0 or state.total[T_FREE, job.tier, g] < job.tasks * mgpu:
            continue
        server, loss = least_loss(state, g, job, tier, slot, work)
        level = SERVER if server >= 0 else NOWHERE
        if server < 0 and job.tasks > 1 and job.within != SERVER and excess(RACK, job) <= over:
            level = level_in(state, g, job)
        if level == NOWHERE:
            continue
        worse = excess(level, job) > over or (excess(level, job) == over and price[at] > best_price)
        if best >= 0 and worse:
            continue
        if level != SERVER:
            size = state.group[G_START, g + 1] - state.group[G_START, g]
            loss = take_servers(state, g, level, job, LEAST_LOSS, fit[:size], takes[:size], work)
        if best < 0 or excess(level, job) < over or loss < best_loss:
            best, best_level, best_server, best_loss, best_price = g, level, server, loss, price[at]
    return best, best_level, best_server


@compiled
def on_one_server(state: EngineState, server: int, mgpu: int, job: Request) -> Placement:
    """All tasks of a job on a server on which they fit."""
    device = np.zeros((1, state.row_device.shape[1]), np.int32)
    choose_devices(state, server, mgpu, job.tasks, job.tier, device[0])
    return Placement(np.array([server]), np.array([job.tasks]), device, np.array([SERVER]))
