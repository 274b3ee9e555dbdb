"""Solver ``exhaustive`` of job placement: greedy in queue order over all clusters, then ejection chains."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS, TIGHT
from mast_opt.problems.job_placement.exhaustive.batch import admit_in_order, exhaustively
from mast_opt.problems.job_placement.exhaustive.batch_state import batch_state_of, mix_of
from mast_opt.problems.job_placement.exhaustive.ejection_chains import ejection_chains
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveParams
from mast_opt.problems.job_placement.movable_jobs import without_moves
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.search.interface import SearchContext, SearchResult


def exhaustive(
    problem: JobPlacement, tools: SearchContext, start: Plan | None, params: ExhaustiveParams
) -> SearchResult[Plan]:
    """Take the jobs in the order of the queue and give each its best bid.

    Bids compare lexicographically: the most important tier of a victim, GPU-hours lost, victims, level of spread,
    price, loss of value of the free capacity, load of the region, names of region, cluster and type. A job that was
    refused is then let in where jobs placed before can make room by moving (``ejection_chains``). A job of several
    parts goes to the region or cluster where all its parts together have the best bids; it gets no such second chance,
    and does not move. Nothing is random, and a start is of no use to it. Running jobs are not moved, even if they may
    be.
    """
    problem = without_moves(problem)
    by_loss = params.placement == "fragmentation"
    batch = batch_state_of(problem, mix_of(problem, params.fill.sampling()) if by_loss else None)
    place = exhaustively(params.victims.limits(), LEAST_LOSS if by_loss else TIGHT)
    unproven = admit_in_order(batch, problem.order, tools.watch, place)
    batch = ejection_chains(batch, problem.order, tools.watch, params)
    placed = problem.counts_once[np.fromiter(batch.placed, np.int64, len(batch.placed))].sum()
    message = f"{placed} of {problem.counts_once.sum()} jobs placed, {unproven} bids not proven cheapest"
    return SearchResult(batch.plan(), None, tools.watch.limit(), message)
