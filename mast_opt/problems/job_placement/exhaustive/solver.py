"""Solver ``exhaustive`` of job placement: greedy in queue order over all clusters, then ejection chains.

Nothing of a batch has started yet, so moving costs nothing. Jobs are pushed out by the search for victims, in which
placed jobs are candidates too, and find other places in turn (an ejection chain). A job ahead in the queue never
loses its place to one behind it; a job behind may, and then waits for its own second chance. Running jobs are stopped
for more important ones only, as ever. All of this is done only if the objective of the batch falls. A chain that ends
otherwise is followed by one that leaves those alone who found no other place.
"""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, groups_by_price, on_servers, search_priced
from mast_opt.problems.job_placement.engine.capacity_ledger import set_price
from mast_opt.problems.job_placement.engine.feasibility import NOWHERE, Request
from mast_opt.problems.job_placement.engine.negative_cache import NegativeCache
from mast_opt.problems.job_placement.engine.preemption.victim_search import Victims, cheapest
from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS, TIGHT
from mast_opt.problems.job_placement.engine.state import VICTIM
from mast_opt.problems.job_placement.exhaustive.batch import admit_in_order, exhaustively
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState, batch_state_of, mix_of
from mast_opt.problems.job_placement.exhaustive.objective import term_prices_of
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveParams
from mast_opt.problems.job_placement.movable_jobs import without_moves
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import WHOLE, Ints
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult

STUCK = 1 << 40
"""Cost of pushing out a job that must keep its place."""


def ejection_chains(batch: BatchState, order: Ints, watch: SearchMonitor, params: ExhaustiveParams) -> BatchState:
    """The batch after a second chance for each job without a place, in the order [J] of the queue."""
    place_in_queue = np.empty(len(order), np.int64)
    place_in_queue[order] = np.arange(len(order))
    return _EjectionChains(batch, place_in_queue, params).run(watch)


