"""Local search on a job-placement batch (exhaustive): a waiting job goes in where what it evicts is worth less.

The search of the fast path finds the cheapest set of victims over all clusters; here running jobs and placed ones
alike are candidates, and both cost what they cost in the objective. A placed job that is evicted waits again and
may evict others in turn; every step lowers what is lost, so this ends.

Where that finds nothing, jobs may be relocated: a placed job then costs only what it would take to put it elsewhere,
which is an estimate, so the relocation is tried on a copy and kept if the objective is lower.

All parts of a job are admitted at once, and evicted with the first of them; each costs what the whole job costs, so
that sets with two of them seem more expensive than they are. They are not relocated.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, on_servers
from mast_opt.problems.job_placement.engine.capacity_ledger import refresh_all
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.free_capacity_search import NOWHERE, groups_in_order, search
from mast_opt.problems.job_placement.engine.preemption.victim_search import cheapest
from mast_opt.problems.job_placement.engine.server_selection import TIGHT
from mast_opt.problems.job_placement.engine.state import J_COST, J_LIMIT, VICTIM
from mast_opt.problems.job_placement.exhaustive.batch import place_parts
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState
from mast_opt.problems.job_placement.exhaustive.objective import TermPrices
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Bools, Ints
from mast_opt.problems.search.interface import SearchMonitor

SCALE = 2.0**40
"""Cost of everything that could be lost; costs of single jobs are integers."""


@dataclass(frozen=True, eq=False)
class Insertion:
    """A way to admit a waiting job: where it runs, which jobs are evicted for it, and what these cost."""

    job: int
    """Pending job of the problem."""
    group: int
    level: int
    """NOWHERE: the closest that there is once the victims are gone."""
    victims: Ints
    """Places of the evicted jobs in the state."""
    cost: int
    """Cost of the victims, in the unit of ``EvictionLocalSearch.rejected``."""


class EvictionLocalSearch:
    """Insertion of waiting jobs by eviction, with the terms of one problem as integer costs."""

    def __init__(self, problem: JobPlacement, prices: TermPrices, params: ExhaustiveRepairParams) -> None:
        self.prices, self.params = prices, params
        self.limits = params.local_victims.limits()
        everything = float(prices.rejected.sum() + prices.stopped.sum())
        scale = SCALE / everything if everything > 0 else 0.0
        rejected = np.maximum(np.rint(prices.rejected * scale), 1).astype(np.int64) * VICTIM
        self.rejected: Ints = rejected[problem.first_part]
        """[J] cost of not admitting a job, for each of its parts that of the whole one."""
        self.is_part: Bools = np.isin(np.arange(len(rejected)), problem.parts.job)
        """[J] parts of jobs, which are admitted and evicted together."""
        self.stopped: Ints = np.rint(prices.stopped * scale).astype(np.int64) * VICTIM + 1
        """[V] cost of stopping a running job."""

    def set_costs(self, batch: BatchState) -> None:
        """Let everything on the batch cost what it costs in the objective, and let placed jobs be evicted for work
        of their own tier or more important work."""
        job = batch.state.job
        for v, at in enumerate(batch.running.tolist()):
            if v not in batch.stopped:
                job[J_COST, at] = self.stopped[v]
        for j, at in batch.placed.items():
            job[J_COST, at], job[J_LIMIT, at] = self.rejected[j], batch.problem.queue_tier[j] + 1
        refresh_all(batch.state)

    def _set_relocation_costs(self, batch: BatchState, known: dict[int, int], watch: SearchMonitor) -> None:
        """Let every placed job, of whatever tier, cost what it would take to put it elsewhere. What is ``known`` of
        that is taken, the rest is found and added while there is time; as estimates, costs from before the last
        relocations do."""
        job, tiers = batch.state.job, len(batch.problem.tiers)
        for j in batch.placed:
            if watch.limit() is not None:
                return
            if j not in known:
                elsewhere = None if self.is_part[j] else self.evaluate(batch, j)
                rejected = int(self.rejected[j])
                known[j] = rejected if elsewhere is None else min(elsewhere.cost, rejected)
        for j, at in batch.placed.items():
            job[J_COST, at], job[J_LIMIT, at] = known[j] + 1, tiers
        refresh_all(batch.state)

    def run(self, batch: BatchState, waiting: Iterable[int], watch: SearchMonitor, rank: Ints | None = None) -> None:
        """Admit what is worth it, costliest to reject first (or by ``rank`` [J]), until nothing changes."""
        order = -self.rejected if rank is None else rank
        heap = [(int(order[j]), j) for j in waiting]
        heapq.heapify(heap)
        while heap and watch.limit() is None:
            _, j = heapq.heappop(heap)
            for other in self._admitted_parts(batch, j) if self.is_part[j] else self._admitted(batch, j):
                heapq.heappush(heap, (int(order[other]), other))
        batch.restore_unneeded(self.stopped)

    def _admitted(self, batch: BatchState, j: int) -> list[int]:
        """Admit a job where that is worth it; returns the pending jobs that it evicts."""
        found = self.evaluate(batch, j)
        if found is None or found.cost >= self.rejected[j]:
            return []
        return self.apply(batch, found) or []

    def _admitted_parts(self, batch: BatchState, first: int) -> list[int]:
        """Admit all parts of a job, like ``_admitted`` for one."""
        found = place_parts(batch, first, self._offer)
        if found is None or found.bid.cost >= self.rejected[first]:
            return []
        return found.carry_out(batch, int(batch.problem.queue_tier[first]) + 1, int(self.rejected[first]))

    def _offer(self, batch: BatchState, j: int, job: Request) -> BestBid | None:
        """The cheapest way to admit a part, as a bid."""
        way = self.evaluate(batch, j)
        if way is None:
            return None
        placed = on_servers(batch.state, way.group, way.level, job, TIGHT, way.victims)
        if not len(placed.server):
            return None
        return BestBid(way.group, int(placed.level[0]), placed, way.victims, None, True)

    def evaluate(self, batch: BatchState, j: int) -> Insertion | None:
        """The cheapest way to admit a job, or None if there is none; the batch stays as it is."""
        job = batch.request(j)
        g, level = search(batch.state, job, batch.all_groups)
        if g >= 0:
            return Insertion(j, g, level, NOBODY, 0)
        groups = groups_in_order(batch.state, job, batch.all_groups)
        found = cheapest(batch.state, job, groups, job.tier + 1, self.limits)
        if found is None:
            return None
        return Insertion(j, found.group, NOWHERE, found.jobs, int(batch.state.job[J_COST, found.jobs].sum()))

    def apply(self, batch: BatchState, way: Insertion) -> list[int] | None:
        """Admit the job and stop the victims; returns the pending jobs among these, which wait again. None where it
        does not fit, as what a less important victim holds serves only work of its own tier and below."""
        j, job = way.job, batch.request(way.job)
        placed = on_servers(batch.state, way.group, way.level, job, TIGHT, way.victims)
        if not len(placed.server):
            return None
        return batch.admit(j, job, placed, way.victims, int(batch.problem.queue_tier[j]) + 1, int(self.rejected[j]))

    def relocate(self, batch: BatchState, watch: SearchMonitor) -> BatchState:
        """Try to make room for each job that waits, the costliest to reject first, by relocating others; returns the
        best batch.

        Ends early once the requested gap is reached, and after so many attempts in a row that gained nothing.
        """
        if not self.params.relocation_failures:
            return batch
        waiting = batch.waiting()
        waiting = waiting[~self.is_part[waiting]]
        if not len(waiting):
            return batch
        value = batch.value(self.prices)
        known, failures = dict[int, int](), 0
        self._set_relocation_costs(batch, known, watch)
        for j in waiting[np.argsort(-self.rejected[waiting], kind="stable")].tolist():
            if watch.limit() is not None or failures == self.params.relocation_failures or watch.near_enough(value):
                break
            way = self.evaluate(batch, j)
            if way is None or way.cost >= self.rejected[j]:
                continue
            failures += 1
            trial = batch.copy()
            evicted = self.apply(trial, way)
            if evicted is None:
                continue
            self.set_costs(trial)
            self.run(trial, evicted, watch)
            changed = trial.value(self.prices)
            if changed < value - 1e-12:
                batch, value, failures = trial, changed, 0
                self._set_relocation_costs(batch, known, watch)
        self.set_costs(batch)
        return batch
