"""Placement of a job of several parts in a batch (exhaustive): all parts in one region, or one cluster, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.engine.best_bid import BestBid
from mast_opt.job_placement.engine.feasibility import Request
from mast_opt.job_placement.exhaustive.batch_state import BatchState
from mast_opt.job_placement.units import REGION, Bools, Ints

Place = Callable[[BatchState, int, Request], BestBid | None]
"""The offer for a job or part of the problem in the groups ``batch.all_groups``; None if it is refused."""


@dataclass(frozen=True, eq=False)
class PartPlacement:
    """Offers for all parts of a job, each of which counts on those before it."""

    offers: list[tuple[int, BestBid]]
    """(part, offer)"""
    key: tuple[int, int, int, int]
    """What they take, less is better: importance of the most important tier of a victim, GPU-hours lost, victims, and
    levels of spread."""

    def carry_out(self, batch: BatchState) -> int:
        """Admit the parts; returns how many have victims that are not proven to be the cheapest."""
        for part, offer in self.offers:
            batch.admit(part, batch.request(part), offer.placed, offer.victims)
        return sum(not offer.proven for _, offer in self.offers)


def place_parts(batch: BatchState, first: int, how: Place) -> PartPlacement | None:
    """The best of all places, regions or clusters as the job's level says, of equals the first; None if none takes all
    parts. The batch is as before.

    In a place, the parts with the most GPUs, then the most cores, go first, each to its best bid there.

    Args:
        first: the first part of the job.
    """
    p = batch.problem
    parts = np.flatnonzero(p.first_part == first)
    tasks = p.jobs.tasks[parts]
    gpus, cores = p.need_mgpu[parts].max(axis=1) * tasks, p.jobs.cpu_mcores[parts] * tasks
    order = parts[np.lexsort((parts, -cores, -gpus))]
    found = (_in_place(batch, order, allowed, how) for allowed in _places(batch, first))
    return min((one for one in found if one is not None), key=lambda one: one.key, default=None)


def _places(batch: BatchState, first: int) -> list[Bools]:
    """[G] groups of each place that all parts of a job may be in together."""
    p, layout = batch.problem, batch.layout
    within = p.multipart_jobs.within[p.parts.whole[p.parts.job == first][0]]
    place = layout.group_region if within == REGION else layout.group_cluster
    return [place == at for at in np.unique(place).tolist()]


def _in_place(batch: BatchState, parts: Ints, allowed: Bools, how: Place) -> PartPlacement | None:
    trial = batch.copy()
    trial.all_groups = allowed
    offers, threshold, levels = [], len(batch.problem.tiers), 0
    for part in parts.tolist():
        job = trial.request(part)
        offer = how(trial, part, job)
        if offer is None:
            return None
        trial.admit(part, job, offer.placed, offer.victims)
        offers.append((part, offer))
        threshold = threshold if offer.threshold is None else min(threshold, offer.threshold)
        levels += max(offer.level, job.prefer)
    stopped = trial.stopped - batch.stopped
    lost = sum(int(batch.problem.running.at_risk_mgpu_hours[v]) for v in stopped)
    return PartPlacement(offers, (-threshold, lost, len(stopped), levels))
