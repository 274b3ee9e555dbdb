"""Batch admission of a job queue (exhaustive): in order, each job is placed for good, or found to fit nowhere."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mast_opt.problems.job_placement.engine.best_bid import BestBid
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.negative_cache import NegativeCache
from mast_opt.problems.job_placement.engine.priced_bid import place_priced
from mast_opt.problems.job_placement.engine.server_selection import TIGHT
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState
from mast_opt.problems.job_placement.exhaustive.part_placement import Place, place_parts
from mast_opt.problems.search.interface import SearchMonitor


def exhaustively(limits: SearchLimits = DEFAULT_LIMITS, style: int = TIGHT) -> Place:
    """The best bid of all groups. ``style``: see ``server_selection``."""

    def place(batch: BatchState, j: int, job: Request) -> BestBid | None:
        return place_priced(batch.state, job, batch.all_groups, style, batch.price(j), limits)

    return place


def admit_in_order(
    batch: BatchState, order: Iterable[int], watch: SearchMonitor, how: Place, remember: bool = True
) -> int:
    """Place the jobs one after another until all are seen or the watch says stop; all parts of a job with its first.

    Args:
        remember: skip what is like a job that fitted nowhere; only right for a ``how`` that tries everything.

    Returns:
        How many were placed with victims that are not proven to be the cheapest.
    """
    unproven, failures = 0, NegativeCache()
    is_part = np.zeros(len(batch.problem.jobs), np.bool_)
    is_part[batch.problem.parts.job] = True
    for j in order:
        if watch.limit() is not None:
            break
        if is_part[j]:
            found = place_parts(batch, int(j), how) if batch.problem.counts_once[j] else None
            if found is not None:
                found.carry_out(batch)
                unproven += found.unproven
            continue
        job = batch.request(int(j))
        if remember and failures.known(job):
            continue
        offer = how(batch, int(j), job)
        if offer is None:
            failures.remember(job)
        else:
            batch.admit(int(j), job, offer.placed, offer.victims)
            unproven += not offer.proven
    return unproven
