"""Baseline policies of job placement to compare with: ``federated``, ``random``, ``least-loaded`` and ``best-fit``.

All take the jobs in the same queue order as ``exhaustive``, and all may stop running jobs by the same rule once
nothing is free where they look: the cheapest victims there. What differs is where they look.

Group: the servers of one cluster and one GPU type.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, best_bid, on_servers
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.free_capacity_search import NOWHERE, groups_in_order, level_in
from mast_opt.problems.job_placement.engine.server_selection import FIRST, LOOSE, TIGHT
from mast_opt.problems.job_placement.engine.state import T_FREE, T_RECLAIM
from mast_opt.problems.job_placement.exhaustive.batch import Place, admit_in_order
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState, batch_state_of
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, Ints
from mast_opt.problems.search.interface import SearchContext, SearchResult


def federated(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Early binding: the cluster with most free GPUs of an acceptable type among those whose region holds the data,
    then placement inside it alone. Of clusters with equally many, the one where most can be preempted."""

    def bind(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = groups_in_order(batch.state, job, batch.all_groups)
        if not len(groups):
            return None
        free = batch.state.total[T_FREE, job.tier, groups]
        below = min(job.tier + 1, batch.state.total.shape[1] - 1)
        chosen = groups[np.lexsort((-batch.state.total[T_RECLAIM, below, groups], -free))[0]]
        cluster = batch.layout.group_cluster == batch.layout.group_cluster[chosen]
        return best_bid(batch.state, job, cluster, TIGHT)

    return in_queue_order(problem, tools, bind)


def random(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """A group drawn at random among those where the job fits; the first servers there that hold it."""

    def draw(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = tools.rng.permutation(groups_in_order(batch.state, job, batch.all_groups))
        return first_that_fits(batch, job, groups, FIRST)

    return in_queue_order(problem, tools, draw)


def least_loaded(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """The group with the largest share of free GPUs where the job fits, and its emptiest servers: work is spread."""

    def emptiest(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = groups_in_order(batch.state, job, batch.all_groups)
        share = batch.state.total[T_FREE, job.tier, groups] / np.maximum(_supply(batch)[groups], 1)
        return first_that_fits(batch, job, groups[np.argsort(-share, kind="stable")], LOOSE)

    return in_queue_order(problem, tools, emptiest)


def best_fit(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """The group with the fewest free GPUs where the job fits, and its fullest servers: work is packed."""

    def fullest(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = groups_in_order(batch.state, job, batch.all_groups)
        free = batch.state.total[T_FREE, job.tier, groups]
        return first_that_fits(batch, job, groups[np.argsort(free, kind="stable")], TIGHT)

    return in_queue_order(problem, tools, fullest)


def _supply(batch: BatchState) -> Ints:
    """[G] milli-GPUs of each group."""
    supply = np.zeros(len(batch.layout.group_cluster), np.int64)
    np.add.at(supply, batch.layout.group, batch.problem.servers.supply[batch.layout.server, GPU])
    return supply


def first_that_fits(batch: BatchState, job: Request, groups: Iterable[int], style: int) -> BestBid | None:
    """The first group in which the job fits; if there is none, the first in which it does with victims."""
    order = [int(g) for g in groups]
    for g in order:
        level = level_in(batch.state, g, job)
        if level < NOWHERE:
            placed = on_servers(batch.state, g, level, job, style, NOBODY)
            return BestBid(g, int(level), placed, NOBODY, None, True)
    only = np.zeros_like(batch.all_groups)
    for g in order:
        only[g] = True
        offer = best_bid(batch.state, job, only, style)
        only[g] = False
        if offer is not None:
            return offer
    return None


def in_queue_order(problem: JobPlacement, tools: SearchContext, how: Place) -> SearchResult[Plan]:
    """The plan of a policy that is asked for one job after another."""
    batch = batch_state_of(problem)
    admit_in_order(batch, problem.order, tools.watch, how, remember=False)
    message = f"{len(batch.placed)} of {len(problem.jobs)} jobs placed"
    return SearchResult(batch.plan(), None, tools.watch.limit(), message)
