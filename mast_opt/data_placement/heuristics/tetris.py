"""The solver ``tetris``: annealing for the plan and a Lagrangian relaxation for its bound, side by side."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from mast_opt.data_placement.certificate import Certificate
from mast_opt.data_placement.heuristics.anneal import anneal
from mast_opt.data_placement.heuristics.arrays import Arrays, arrays_of
from mast_opt.data_placement.heuristics.construct import first_state, given_state
from mast_opt.data_placement.heuristics.plans import Snapshot, plan_of, restore, snapshot_of
from mast_opt.data_placement.heuristics.polish import polish
from mast_opt.data_placement.heuristics.relaxation import Relaxation
from mast_opt.data_placement.heuristics.state import State, cost, excess
from mast_opt.data_placement.packing import peak_floor
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.verify import verify
from mast_opt.search import Found, StageBound, Tools

HOT, COLD = 1.0, 0.0024
"""First and last temperature of a cooling, in units of the mean cost of a workload."""
WARM = 0.05
"""First temperature when a plan is given to start from: it should be improved, not dissolved."""
COOLING = 2000
"""Changes tried per workload in one cooling; with time for more, coolings follow one another from the best plan."""
EARLIER = 1e3
"""Weight of the terms that come before, when the objective is lexicographic."""
REHEAT = 0.5
"""First temperature of a later cooling, relative to the first one's."""
ROUNDS = 400
"""Rounds when neither a time limit nor a number of rounds is given."""
SLICE_S = 0.04
"""Time that a round aims at, so that limits and interrupts are noticed."""
STEPS_PER_ROUND = 20_000
RELAXATIONS_PER_ROUND = 5
"""Work of a round where rounds are counted, so that it does not depend on the machine."""
FINISH = 0.06
"""Share of the search that runs at temperature 0."""
KEEPING = 20.0
"""A plan is copied at most so often that copying takes one part in this many of the time."""
RESERVE = 0.04
"""Share of the time limit that is kept for handing the plan over."""


def tetris(problem: DataPlacement, tools: Tools, start: Plan | None) -> Found[Plan]:
    """Minimise a data-placement problem heuristically, with a proven lower bound.

    Deterministic for equal seed, threads and number of rounds. With a time limit, the cooling follows the clock.
    """
    if problem.objective.lexicographic:
        return _lexicographic(problem, tools, start)
    search = _Search(problem, tools, start, dict(problem.objective.weights), ())
    search.run()
    return search.found()


def _lexicographic(problem: DataPlacement, tools: Tools, start: Plan | None) -> Found[Plan]:
    """One search a term; the terms before weigh ``EARLIER`` times as much and must keep their values."""
    order = problem.objective.order
    caps: list[_Cap] = []
    stages: list[StageBound] = []
    first: Found[Plan] | None = None
    found: Found[Plan] | None = None
    for position, term in enumerate(order):
        tools.watch.begin(term)
        weights = dict.fromkeys(problem.objective.weights, 0.0) | {term: 1.0}
        weights |= {cap.term: EARLIER for cap in caps}
        search = _Search(problem, tools, start, weights, tuple(caps), share=1 / (len(order) - position))
        search.run()
        result = search.found()
        if result.plan is None and found is not None:
            break
        found, first = result, first or result
        bound = None if result.bound is None else result.bound - sum(EARLIER * cap.value for cap in caps)
        stages.append(StageBound(term, None if bound is None else max(0.0, bound)))
        if found.plan is None or tools.watch.stop.cancel.is_set():
            break
        value = verify(problem, found.plan).terms[term]
        caps.append(
            _Cap(term, value * (1 + 1e-6) + 1e-9, arrays_of(problem, dict.fromkeys(weights, 0.0) | {term: 1.0}))
        )
        start = found.plan
    assert first is not None
    assert found is not None
    return Found(found.plan, first.bound, found.limit, found.message, first.certificate, tuple(stages))


class _Cap(NamedTuple):
    """The value that an earlier term must keep, and the arrays that price it alone."""

    term: str
    value: float
    arrays: Arrays


