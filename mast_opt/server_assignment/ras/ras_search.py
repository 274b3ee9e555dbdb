"""Search of ras for one objective: prices for a bound, a plan by rounding, a few reservations solved exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Limit, SolveParams, relative_gap
from mast_opt.kind.kind import Formulation
from mast_opt.mip import Mip
from mast_opt.search.interface import SearchContext, SearchResult
from mast_opt.server_assignment.formulation.disaggregation import expand
from mast_opt.server_assignment.formulation.formulation import base
from mast_opt.server_assignment.formulation.index_sets import counted
from mast_opt.server_assignment.formulation.rack_phase import refined, worst_in_racks
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import Ints, ServerAssignment
from mast_opt.server_assignment.ras.initial_solution import round_relaxation
from mast_opt.server_assignment.ras.lagrangian.aggregated_lp_duals import aggregated_lp_duals
from mast_opt.server_assignment.ras.lagrangian.integer_bound import integer_bound
from mast_opt.server_assignment.ras.lagrangian.lp_duals import lp_duals
from mast_opt.server_assignment.ras.lagrangian.relaxation import Relaxed, SearchStopped
from mast_opt.server_assignment.ras.lagrangian.volume_algorithm import PriceSearch
from mast_opt.server_assignment.ras.local_search import LocalSearch
from mast_opt.server_assignment.ras.operators.delta_costs import cost
from mast_opt.server_assignment.ras.state import RasState, infeasible_reservations, ras_arrays_of, state_of
from mast_opt.server_assignment.ras.sub_mip import ReservationSubMip
from mast_opt.server_assignment.verification.certificate import Certificate
from mast_opt.server_assignment.verification.verifier import verify

STEPS = 40
"""Price steps in a round."""
LOOK = 10
"""After so many steps what they prove is recorded."""
ENOUGH = 1e-4
"""A pass over all reservations is followed by another where it improved the cost by more than this share."""
GROUP = 800
"""Pairs that an exact re-optimisation takes on, about."""
PRICED = 12
"""Rounds of prices before exact re-optimisations begin; afterwards both take turns."""
SLICE_S = 3.0
"""Most time for one."""
LEAST_S = 0.01
"""A solver is given at least so much, when time runs out as it is about to be called."""
NODES = 300
"""Most nodes of its tree, so that it is the same on every machine."""
PATIENCE = 2
"""Bounds with whole servers are computed after so many times the time that the last one took."""
FIRST_WORK, MOST_WORK = 4e6, 1e9
"""Steps for a knapsack of the first such bound, doubled for each further one up to the most."""
EARLIER = 1e4
"""Weight of the terms before, in a lexicographic search."""
OPENING_SHARE = 0.2
"""Share of the time for the first prices."""
EXACT_AT = 2
"""The round before which the linear relaxation is solved, once …"""
EXACT_FROM = 0.02
"""… where the gap is above this …"""
LARGEST_EXACT = 20_000
"""… and there are at most so many pairs of stock and reservation, so that a simplex takes seconds."""
EXACT_SHARE = 0.4
"""Most of the remaining time for the prices, and of what is left then for the plan."""
ORDERS, SETTLED = 5, 3
"""Its plan is rounded, and repaired by passes over the reservations in so many random orders, so many passes each."""
LARGEST_SLICED = 400_000
"""Pairs of stock and reservation above which the whole program is not built, to save memory."""
SPREAD_OUT = 5
"""Reservations whose racks are chosen again at the end."""


class RasSearch:
    """Prices, plans and exact re-optimisations take turns; a plan must keep ``caps``, term → value of those before."""

    def __init__(
        self,
        problem: ServerAssignment,
        tools: SearchContext,
        start: Plan | None,
        weights: dict[str, float],
        caps: dict[str, float],
    ) -> None:
        self.p, self.tools, self.watch = problem, tools, tools.watch
        self.weights, self.caps = weights, caps
        self.earlier = EARLIER * sum(caps.values())
        """What the terms before contribute to the cost at most."""
        self.until_s: float | None = None
        self.relaxed = Relaxed(problem, weights, self._look)
        self.fleet = ras_arrays_of(self.relaxed)
        self.size = problem.stocks.size
        pairs, order = self.relaxed.pairs, self.relaxed.order
        self.best, self.cost, self.shown = pairs.today[order], np.inf, np.inf
        """``shown``: the cost without the terms before."""
        today = cost(self.fleet, self.state(self.best))
        self.fleet = self.fleet._replace(forbidden=max(self.fleet.forbidden, 2 * today))
        self.passes = LocalSearch(self.fleet, tools.rng, self._stopped)
        self._offer(self.state(self.best))
        if start is not None:
            self._offer(self.state(counted(problem, pairs, start.reservation)[order]))
        self.prices: PriceSearch | None = None
        self.bound: float | None = None
        self.certificate: Certificate | None = None
        self.whole_s, self.whole_at = 0.0, 0.0
        self.work = FIRST_WORK
        self.slices: ReservationSubMip | None = None
        self.formulation: Formulation[Plan] | None = None
        self.limit: Limit | None = None

    def run(self, until_s: float | None) -> None:
        """Rounds of prices and plans until the time comes, or a limit or the gap is reached."""
        self.until_s = until_s
        share = None if self.watch.stop.time_limit_s is None else OPENING_SHARE * self.watch.remaining_s
        self._settle()
        if self._stopped():
            self.limit = self.watch.limit()
            return
        first = aggregated_lp_duals(self.relaxed, self.tools.mip_solver, self._params(share))
        self.prices = PriceSearch(self.relaxed, first)
        while not self.watch.done and not self._stopped():
            try:
                if self.watch.round == EXACT_AT:
                    self._exact()
                self._price()
            except SearchStopped:
                break
            if not self.watch.done:
                self._plan()
            if self.watch.round >= PRICED and not self.watch.done:
                self._slice()
            self.watch.round += 1
        self._bounded(self.prices.bound, Certificate.in_fractions(self.prices.best))
        self.limit = self.watch.limit()

    def found(self) -> SearchResult[Plan]:
        """The plan, its racks chosen again where there is time."""
        plan = self._named(self.best)
        if self.limit is None:
            worst = worst_in_racks(self.p, plan, SPREAD_OUT)
            plan = refined(self.p, plan, worst, self.tools.mip_solver, self._params(min(5.0, self.watch.remaining_s)))
        bound = None if self.bound is None else self._alone(self.bound)
        return SearchResult(plan, bound, self.limit, f"{self.watch.round} rounds", self.certificate)

    def _exact(self) -> None:
        """Where the program is small and the gap is wide, solve its linear relaxation: go on from its prices, and
        round its plan."""
        assert self.prices is not None
        wide = self.watch.gap is None or self.watch.gap > EXACT_FROM
        if not wide or len(self.fleet.stock) > LARGEST_EXACT:
            return
        mip, solver = self._program().minimise(self.weights), self.tools.mip_solver
        found = lp_duals(self.relaxed, mip, solver, self._params(EXACT_SHARE * self.watch.remaining_s))
        bound = -np.inf if found is None else self.relaxed.bound(found, self.relaxed.solved(found)[0])
        if found is not None and bound > self.prices.bound:
            self.prices = PriceSearch(self.relaxed, found)
            self._bounded(bound, Certificate.in_fractions(found))
        best = self.prices.best
        relaxed = replace(mip, integral=np.zeros_like(mip.integral))
        result = solver(relaxed, self._params(EXACT_SHARE * self.watch.remaining_s))
        if result.x is not None:
            count = round_relaxation(self.fleet, self.size, result.x[: len(self.fleet.stock)][self.relaxed.order])
            level = self.relaxed.solved(best)[1]
            for _ in range(ORDERS):
                state = self.state(count)
                for _ in range(SETTLED):
                    self._improve(state, level, best.once)

    def _program(self) -> Mip:
        """The whole program, built when it is first asked for."""
        if self.formulation is None:
            self.formulation = base(self.p)
        return self.formulation.mip

    def _price(self) -> None:
        assert self.prices is not None
        for number in range(1, STEPS + 1):
            self.prices.step(self.cost)
            if number % LOOK == 0:
                self._bounded(self.prices.bound, Certificate.in_fractions(self.prices.best))
            if self._stopped() or self.watch.done:
                return
        if self.watch.stop.iterations is not None or self.watch.elapsed_s - self.whole_at >= PATIENCE * self.whole_s:
            self._prove()

    def _prove(self) -> None:
        """The bound of the best prices with whole servers: of the reservations that cost most beyond their least first,
        until the asked gap is proven."""
        assert self.prices is not None
        began, prices, relaxed = self.watch.elapsed_s, self.prices.best, self.prices.bound
        solved, stop = self.relaxed.solved(prices), lambda raised: self._stopped() or self._enough(relaxed + raised)
        least, certificate = integer_bound(self.relaxed, prices, solved, self.best, self.work, stop)
        self.work = min(2 * self.work, MOST_WORK)
        self._bounded(self.relaxed.bound(prices, least), certificate)
        self.whole_at = self.watch.elapsed_s
        self.whole_s = self.whole_at - began

    def _enough(self, bound: float) -> bool:
        """Would it prove the asked gap?"""
        gap = relative_gap(self.shown, self._alone(bound))
        return gap is not None and gap <= self.watch.stop.gap * (1 - 1e-6)

    def _alone(self, bound: float) -> float:
        """What a bound of the cost proves without the terms before; every term is a penalty."""
        return max(0.0, bound - self.earlier)

    def _bounded(self, bound: float, certificate: Certificate) -> None:
        if np.isfinite(bound) and (self.bound is None or bound > self.bound):
            self.bound, self.certificate = bound, certificate
            self.watch.report(bound=self._alone(bound))

    def _look(self) -> None:
        if self._stopped():
            raise SearchStopped

    def _stopped(self) -> bool:
        late = self.until_s is not None and self.watch.elapsed_s >= self.until_s
        return late or self.watch.limit() in (Limit.INTERRUPT, Limit.TIME)

    def _plan(self) -> None:
        """Round what the prices buy; let the best plan's reservations choose again too."""
        assert self.prices is not None
        hint, stocks = self.prices.level, self.prices.best.once
        self._improve(self.state(round_relaxation(self.fleet, self.size, self.prices.servers)), hint, stocks)
        self._improve(self.state(self.best), hint, stocks)

    def _settle(self) -> None:
        """What the best plan lacks or has too much, at the levels that it has; who is in trouble then chooses again."""
        state = self.state(self.best)
        self.passes.settle(state, self.relaxed.limits.least)
        self._offer(state)
        nothing = np.zeros(len(self.p.reservations))
        self._improve(state, nothing, np.zeros(len(self.size)), infeasible_reservations(self.fleet, state))

    def _improve(self, state: RasState, hint: FloatArray, stocks: FloatArray, who: Ints | None = None) -> None:
        """Let reservations choose again; all, if ``who`` is not given."""
        every = np.arange(len(self.p.reservations)) if who is None else who
        self.passes.improve(state, every, hint, stocks, ENOUGH * abs(self.cost))
        self._offer(state)

    def _slice(self) -> None:
        """The reservations that cost most beyond what their prices say, and some others, solved exactly together."""
        assert self.prices is not None
        if len(self.fleet.stock) > LARGEST_SLICED:
            return
        if self.slices is None:
            self.slices = ReservationSubMip(self.p, self._program().minimise(self.weights))
        assert self.formulation is not None
        plan = self._named(self.best)
        x = self.formulation.encode(plan)
        width = np.diff(self.fleet.start)
        order = self.tools.rng.permutation(len(self.p.reservations))
        who = order[: max(2, int(np.searchsorted(np.cumsum(width[order]), GROUP)))]
        pool = self.p.pool
        if pool is not None and pool not in who and (self.fleet.backed[who] > 0).any():
            who = np.append(who, pool)
        better = self.slices.solve(x, who, self.tools.mip_solver, self._params(min(SLICE_S, self.watch.remaining_s)))
        if better is not None:
            found = counted(self.p, self.relaxed.pairs, self.formulation.decode(better).reservation)
            self._offer(self.state(found[self.relaxed.order]))

    def _offer(self, state: RasState) -> None:
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
        self.watch.report(objective=shown)

    def _named(self, servers: Ints) -> Plan:
        """Named servers for counts."""
        count = np.empty_like(servers)
        count[self.relaxed.order] = servers
        return expand(self.p, self.relaxed.pairs, count)

    def state(self, count: Ints) -> RasState:
        return state_of(self.fleet, self.size, count)

    def _params(self, time_limit_s: float | None) -> SolveParams:
        stop = self.watch.stop
        limit = None if stop.time_limit_s is None or time_limit_s is None else max(time_limit_s, LEAST_S)
        return SolveParams(
            time_limit_s=limit,
            gap=1e-3,
            seed=int(self.tools.rng.integers(2**31)),
            threads=self.tools.threads,
            cancel=stop.cancel,
            options=(("mip_max_nodes", NODES),),
        )
