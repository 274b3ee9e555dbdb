"""Solver ``ras`` of server assignment: prices for a bound, a plan by rounding, a few reservations solved exactly.

One search, or one per term. The local search goes over the reservations in random order, checking the clock.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Limit, SolveParams, relative_gap
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import SearchContext, SearchResult, StoppingCriteria
from mast_opt.problems.search.lexicographic import SearchStage, search_in_order
from mast_opt.problems.search.strategy import Strategy
from mast_opt.problems.search.sub_mip import SubMip
from mast_opt.problems.server_assignment.formulation.disaggregation import expand
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.formulation.index_sets import counted
from mast_opt.problems.server_assignment.formulation.rack_phase import refined, worst_in_racks
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import Ints, ServerAssignment
from mast_opt.problems.server_assignment.ras.lagrangian.integer_bound import integer_bound
from mast_opt.problems.server_assignment.ras.lagrangian.lp_duals import aggregated_lp_duals, lp_duals
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed, SearchStopped
from mast_opt.problems.server_assignment.ras.lagrangian.volume_algorithm import PriceSearch
from mast_opt.problems.server_assignment.ras.operators.delta_costs import cost
from mast_opt.problems.server_assignment.ras.operators.reservation_reoptimise import reoptimise_reservation, settle
from mast_opt.problems.server_assignment.ras.operators.transfers import transfer_servers
from mast_opt.problems.server_assignment.ras.params import LocalSearchParams, RasParams
from mast_opt.problems.server_assignment.ras.state import (
    RasArrays,
    RasState,
    infeasible_reservations,
    lacking,
    ras_arrays_of,
    state_of,
)
from mast_opt.problems.server_assignment.ras.sub_mip import ReservationSubMip
from mast_opt.problems.server_assignment.verification.certificate import Certificate, read_certificate
from mast_opt.problems.server_assignment.verification.verifier import verify


def round_relaxation(f: RasArrays, size: Ints, servers: FloatArray) -> Ints:
    """[P] the nearest counts that fit every stock; if a stock is short, the counts that were rounded up most lose
    first.

    Args:
        size: [K] servers of each stock.
        servers: [P] a fractional plan; it may exceed the stocks.
    """
    count = np.clip(np.rint(servers), 0, f.most).astype(np.int64)
    order = np.lexsort((servers - count, f.stock))
    stock, wanted = f.stock[order], count[order]
    used = np.bincount(stock, wanted, len(size)).astype(np.int64)
    if (used > size).any():
        # one from each, the most generously rounded first, then whatever does not fit
        excess = np.maximum(used - size, 0)[stock]
        has = (wanted > 0).astype(np.int64)
        wanted = wanted - has * (_before(stock, has, len(size)) < excess)
        room = np.maximum(size[stock] - _before(stock, wanted, len(size)), 0)
        wanted = np.minimum(wanted, room)
    count[order] = wanted
    return count


def _before(stock: Ints, amount: Ints, stocks: int) -> Ints:
    """[·] servers that come before each row of the same stock; equal stocks are neighbours."""
    total = np.cumsum(amount) - amount
    first = np.searchsorted(stock, np.arange(stocks))
    return np.asarray(total - np.append(total, 0)[np.minimum(first, len(total))][stock])


CHUNK = 500
"""Approximate number of pairs that are processed between two checks of the clock."""


class LocalSearch:
    """Local search over reservations; every pass changes the state that it is given."""

    def __init__(
        self, fleet: RasArrays, rng: np.random.Generator, stopped: Callable[[], bool], params: LocalSearchParams
    ) -> None:
        """``stopped`` says whether to stop; it is asked before every portion of work."""
        self._fleet, self._rng, self._stopped, self._params = fleet, rng, stopped, params

    def settle(self, state: RasState) -> None:
        """Let all reservations fill shortages and release surplus at their current levels."""
        for part in self._parts(np.arange(len(self._fleet.asked))):
            if self._stopped():
                return
            settle(self._fleet, state, part, self._params.levels_above, self._params.fill_portions)

    def improve(self, state: RasState, who: Ints, hint: FloatArray, stocks: FloatArray, enough: float) -> None:
        """Reoptimise reservations, first at stock prices [K], then at zero; repeat while the gain exceeds ``enough``.
        Then reservations with a shortage take servers from others. ``hint``: [Q] levels to try."""
        parts, nothing = self._parts(who), np.zeros_like(stocks)
        for prices in (stocks, nothing) if stocks.any() else (nothing,):
            for _ in range(self._params.repeats):
                gain = 0.0
                for part in parts:
                    if self._stopped():
                        return
                    gain += reoptimise_reservation(
                        self._fleet, state, part, hint, prices, self._params.level_tries, self._params.fill_portions
                    )
                if gain <= enough:
                    break
        self._take(state)

    def _take(self, state: RasState) -> None:
        """Let reservations with a shortage take servers from others, the largest shortage first. The kernel is called
        once even if there is none, so that it is compiled early."""
        params, lack = self._params, lacking(self._fleet, state)
        for q in np.argsort(-lack, kind="stable")[: max(1, np.count_nonzero(lack))].tolist():
            for _ in range(params.transfer_calls):
                if self._stopped():
                    break
                if transfer_servers(self._fleet, state, q, params.transfers, params.transfer_failures) <= 0:
                    break

    def _parts(self, who: Ints) -> list[Ints]:
        """Portions of the reservations, in random order and of about equal work."""
        pairs = int(np.diff(self._fleet.start)[who].sum())
        return np.array_split(self._rng.permutation(who), max(1, min(pairs // CHUNK, len(who))))


@dataclass(frozen=True)
class RasStrategy(Strategy):
    """Parts of ras that run on an instance, in addition to prices, rounding and local search, which always run."""

    stages: tuple[str, ...]
    """Terms that are minimised one after another; empty for a weighted sum."""
    linear_relaxation: bool
    """True if the linear relaxation is solved exactly before round ``lp_round``, if the gap is still above
    ``lp_gap``."""
    sub_mips: bool
    """True if some reservations are solved exactly together, from round ``sub_mip_round`` on."""
    integer_bound: str
    """``every round``, or ``by time``: the bound with whole servers is computed when its past runtime justifies it."""
    racks: int
    """Number of reservations whose racks are chosen again at the end, if no limit was reached."""


def choose_strategy(pairs: int, objective: Objective, stop: StoppingCriteria, params: RasParams) -> RasStrategy:
    """Strategy of ras on an instance with ``pairs`` pairs of stock and reservation."""
    return RasStrategy(
        stages=objective.order if objective.lexicographic else (),
        linear_relaxation=pairs <= params.lp_pairs,
        sub_mips=pairs <= params.sub_mip_most_pairs,
        integer_bound="by time" if stop.iterations is None else "every round",
        racks=params.rack_reservations,
    )


class RasSearch:
    """Search in which prices, plans and exact re-optimisations take turns; a plan must keep ``caps``, the value of each
    earlier term."""

    def __init__(
        self,
        problem: ServerAssignment,
        tools: SearchContext,
        start: Plan | None,
        weights: dict[str, float],
        caps: dict[str, float],
        params: RasParams,
    ) -> None:
        self.p, self.tools, self.watch = problem, tools, tools.watch
        self.params, self.sub_mip = params, SubMip(tools, params.sub_mip)
        self.weights, self.caps = weights, caps
        self.earlier = params.lexicographic_weight * sum(caps.values())
        """Largest contribution of earlier terms to the cost."""
        self.until_s: float | None = None
        self.relaxed = Relaxed(problem, weights, self._look)
        self.fleet = ras_arrays_of(self.relaxed)
        self.strategy = choose_strategy(len(self.fleet.stock), problem.objective, self.watch.stop, params)
        if self.strategy != self.watch.strategy:  # one for all terms of a lexicographic objective
            self.watch.chose(self.strategy)
        self.size = problem.stocks.size
        pairs, order = self.relaxed.pairs, self.relaxed.order
        self.best, self.cost, self.shown = pairs.today[order], np.inf, np.inf
        """``shown``: cost without earlier terms."""
        today = cost(self.fleet, self.state(self.best))
        self.fleet = self.fleet._replace(forbidden=max(self.fleet.forbidden, 2 * today))
        self.passes = LocalSearch(self.fleet, tools.rng, self._stopped, params.local_search)
        self._offer(self.state(self.best))
        if start is not None:
            self._offer(self.state(counted(problem, pairs, start.reservation)[order]))
        self.prices: PriceSearch | None = None
        self.bound: float | None = None
        self.certificate: Certificate | None = None
        self.whole_s, self.whole_at = 0.0, 0.0
        self.slices: ReservationSubMip | None = None
        self.formulation: Formulation[Plan] | None = None
        self.limit: Limit | None = None

    def run(self, until_s: float | None) -> None:
        """Run ras' rounds of prices and plans until ``until_s``, or until a limit or the gap is reached."""
        self.until_s = until_s
        share = None if self.watch.stop.time_limit_s is None else self.params.opening_share * self.watch.remaining_s
        self._settle()
        if self._stopped():
            self.limit = self.watch.limit()
            return
        kept = None if self.caps else self.tools.certificate
        first = (
            aggregated_lp_duals(self.relaxed, self.sub_mip, self._lp_limits(share))
            if kept is None
            else read_certificate(self.p, kept).prices
        )
        self.prices = PriceSearch(self.relaxed, self.params.volume, first)
        if kept is not None:
            with suppress(SearchStopped):
                self._go_on(self.prices)
        while not self.watch.done and not self._stopped():
            try:
                if self.strategy.linear_relaxation and self.watch.round == self.params.lp_round:
                    self._exact()
                self._price()
            except SearchStopped:
                break
            if not self.watch.done:
                self._plan()
            sub_mips = self.strategy.sub_mips and self.watch.round >= self.params.sub_mip_round
            if sub_mips and not self.watch.done:
                self._slice()
            self.watch.round += 1
        self._bounded(self.prices.bound, Certificate.in_fractions(self.prices.best))
        self.limit = self.watch.limit()

    def _go_on(self, prices: PriceSearch) -> None:
        """First round of ras with prices of an earlier solve: a few steps, then the reservations whose costs exceed
        their lower bound most are reoptimised, and whole servers are counted until the requested gap is proven."""
        for _ in range(self.params.again_steps):
            prices.step(self.cost)
        self._bounded(prices.bound, Certificate.in_fractions(prices.best))
        least, level = self.relaxed.solved(prices.best)
        wasted = self.relaxed.wasted(prices.best, least, self.best)
        who = np.argsort(-wasted, kind="stable")[: math.ceil(self.params.again_share * len(wasted))]
        self._improve(self.state(self.best), level, prices.best.once, who)
        if not self.watch.done:
            self._prove(len(who))
        self.watch.round += 1

    def found(self) -> SearchResult[Plan]:
        """Result of ras: its plan, with racks chosen again if no limit was reached, and its bound."""
        plan = self._named(self.best)
        if self.limit is None and self.strategy.racks:
            worst = worst_in_racks(self.p, plan, self.strategy.racks)
            plan = refined(self.p, plan, worst, self.sub_mip, self._limits(self.params.rack_time_limit_s))
        bound = None if self.bound is None else self._alone(self.bound)
        return SearchResult(plan, bound, self.limit, f"{self.watch.round} rounds", self.certificate)

    def _exact(self) -> None:
        """Solve ras' linear relaxation if the gap is wide; continue from its prices, and round its plan."""
        assert self.prices is not None
        wide = self.watch.gap is None or self.watch.gap > self.params.lp_gap
        if not wide:
            return
        mip, solver = self._program().minimise(self.weights), self.sub_mip
        found = lp_duals(self.relaxed, mip, solver, self._lp_limits(self.params.lp_share * self.watch.remaining_s))
        bound = -np.inf if found is None else self.relaxed.bound(found, self.relaxed.solved(found)[0])
        if found is not None and bound > self.prices.bound:
            self.prices = PriceSearch(self.relaxed, self.params.volume, found)
            self._bounded(bound, Certificate.in_fractions(found))
        best = self.prices.best
        relaxed = replace(mip, integral=np.zeros_like(mip.integral))
        result = solver(relaxed, self._limits(self.params.lp_share * self.watch.remaining_s))
        if result.x is not None:
            count = round_relaxation(self.fleet, self.size, result.x[: len(self.fleet.stock)][self.relaxed.order])
            level = self.relaxed.solved(best)[1]
            for _ in range(self.params.rounding_orders):
                state = self.state(count)
                for _ in range(self.params.rounding_passes):
                    self._improve(state, level, best.once)

    def _program(self) -> Mip:
        """The whole program of the instance, built at the first call."""
        if self.formulation is None:
            self.formulation = base(self.p)
        return self.formulation.mip

    def _price(self) -> None:
        """Take price steps, updating ras' bound periodically."""
        assert self.prices is not None
        for number in range(1, self.params.price_steps + 1):
            self.prices.step(self.cost)
            if number % self.params.bound_interval == 0:
                self._bounded(self.prices.bound, Certificate.in_fractions(self.prices.best))
            if self._stopped() or self.watch.done:
                return
        waited_s, patience = self.watch.elapsed_s - self.whole_at, self.params.integer_bound.patience
        if self.strategy.integer_bound == "every round" or waited_s >= patience * self.whole_s:
            self._prove()

    def _prove(self, most: int | None = None) -> None:
        """Update the bound of the best prices with whole servers, counted first for the reservations whose costs exceed
        their lower bound most, until the requested gap is proven, or for ``most`` reservations."""
        assert self.prices is not None
        began, prices, relaxed = self.watch.elapsed_s, self.prices.best, self.prices.bound
        solved, stop = self.relaxed.solved(prices), lambda raised: self._stopped() or self._enough(relaxed + raised)
        params = self.params.integer_bound
        least, certificate = integer_bound(self.relaxed, prices, solved, self.best, params, stop, most)
        self._bounded(self.relaxed.bound(prices, least), certificate)
        self.whole_at = self.watch.elapsed_s
        self.whole_s = self.whole_at - began

    def _enough(self, bound: float) -> bool:
        """Whether a bound of ras would prove the requested gap."""
        gap = relative_gap(self.shown, self._alone(bound))
        return gap is not None and gap <= self.watch.stop.gap * (1 - 1e-6)

    def _alone(self, bound: float) -> float:
        """Bound of ras without earlier terms, from a bound of the cost; terms are penalties, so it is at least 0."""
        return max(0.0, bound - self.earlier)

    def _bounded(self, bound: float, certificate: Certificate) -> None:
        """Note ras' bound with its certificate, if it is better."""
        if np.isfinite(bound) and (self.bound is None or bound > self.bound):
            self.bound, self.certificate = bound, certificate
            self.watch.report(bound=self._alone(bound))

    def _look(self) -> None:
        """Raise SearchStopped if the search of ras must stop."""
        if self._stopped():
            raise SearchStopped

    def _stopped(self) -> bool:
        """Whether ras' search has to stop."""
        late = self.until_s is not None and self.watch.elapsed_s >= self.until_s
        return late or self.watch.limit() in (Limit.INTERRUPT, Limit.TIME)

    def _plan(self) -> None:
        """Round the fractional plan of the prices and reoptimise it; reoptimise the best plan too."""
        assert self.prices is not None
        hint, stocks = self.prices.level, self.prices.best.once
        self._improve(self.state(round_relaxation(self.fleet, self.size, self.prices.servers)), hint, stocks)
        self._improve(self.state(self.best), hint, stocks)

    def _settle(self) -> None:
        """Fill shortages and release surplus of the best plan at its levels; reoptimise reservations that are then
        infeasible."""
        state = self.state(self.best)
        self.passes.settle(state)
        self._offer(state)
        nothing = np.zeros(len(self.p.reservations))
        self._improve(state, nothing, np.zeros(len(self.size)), infeasible_reservations(self.fleet, state))

    def _improve(self, state: RasState, hint: FloatArray, stocks: FloatArray, who: Ints | None = None) -> None:
        """Reoptimise the reservations ``who``, or all, and keep the plan if it is the best."""
        every = np.arange(len(self.p.reservations)) if who is None else who
        self.passes.improve(state, every, hint, stocks, self.params.pass_tolerance * abs(self.cost))
        self._offer(state)

    def _slice(self) -> None:
        """Solve exactly, together, some reservations drawn at random, and the pool if it backs one of them."""
        assert self.prices is not None
        if self.slices is None:
            self.slices = ReservationSubMip(self.p, self._program().minimise(self.weights))
        assert self.formulation is not None
        plan = self._named(self.best)
        x = self.formulation.encode(plan)
        width = np.diff(self.fleet.start)
        order = self.tools.rng.permutation(len(self.p.reservations))
        who = order[: max(2, int(np.searchsorted(np.cumsum(width[order]), self.params.sub_mip_pairs)))]
        pool = self.p.pool
        if pool is not None and pool not in who and (self.fleet.backed[who] > 0).any():
            who = np.append(who, pool)
        better = self.slices.solve(x, who, self.sub_mip, self._limits())
        if better is not None:
            found = counted(self.p, self.relaxed.pairs, self.formulation.decode(better).reservation)
            self._offer(self.state(found[self.relaxed.order]))

    def _offer(self, state: RasState) -> None:
        """Note a plan, if it is better than the best."""
        value = cost(self.fleet, state)
        if value >= min(self.cost, self.fleet.forbidden):
            return
        shown = value
        if self.caps:
            terms = verify(self.p, self._named(state.servers)).terms
            if any(terms[name] > cap for name, cap in self.caps.items()):
                return
            shown = sum(weight * terms[name] for name, weight in self.weights.items() if name not in self.caps)
        self.best, self.cost, self.shown = state.servers.copy(), value, shown
        self.watch.report(objective=shown, plan=partial(self._named, self.best))

    def _named(self, servers: Ints) -> Plan:
        """Plan of individual servers for these counts [P]."""
        count = np.empty_like(servers)
        count[self.relaxed.order] = servers
        return expand(self.p, self.relaxed.pairs, count)

    def state(self, count: Ints) -> RasState:
        """Search state of ras for these counts [P]."""
        return state_of(self.fleet, self.size, count)

    def _lp_limits(self, at_most_s: float | None) -> SolveParams:
        """Limits of ras' linear program for prices."""
        return replace(self._limits(at_most_s), gap=self.params.lp_dual_gap)

    def _limits(self, at_most_s: float | None = None) -> SolveParams:
        """Limits of ras' exact sub-problem."""
        return self.sub_mip.limits(seed=int(self.tools.rng.integers(2**31)), at_most_s=at_most_s)


def ras(problem: ServerAssignment, tools: SearchContext, start: Plan | None, params: RasParams) -> SearchResult[Plan]:
    """Minimise a server-assignment problem heuristically, with a proven lower bound.

    Deterministic for equal seed and number of rounds. A lexicographic objective is searched term by term, with
    weights that keep earlier terms.
    """
    objective = problem.objective
    if not objective.lexicographic:
        search = RasSearch(problem, tools, start, dict(objective.weights), {}, params)
        search.run(tools.watch.stop.time_limit_s)
        return search.found()

    def stage(now: SearchStage[Plan]) -> SearchResult[Plan]:
        search = RasSearch(problem, tools, now.start, now.weights, dict(now.caps), params)
        search.run(tools.watch.elapsed_s + tools.watch.remaining_s / now.left)
        return search.found()

    def cap(plan: Plan, term: str) -> float:
        return verify(problem, plan).terms[term]

    weight = params.lexicographic_weight
    return search_in_order(objective.order, objective.weights, tools.watch, start, weight, stage, cap)