class _EjectionChains:
    """Second chances for one batch; ``batch`` is the best so far."""

    def __init__(self, batch: BatchState, place_in_queue: Ints, params: ExhaustiveParams) -> None:
        self.batch, self.params = batch, params
        self.limits = params.chain_victims.limits()
        self.place_in_queue = place_in_queue
        self.is_part = np.isin(np.arange(len(place_in_queue)), batch.problem.parts.job)
        """[J] parts of jobs, which stay where they are."""
        self.tier_count = len(batch.problem.tiers)
        self.prices = term_prices_of(batch.problem, batch.layout)
        self.value = batch.value(self.prices)
        self.spare = params.chain_spare
        """Further chains that may fail until a job is admitted."""
        self.admissions = 0
        self.failures = NegativeCache(lambda job: self.admissions)
        """Requests that no chain let in since the last admission."""

    def run(self, watch: SearchMonitor) -> BatchState:
        """Give the waiting jobs of the batch second chances, in queue order."""
        self._make_movable()
        heap = [(int(self.place_in_queue[j]), j) for j in self.batch.waiting().tolist() if not self.is_part[j]]
        heapq.heapify(heap)
        while heap and watch.limit() is None:
            _, j = heapq.heappop(heap)
            for other in self._admitted(j, self.batch.request(j)) or ():
                heapq.heappush(heap, (int(self.place_in_queue[other]), other))
        self.batch.restore_unneeded(self.batch.problem.running.at_risk_mgpu_hours * VICTIM + 1)
        return self.batch

    def _admitted(self, j: int, job: Request) -> list[int] | None:
        """Admit a job; returns those behind it that lost their places, or None if there is no way."""
        if self.failures.known(job):
            return None
        outbid = list[int]()
        for _ in self._tries(job):
            found = self._evictions(self.batch, j)
            if found is None:
                break
            trial = self.batch.copy()
            ended, stranded = self._chain(trial, j, found)
            value = trial.value(self.prices) if ended else np.inf
            if value < self.value:
                self.batch, self.value, self.spare = trial, value, self.params.chain_spare
                self.admissions += 1
                self._make_movable()
                return stranded
            if not stranded:
                break
            places = [self.batch.placed[k] for k in stranded]
            if self.place_in_queue[stranded[0]] > self.place_in_queue[j]:
                outbid += places
            self._set_price(places, STUCK)
        if outbid:
            self._set_price(outbid)
        else:
            self.failures.remember(job)
        return None

    def _tries(self, job: Request) -> Iterator[None]:
        """Yield once for each chain that may be tried for a job, first from its own number of tries, then from the
        spare ones."""
        for _ in range(self.params.chain_tries + job.tasks * int(job.mgpu.max()) // WHOLE):
            yield
        while self.spare > 0:
            self.spare -= 1
            yield

    def _chain(self, batch: BatchState, first: int, found: Victims) -> tuple[bool, list[int]]:
        """Carry out a chain; returns whether it succeeded, and the jobs that found no place.

        These may be jobs behind the first one that are worth more than it, which end the chain early, or a job ahead
        of it, which must not lose its place. There are none if the first job itself does not fit.
        """
        behind, lost = self.place_in_queue > self.place_in_queue[first], list[int]()
        pushed = self._apply(batch, first, batch.request(first), found.group, NOWHERE, found.jobs)
        if pushed is None:
            return False, []
        out = [(int(self.place_in_queue[k]), k, 1) for k in pushed]
        heapq.heapify(out)
        while out:
            _, k, depth = heapq.heappop(out)
            job = batch.request(k)
            group, level = search_priced(batch.state, job, batch.all_groups, batch.price(k))
            pushed = self._apply(batch, k, job, group, level, NOBODY) if group >= 0 else None
            if pushed is None and behind[k]:
                lost.append(k)
                if self.prices.rejected[lost].sum() >= self.prices.rejected[first]:
                    return False, lost
                continue
            if pushed is None and depth < self.params.chain_depth:
                next_ones = self._evictions(batch, k)
                if next_ones is not None:
                    pushed = self._apply(batch, k, job, next_ones.group, NOWHERE, next_ones.jobs)
            if pushed is None:
                return False, [k]
            for other in pushed:
                heapq.heappush(out, (int(self.place_in_queue[other]), other, depth + 1))
        return True, lost

    def _apply(
        self, batch: BatchState, j: int, job: Request, group: int, level: int, victims: Ints
    ) -> list[int] | None:
        """Place a job for the rest of this chain; returns the jobs that it pushed out, or None if it does not fit."""
        placed = on_servers(batch.state, group, level, job, TIGHT, victims)
        return batch.admit(j, job, placed, victims) if len(placed.server) else None

    def _evictions(self, batch: BatchState, j: int) -> Victims | None:
        """Jobs to push out for a job, and less important running jobs to stop; None if there is no such choice."""
        job = batch.request(j)
        groups = groups_by_price(batch.state, job, batch.all_groups, batch.price(j))
        for threshold in range(self.tier_count, job.tier, -1):
            found = cheapest(batch.state, job, groups, threshold, self.limits)
            if found is not None and not (batch.state.job[col.J_COST, found.jobs] == STUCK).any():
                return found
        return None

    def _make_movable(self) -> None:
        """Let all placed jobs of one part be pushed out, at a cost that grows with their size."""
        self._set_price([at for at, j in self.batch.pending.items() if not self.is_part[j]])

    def _set_price(self, places: Sequence[int], cost: int | None = None) -> None:
        """Let placed jobs be pushed out at a cost, which grows with their size unless given."""
        at, state = np.array(places, np.int64), self.batch.state
        costs = 1 + state.job[col.J_MGPU, at] // WHOLE if cost is None else np.full(len(at), cost)
        set_price(state, at, self.tier_count, costs)


def exhaustive(
    problem: JobPlacement, tools: SearchContext, start: Plan | None, params: ExhaustiveParams
) -> SearchResult[Plan]:
    """Take the jobs in the order of the queue and give each its best bid.

    Bids compare lexicographically: the most important tier of a victim, GPU-hours lost, victims, level of spread,
    price, loss of value of the free capacity, load of the region, names of region, cluster and type. A job that was
    refused is then let in where jobs placed before can make room by moving (an ejection chain). A job of several
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