class _Search:
    """One objective: chains of annealing, the relaxation, and the best plan seen."""

    def __init__(
        self,
        problem: DataPlacement,
        tools: Tools,
        start: Plan | None,
        weights: dict[str, float],
        caps: tuple[_Cap, ...],
        share: float = 1.0,
    ) -> None:
        self.problem, self.tools, self.watch = problem, tools, tools.watch
        self.caps = caps
        self.begin_s = self.watch.elapsed_s
        self.budget_s = self.watch.remaining_s * share
        self.a: Arrays = arrays_of(problem, weights)
        chains = max(1, tools.threads - 1)
        seeds = tools.rng.integers(1, 2**31, size=chains).tolist()
        warm = None if start is None else snapshot_of(problem, start)
        refuse = problem.may_refuse
        self.chains: list[State] = [
            first_state(self.a, refuse, seed) if warm is None else given_state(self.a, *warm, refuse, seed)
            for seed in seeds
        ]
        self.weights = weights
        self.relaxation = Relaxation(self.a, peak_floor(problem), problem.splittable)
        self.unit = max(cost(self.a, self.chains[0]), 1e-12) / max(len(problem.workloads), 1)
        self.hot = WARM if warm is not None else HOT
        self.best: Snapshot | None = None
        self.best_cost = math.inf
        self.best_shown = math.inf
        """The term that is minimised now, without the weight of those before."""
        self.costs = [cost(self.a, s) for s in self.chains]
        """Cost of each chain, kept up with the changes."""
        self.feasible = [False] * len(self.chains)
        self.keep_again_s = 0.0
        self.chain_s = SLICE_S
        """Seconds that the last round took a chain."""
        self.coolings: int | None = None
        self.cooling = 0
        self._note()

    def run(self) -> None:
        """Rounds of annealing, and relaxation beside them, until a limit or the asked gap is reached."""
        steps = STEPS_PER_ROUND
        counted = self.watch.stop.iterations is not None
        alone = self.tools.threads == 1
        over = threading.Event()
        with ThreadPoolExecutor(max_workers=self.tools.threads, thread_name_prefix="mast-opt-tetris") as pool:
            beside = None if counted or alone else pool.submit(self._relax_until, over)
            try:
                while self._progress() < 1.0 and not self.watch.done:
                    hot = self._temperature(self._progress())
                    work = [self._chain(position, steps, hot) for position in range(len(self.chains))]
                    if beside is None:
                        work.append(self._relax(counted))
                    for running in [pool.submit(job) for job in work]:
                        running.result()
                    self.watch.round += 1
                    self._note()
                    if self.coolings is None:
                        self._plan_coolings(steps / self.chain_s)
                    if not counted:
                        steps = int(np.clip(steps * SLICE_S / self.chain_s, 500, 50 * STEPS_PER_ROUND))
            finally:
                over.set()
            if beside is not None:
                beside.result()
        if not self.watch.stop.cancel.is_set():
            for position, s in enumerate(self.chains):
                self._chain(position, min(4 * len(s.region), 4 * STEPS_PER_ROUND), 0.0)()
                self.costs[position] = cost(self.a, s)
        self._note(last=True)

    def _progress(self) -> float:
        """How much of the search is over, 0 to 1."""
        stop = self.watch.stop
        shares = [0.0]
        if stop.time_limit_s is not None:
            shares.append((self.watch.elapsed_s - self.begin_s) / max(self.budget_s * (1 - RESERVE), 1e-9))
        if stop.iterations is not None or stop.time_limit_s is None:
            shares.append(self.watch.round / (ROUNDS if stop.iterations is None else max(stop.iterations, 1)))
        return max(shares)

    def _temperature(self, done: float) -> float:
        """Geometric cooling, then 0; begun again from the best plan when a cooling is over and time is left."""
        coolings = self.coolings or 1
        position = min(int(done * coolings), coolings - 1)
        if position != self.cooling:
            self.cooling = position
            if self.best is not None:
                for chain in range(len(self.chains) // 2 + 1):
                    restore(self.a, self.chains[chain], self.best)
                    self.costs[chain], self.feasible[chain] = self.best_cost, True
        within = (done * coolings - position) / (1 - FINISH)
        hot = self.hot * (REHEAT if position else 1.0)
        return 0.0 if within >= 1 else self.unit * hot * (COLD / hot) ** within

    def _plan_coolings(self, speed: float) -> None:
        """Settle how many coolings there is time for and how hot they begin; ``speed`` is in changes a second."""
        stop = self.watch.stop
        if stop.time_limit_s is not None and stop.iterations is None:
            steps = speed * self.budget_s
        else:
            steps = STEPS_PER_ROUND * float(ROUNDS if stop.iterations is None else stop.iterations)
        per_workload = steps / max(len(self.problem.workloads), 1)
        self.coolings = int(np.clip(per_workload / COOLING, 1, 50))
        self.hot *= float(np.clip(2 * per_workload / COOLING, 0.05, 1.0))

    def _chain(self, position: int, steps: int, temperature: float) -> Callable[[], object]:
        def work() -> None:
            began = time.perf_counter()
            s = self.chains[position]
            self.costs[position] += anneal(self.a, s, steps, temperature, temperature, self.problem.may_refuse)
            self.chain_s = max(time.perf_counter() - began, 1e-6)

        return work

    def _relax(self, counted: bool) -> Callable[[], object]:
        """A round of the relaxation in step with the chains: a number of iterations, or a slice of time."""

        def work() -> None:
            if counted:
                self.relaxation.step(RELAXATIONS_PER_ROUND)
                return
            began = time.perf_counter()
            while time.perf_counter() - began < SLICE_S:
                self.relaxation.step(1)

        return work

    def _relax_until(self, over: threading.Event) -> None:
        """The relaxation beside the chains, at its own pace."""
        while not over.is_set():
            self.relaxation.step(1)

    def _note(self, last: bool = False) -> None:
        """Keep the best plan seen between rounds and report what is known.

        Changes never exceed a hard limit that holds, so a feasible chain stays feasible.
        """
        for position, s in enumerate(self.chains):
            if not self.feasible[position]:
                self.feasible[position] = excess(self.a, s, self.problem.may_refuse) == 0
                self.costs[position] = cost(self.a, s)  # changes out of exceeded limits were rewarded beyond their cost
            value = self.costs[position]
            better = value < self.best_cost - (0 if last else 1e-4) * abs(self.best_cost)
            if (self.best is None or better) and (last or self._may_keep()) and self._legal(position):
                began = time.perf_counter()
                self.best, self.best_cost = Snapshot(s.option.copy(), s.region.copy(), s.place.copy()), value
                self.best_shown = value - EARLIER * sum(cost(cap.arrays, s) for cap in self.caps)
                self.keep_again_s = time.perf_counter() + KEEPING * (time.perf_counter() - began)
        bound = self.relaxation.bound - EARLIER * sum(cap.value for cap in self.caps)
        self.watch.report(
            objective=self.best_shown if self.best is not None else None,
            bound=max(0.0, bound) if math.isfinite(bound) else None,
        )

    def _may_keep(self) -> bool:
        """Copying a plan takes time on large instances; where rounds are counted the clock has no say."""
        return self.watch.stop.iterations is not None or time.perf_counter() >= self.keep_again_s

    def _legal(self, position: int) -> bool:
        """Is the chain's plan within the hard limits and the values of earlier terms?"""
        s = self.chains[position]
        return self.feasible[position] and all(cost(cap.arrays, s) <= cap.value for cap in self.caps)

    def found(self) -> Found[Plan]:
        """The best plan, its shares and flows settled exactly, with the certificate of the bound."""
        limit = self.watch.limit()
        certificate = Certificate.of(self.problem, self.weights, self.relaxation.best)
        words = f"{self.watch.round} rounds, {len(self.chains)} chains"
        plan = None if self.best is None else plan_of(self.problem, self.best)
        plan = polish(self.problem, self.tools, plan)
        if plan is None:
            words += "; no plan within the hard limits was found"
        return Found(plan, certificate.bound(self.problem), limit, words, certificate)
