"""Best bid for a job with cluster-dependent cost (job-placement engine): price decides between equal spreads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, bid_of, on_servers
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.free_capacity_search import NOWHERE, groups_in_order, level_in, search
from mast_opt.problems.job_placement.engine.least_loss_search import on_one_server, search_least_loss
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.preemption.victim_search import search_victims
from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS, TIGHT
from mast_opt.problems.job_placement.engine.state import G_TYPE, EngineState
from mast_opt.problems.job_placement.units import Bools, Ints

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
    if groups is not None and style == LEAST_LOSS:
        return _least_loss(state, job, groups, price)
    group, level = search(state, job, allowed) if groups is None else _first(state, job, groups)
    if group < 0:
        return None
    return BestBid(group, level, on_servers(state, group, level, job, style, NOBODY), NOBODY, None, True)


def _least_loss(state: EngineState, job: Request, groups: Ints, price: Prices) -> BestBid | None:
    rank = np.zeros(len(groups), np.int64) if price is None else np.unique(price[groups], return_inverse=True)[1]
    group, level, server = search_least_loss(state, job, groups, rank)
    if server >= 0:
        placed = on_one_server(state, server, int(job.mgpu[state.group[G_TYPE, group]]), job)
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
