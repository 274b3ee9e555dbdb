"""The best bid for a job that costs more in one cluster than in another: the price decides between equal spreads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.job_placement.heuristics.fit import Request
from mast_opt.job_placement.heuristics.place import NOBODY, NODE_BUDGET, Offer, offer_of, on_servers, place
from mast_opt.job_placement.heuristics.search import NOWHERE, groups_in_order, level_in
from mast_opt.job_placement.heuristics.state import State
from mast_opt.job_placement.heuristics.victims import search_victims
from mast_opt.job_placement.units import Bools, Ints


def place_priced(
    state: State,
    job: Request,
    allowed: Bools,
    style: int,
    price: NDArray[np.float64] | None,
    budget: int = NODE_BUDGET,
) -> Offer | None:
    """As ``place``, with the price [G] of each group between spread and load; None where all prices are equal."""
    if price is None:
        return place(state, job, allowed, style, budget)
    groups = groups_in_order(state, job, allowed)
    groups = groups[np.argsort(price[groups], kind="stable")]
    group, level = _first(state, job, groups)
    if group >= 0:
        return Offer(group, level, on_servers(state, group, level, job, style, NOBODY), NOBODY, None, True)
    found = search_victims(state, job, allowed, budget, groups) if budget else None
    return None if found is None else offer_of(state, job, style, found)


def _first(state: State, job: Request, groups: Ints) -> tuple[int, int]:
    """(group, level) of the first group with the closest level beyond what the job prefers, or (−1, NOWHERE)."""
    best, best_level = -1, NOWHERE
    for g in groups.tolist():
        level = int(level_in(state, g, job))
        if level < NOWHERE and (best < 0 or max(level, job.prefer) < max(best_level, job.prefer)):
            best, best_level = g, level
            if level <= job.prefer:
                break
    return best, best_level
