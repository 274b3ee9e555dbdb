"""Local search on a job-placement batch (exhaustive): a waiting job goes in where what it evicts is worth less.

The search of the fast path finds the cheapest set to push out, over all clusters; here running jobs and placed ones
alike are candidates, and both cost what they cost in the objective. A placed job that is pushed out waits again and
may push out others in turn; every step lowers what is lost, so this ends.

Where that finds nothing, jobs may be moved: a placed job then costs only what it would take to put it elsewhere,
which is an estimate, so the move is tried on a copy and kept if the objective is lower.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from mast_opt.job_placement.engine.best_bid import NOBODY, on_servers
from mast_opt.job_placement.engine.capacity_ledger import refresh_all
from mast_opt.job_placement.engine.free_capacity_search import NOWHERE, groups_in_order, search
from mast_opt.job_placement.engine.preemption.victim_search import cheapest
from mast_opt.job_placement.engine.server_selection import TIGHT
from mast_opt.job_placement.engine.state import J_COST, J_LIMIT, NEVER, VICTIM
from mast_opt.job_placement.exhaustive.batch_state import BatchState
from mast_opt.job_placement.exhaustive.objective import TermPrices
from mast_opt.job_placement.units import Ints
from mast_opt.search.interface import SearchMonitor

Bid = tuple[int, int, Ints]
"""Group, level (NOWHERE: the closest there is) and who is pushed out."""
NODES = 60
"""Of each search for a set to push out."""
MISSES = 8
"""Attempts in a row to make room by moving others that may fail."""
SCALE = 2.0**40
"""What everything that could be lost costs in all; costs of single jobs are integers."""


class EvictionLocalSearch:
    """Prices of one problem as costs for the search, and the moves that they decide."""

    def __init__(self, prices: TermPrices) -> None:
        self.prices = prices
        everything = float(prices.rejected.sum() + prices.stopped.sum())
        scale = SCALE / everything if everything > 0 else 0.0
        self.rejected: Ints = np.maximum(np.rint(prices.rejected * scale), 1).astype(np.int64) * VICTIM
        """[J]"""
        self.stopped: Ints = np.rint(prices.stopped * scale).astype(np.int64) * VICTIM + 1
        """[V]"""

    def price(self, desk: BatchState) -> None:
        """Let everything on the desk cost what it costs in the objective, and let placed jobs be pushed out by work
        of their own tier or more important work."""
        job = desk.state.job
        for v, at in enumerate(desk.running.tolist()):
            if v not in desk.stopped:
                job[J_COST, at] = self.stopped[v]
        for j, at in desk.placed.items():
            job[J_COST, at], job[J_LIMIT, at] = self.rejected[j], desk.problem.queue_tier[j] + 1
        refresh_all(desk.state)

    def price_moves(self, desk: BatchState, known: dict[int, int]) -> None:
        """Let every placed job, of whatever tier, cost what it would take to put it elsewhere. What is ``known`` of
        that is taken, the rest is found and added; as estimates, costs from before the last moves do."""
        job, tiers = desk.state.job, len(desk.problem.tiers)
        for j in desk.placed:
            if j not in known:
                known[j] = min(self.cost_of(desk, j)[1], int(self.rejected[j]))
        for j, at in desk.placed.items():
            job[J_COST, at], job[J_LIMIT, at] = known[j] + 1, tiers
        refresh_all(desk.state)

    def settle(self, desk: BatchState, waiting: Iterable[int], watch: SearchMonitor, rank: Ints | None = None) -> None:
        """Put in what can be put in, the dearest job first (or the first by ``rank`` [J]), until nothing moves."""
        order = -self.rejected if rank is None else rank
        heap = [(int(order[j]), j) for j in waiting]
        heapq.heapify(heap)
        while heap and watch.limit() is None:
            _, j = heapq.heappop(heap)
            for other in self.insert(desk, j) or ():
                heapq.heappush(heap, (int(order[other]), other))
        desk.restore_unneeded(self.stopped)

    def insert(self, desk: BatchState, j: int) -> list[int] | None:
        """Put a job in; returns the placed jobs that it pushed out, or None if it is not worth what it takes."""
        bid, cost = self.cost_of(desk, j)
        if bid is None or cost >= self.rejected[j]:
            return None
        return self._put(desk, j, *bid)

    def cost_of(self, desk: BatchState, j: int) -> tuple[Bid | None, int]:
        """The cheapest way to put a job in, and what it costs; NEVER if there is none."""
        job = desk.request(j)
        g, level = search(desk.state, job, desk.everywhere)
        if g >= 0:
            return (g, level, NOBODY), 0
        groups = groups_in_order(desk.state, job, desk.everywhere)
        found = cheapest(desk.state, job, groups, job.tier + 1, NODES)
        if found is None:
            return None, NEVER
        return (found.group, NOWHERE, found.jobs), int(desk.state.job[J_COST, found.jobs].sum())

    def _put(self, desk: BatchState, j: int, g: int, level: int, victims: Ints) -> list[int] | None:
        job = desk.request(j)
        placed = on_servers(desk.state, g, level, job, TIGHT, victims)
        if not len(placed.server):
            return None
        return desk.admit(j, job, placed, victims, int(desk.problem.queue_tier[j]) + 1, int(self.rejected[j]))

    def move(self, desk: BatchState, watch: SearchMonitor) -> BatchState:
        """Try to make room for each job that waits, the dearest first, by moving others; returns the best desk.

        Ends early once the asked gap is reached, and after so many attempts in a row that gained nothing.
        """
        value = desk.value(self.prices)
        known, misses = dict[int, int](), 0
        self.price_moves(desk, known)
        waiting = desk.waiting()
        for j in waiting[np.argsort(-self.rejected[waiting], kind="stable")].tolist():
            if watch.limit() is not None or misses == MISSES or watch.near_enough(value):
                break
            bid, cost = self.cost_of(desk, j)
            if bid is None or cost >= self.rejected[j]:
                continue
            misses += 1
            trial = desk.copy()
            out = self._put(trial, j, *bid)
            if out is None:
                continue
            self.price(trial)
            self.settle(trial, out, watch)
            worth = trial.value(self.prices)
            if worth < value - 1e-12:
                desk, value, misses = trial, worth, 0
                self.price_moves(desk, known)
        self.price(desk)
        return desk
