"""Victim search (job-placement engine): the cheapest jobs to preempt for one that fits nowhere, over all clusters.

Sets compare by the most important tier they touch, then GPU-hours lost, then number of victims; bids with equal sets
by level of spread, load of the region, and name. The tier is settled first: the least important threshold at which
the job fits anywhere if everything from there down is stopped. Then the cheapest set at that threshold: server by
server for a job that needs one server (``single_server``), group by group for one that may need several
(``gang_branch_and_bound``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.free_capacity_search import groups_in_order
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.job_placement.engine.preemption.gang_branch_and_bound import cheapest_in_group
from mast_opt.problems.job_placement.engine.preemption.group_bounds import bounds_of
from mast_opt.problems.job_placement.engine.preemption.single_server import (
    FOUND,
    GROUP,
    NODES,
    PROVEN,
    VALUE,
    WORK,
    cheapest_server,
)
from mast_opt.problems.job_placement.engine.state import LEVELS, NEVER, EngineState
from mast_opt.problems.job_placement.units import SERVER, Bools, Ints


@dataclass(frozen=True, eq=False)
class Victims:
    """Victims of one job: the cheapest set of running jobs that was found to make room for it."""

    group: int
    jobs: Ints
    """Places of the running jobs in the state."""
    threshold: int
    """The most important tier that is touched."""
    proven: bool
    """Whether no set is cheaper."""


def search_victims(
    state: EngineState, job: Request, allowed: Bools, limits: SearchLimits, groups: Ints | None = None
) -> Victims | None:
    """The cheapest set for the job; None if stopping everything that may be stopped makes no room.

    Args:
        allowed: [G] groups that may be used.
        groups: those groups in the order that decides between equal bids; None for the order without prices.
    """
    if groups is None:
        groups = groups_in_order(state, job, allowed)
    for threshold in range(state.room.shape[1] - 1, job.tier, -1):
        found = cheapest(state, job, groups, threshold, limits)
        if found is not None:
            return found
    return None


def cheapest(state: EngineState, job: Request, groups: Ints, threshold: int, limits: SearchLimits) -> Victims | None:
    """The cheapest set of jobs whose limit is at least the threshold."""
    if job.tasks == 1 or job.within == SERVER:
        return _on_one_server(state, job, groups, threshold, limits)
    return _in_one_group(state, job, groups, threshold, limits)


def _on_one_server(
    state: EngineState, job: Request, groups: Ints, threshold: int, limits: SearchLimits
) -> Victims | None:
    jobs = np.empty(state.job.shape[1], np.int64)
    answer = cheapest_server(state, job, groups, threshold, limits, jobs)
    if answer[VALUE] == NEVER:
        return None
    return Victims(int(answer[GROUP]), jobs[: answer[FOUND]], threshold, bool(answer[PROVEN]))


def _in_one_group(
    state: EngineState, job: Request, groups: Ints, threshold: int, limits: SearchLimits
) -> Victims | None:
    """The cheapest group: those that might hold the job, the most promising first; of equal bids, the group that
    comes first in ``groups`` wins."""
    bounds = bounds_of(state, groups, job, threshold)
    jobs = np.empty(state.job.shape[1], np.int64)
    best, best_at, proven, kept = NEVER, len(groups), True, jobs[:0]
    for at in np.argsort(bounds, kind="stable").tolist():
        if np.isinf(bounds[at]) or bounds[at] * LEVELS > best:
            break
        if limits.work <= 0 and best < NEVER:
            proven = False
            break
        limit = best if at > best_at else min(best + 1, NEVER)
        answer = cheapest_in_group(state, int(groups[at]), job, threshold, limit, limits, jobs)
        limits = limits._replace(nodes=limits.nodes - int(answer[NODES]), work=limits.work - int(answer[WORK]))
        proven &= bool(answer[PROVEN])
        if answer[VALUE] < limit:
            best, best_at, kept = int(answer[VALUE]), at, jobs[: answer[FOUND]].copy()
    return Victims(int(groups[best_at]), kept, threshold, proven) if best < NEVER else None
