"""Solver ``exhaustive+repair`` of job placement: the fast path's batch, improved by ruin and recreate until time is up.

1. The batch of ``exhaustive``; where jobs are single tasks, a tabu search from prices (``penalised_assignment``).
2. The linear relaxation of the whole batch (``formulation.aggregated``), by an exact solver: nearly all of its choices
   are whole. They say which job should go where and who should be stopped, and the bound says how much there is
   left to win. The fast path's own search then finds the servers, and the local search takes it from there.
3. The linear relaxation per server, where it is small enough: its prices of capacity prove a bound that the verifier
   can check (``capacity_prices``).
4. The whole program, where it is small enough, by an exact solver for a share of the time, from the best plan: the
   bound of its tree may be above that of the prices, and the plan may be better.
5. Rounds, over the clusters: the jobs of two clusters are taken out, victims that are no longer needed go
   on running, and the local search puts back what is worth it, in a somewhat random order. Every few rounds, two
   clusters and the jobs that wait are instead solved exactly (``sub_mip``); every other round is a tabu search where
   jobs are single tasks (``penalised_assignment``); and now and then, at the latest after a
   pass without gain, all jobs that are not where the relaxation would send them. Once every cluster has been taken out
   several times and solved exactly without any gain, one cluster more is solved at a time; where all of them as one
   bring nothing either, the search ends.
A round is kept if the objective is no worse.

In the local search a waiting job goes in where what it evicts is worth less. The search of the fast path finds the
cheapest set of victims over all clusters; running jobs and placed ones alike are candidates, and both cost what they
cost in the objective. A placed job that is evicted waits again and may evict others in turn; every step lowers what is
lost, so this ends. Where that finds nothing, jobs may be relocated: a placed job then costs only what it would take to
put it elsewhere, which is an estimate, so the relocation is tried on a copy and kept if the objective is lower. All
parts of a job are admitted at once, and evicted with the first of them; each costs what the whole job costs, so that
sets with two of them seem more expensive than they are. They are not relocated.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Limit
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, on_servers
from mast_opt.problems.job_placement.engine.capacity_ledger import refresh_all
from mast_opt.problems.job_placement.engine.feasibility import NOWHERE, Request, groups_in_order, search
from mast_opt.problems.job_placement.engine.preemption.victim_search import cheapest
from mast_opt.problems.job_placement.engine.server_selection import TIGHT
from mast_opt.problems.job_placement.engine.state import VICTIM
from mast_opt.problems.job_placement.exhaustive.batch import admit_in_order, admit_parts, exhaustively, place_parts
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState, batch_state_of
from mast_opt.problems.job_placement.exhaustive.capacity_prices import capacity_prices
from mast_opt.problems.job_placement.exhaustive.objective import TermPrices, term_prices_of
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.job_placement.exhaustive.penalised_assignment import PenalisedAssignment
from mast_opt.problems.job_placement.exhaustive.sub_mip import FixAndOptimise
from mast_opt.problems.job_placement.formulation.aggregated import relaxation
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Bools, Ints
from mast_opt.problems.job_placement.verification.certificate import CapacityBound, CapacityPrices
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult

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
                job[col.J_COST, at] = self.stopped[v]
        for j, at in batch.placed.items():
            job[col.J_COST, at], job[col.J_LIMIT, at] = self.rejected[j], batch.problem.queue_tier[j] + 1
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
            job[col.J_COST, at], job[col.J_LIMIT, at] = known[j] + 1, tiers
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
        if found is None or found.cost >= self.rejected[first]:
            return []
        return admit_parts(batch, first, found, int(batch.problem.queue_tier[first]) + 1, int(self.rejected[first]))

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
        return Insertion(j, found.group, NOWHERE, found.jobs, int(batch.state.job[col.J_COST, found.jobs].sum()))

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


def exhaustive_repair(
    problem: JobPlacement, tools: SearchContext, start: Plan | None, params: ExhaustiveRepairParams
) -> SearchResult[Plan]:
    """Improve the batch of ``exhaustive``, or the start if that is better, until the watch says stop."""
    return _RuinAndRecreate(problem.standing, tools, params).run(start)


class _RuinAndRecreate:
    """One run of exhaustive+repair; ``best`` is the incumbent and ``value`` its objective."""

    def __init__(self, problem: JobPlacement, tools: SearchContext, params: ExhaustiveRepairParams) -> None:
        self.p, self.params = problem, params
        self.tools = tools
        self.watch = tools.watch
        self.initial = batch_state_of(problem)
        self.prices = term_prices_of(problem, self.initial.layout)
        self.local_search = EvictionLocalSearch(problem, self.prices, params)
        self.sub_mips = FixAndOptimise(problem, tools, params)
        self.assignment = (
            PenalisedAssignment(problem, self.prices, self.initial.layout, tools.rng, params.assignment, self._plan_of)
            if self.sub_mips.strategy.assignment
            else None
        )
        self.best = self.initial
        self.value = np.inf
        self.bound: float | None = None
        self.certificate: CapacityPrices | None = None
        """Certificate of ``bound``; None where an exact solver found it."""
        self.relaxed_cluster = np.full(len(problem.jobs), -1)
        """[J] the cluster to which the relaxation would send the whole job; −1 if it splits it."""

    def run(self, start: Plan | None) -> SearchResult[Plan]:
        """Improve the batch until the search ends."""
        self.watch.chose(self.sub_mips.strategy)
        batch = self.initial.copy()
        admit_in_order(batch, self.p.order, self.watch, exhaustively(self.params.victims.limits()))
        self._offer(batch)
        if start is not None:
            self._offer_plan(start)
        if self.assignment is not None:
            self._offer_plan(self.assignment.improved(self.best.plan(), self.watch))
            if self.assignment.prices is not None:
                self._raise_bound(CapacityBound(self.p).value(self.assignment.prices), self.assignment.prices)
        if self.watch.limit() is None:
            self._relax()
        if not self.watch.done:
            self._price()
        if not self.watch.done:
            self._solve_whole()
        ended = self._rounds()
        proven = self.watch.gap is not None and self.watch.gap <= self.watch.stop.gap
        limit = None if proven else self.watch.limit() or Limit.ITERATIONS
        message = f"{self.watch.round} rounds of ruin and recreate{ended}"
        return SearchResult(self.best.plan(), self.bound, limit, message, self.certificate)

    def _offer(self, batch: BatchState) -> None:
        """Keep the batch if it is no worse than the best."""
        value = batch.value(self.prices)
        if value <= self.value + 1e-12:
            self.best, self.value = batch, value
            self.watch.report(objective=value, plan=batch.plan)

    def _offer_plan(self, plan: Plan | None) -> None:
        """Keep a plan of the jobs that breaks no rule, if it is no worse than the best."""
        if plan is not None and verify(self.p, plan).ok:
            batch = self.initial.copy()
            batch.replay(plan)
            self.local_search.set_costs(batch)
            self._offer(batch)

    def _relax(self) -> None:
        """Begin ruin and recreate of jobs from the linear relaxation."""
        program = relaxation(self.p)
        linear = replace(program.mip, integral=np.zeros_like(program.mip.integral))
        result = self.sub_mips.sub_mip(linear, self.sub_mips.linear_limits())
        self._raise_bound(result.bound)
        if result.x is not None:
            where, stopped = program.choices(result.x)
            whole = np.flatnonzero(result.x[program.assign] > self.params.whole_from)
            self.relaxed_cluster[program.option_job[whole]] = program.option_cluster[whole]
            self._offer(self._rounded(where, stopped))

    def _plan_of(self, linear: Mip) -> FloatArray | None:
        """Columns of the linear relaxation of a batch, solved by the sub-MIP's backend; None if it does not end in
        time.
        """
        return self.sub_mips.sub_mip(linear, self.sub_mips.linear_limits()).x

    def _price(self) -> None:
        """The bound on jobs' placement of the prices of capacity, where they are computed."""
        if self.sub_mips.strategy.prices:
            bound = CapacityBound(self.p)
            prices = capacity_prices(self.p, bound, self.sub_mips.sub_mip, self.sub_mips.linear_limits())
            if prices is not None:
                self._raise_bound(bound.value(prices), prices)

    def _raise_bound(self, bound: float | None, certificate: CapacityPrices | None = None) -> None:
        """Keep a proven bound on jobs' placement if it is the highest, or no lower than that and certified."""
        if bound is None:
            return
        bound, known = max(0.0, min(bound, self.value)), self.bound or 0.0
        if self.bound is None or bound > known or (certificate is not None and bound >= known):
            self.bound, self.certificate = bound, certificate
            self.watch.report(bound=self.bound)

    def _solve_whole(self) -> None:
        """Solve the whole job-placement program from the best plan, where it is small enough."""
        plan, bound = self.sub_mips.whole(self.best.plan())
        self._offer_plan(plan)
        self._raise_bound(bound)

    def _rounded(self, where: dict[int, tuple[int, int]], stopped: Ints) -> BatchState:
        """Carry out what the relaxation chose, the widest tasks and largest gangs first, then place the rest and jobs
        of several parts."""
        p, batch = self.p, self.initial.copy()
        for v in stopped.tolist():
            batch.stop(v)
        keys = zip(batch.layout.group_cluster.tolist(), batch.layout.group_type.tolist())
        group_of = {pair: g for g, pair in enumerate(keys)}
        jobs = np.array(sorted(where), np.int64)
        jobs = jobs[~self.local_search.is_part[jobs]]
        width = np.array([p.need_mgpu[j, where[j][1]] for j in jobs.tolist()], np.int64)
        for j in jobs[np.lexsort((-p.jobs.tasks[jobs], -width))].tolist():
            only = np.zeros_like(batch.all_groups)
            only[group_of[where[j]]] = True
            job = batch.request(j)
            g, level = search(batch.state, job, only)
            if g >= 0:
                batch.admit(j, job, on_servers(batch.state, g, level, job, TIGHT, NOBODY), NOBODY)
        return self._improved(batch)

    def _improved(self, batch: BatchState) -> BatchState:
        """The batch after a local search for all that waits."""
        self.local_search.set_costs(batch)
        self.local_search.run(batch, batch.waiting().tolist(), self.watch)
        return self.local_search.relocate(batch, self.watch)

    def _rounds(self) -> str:
        """Ruin and recreate placements of jobs until a limit, the requested gap, or a plan that no neighbourhood
        improves; returns why it ended.
        """
        watch, count = self.watch, len(self.p.clusters)
        without_gain, width, every = 0, min(2, count), self.params.sub_mip_interval
        compared, due = np.inf, self.params.relaxation_passes * count
        """Value of the batch that was last compared with the relaxation, and the latest round for the next."""
        while not watch.done:
            if without_gain >= every * count:
                if width == count:
                    return ", none of the last helped: every cluster was tried"
                without_gain, width, every = 0, width + 1, self.params.sub_mip_interval_wide
            before = self.value
            if before < compared and (without_gain >= count or watch.round >= due):
                compared, due = before, watch.round + self.params.relaxation_passes * count
                self._offer_plan(self.sub_mips.of_jobs(self.best.plan(), self._differs_from_relaxation()))
            elif (without_gain + 1) % every == 0:
                joined = self.sub_mips.joined(without_gain // every, width)
                self._offer_plan(self.sub_mips.of_clusters(self.best.plan(), joined))
            elif self.assignment is not None and watch.round % 2:
                self._offer_plan(self.assignment.improved(self.best.plan(), watch))
            else:
                self._offer(self._recreated(without_gain % count))
            watch.round += 1
            without_gain = 0 if self.value < before - self.params.least_gain * abs(before) else without_gain + 1
        return ""

    def _differs_from_relaxation(self) -> Bools:
        """Mask [J] of the jobs that are elsewhere than the relaxation would send them, or that it splits."""
        there = np.full(len(self.p.jobs), -2)
        for j, at in self.best.placed.items():
            there[j] = self.best.cluster_of(at)
        differs: Bools = there != self.relaxed_cluster
        return differs

    def _recreated(self, cluster: int) -> BatchState:
        """The best batch with a part taken out and put back in another order."""
        p, rng, batch = self.p, self.tools.rng, self.best.copy()
        chosen = {cluster, int(rng.integers(len(p.clusters)))}
        for j, at in list(batch.placed.items()):
            if batch.cluster_of(at) in chosen and j in batch.placed:
                batch.remove_whole(j)
        batch.restore_unneeded(self.local_search.stopped)
        noise = rng.normal(1, self.params.recreate_noise, len(p.jobs))
        rank = (-self.local_search.rejected * np.maximum(noise, 0.0)).astype(np.int64)
        self.local_search.run(batch, batch.waiting().tolist(), self.watch, rank)
        return batch
