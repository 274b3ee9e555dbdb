"""Search of tetris for one objective: threads anneal parts of one plan while the relaxation proves its bound."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.tetris.annealing.cooling_schedule import BOUND, GPUS_ALONE, HOT, LATER, WARM, Cooling
from mast_opt.data_placement.tetris.annealing.kernel_runs import KernelRuns
from mast_opt.data_placement.tetris.annealing.multistart import (
    MOST_WORKLOADS,
    MultistartAnnealing,
    RestartGenerator,
    rounds_for,
)
from mast_opt.data_placement.tetris.annealing.parallel import ParallelAnnealing
from mast_opt.data_placement.tetris.decomposition import MOST
from mast_opt.data_placement.tetris.gibbs.congestion_prices import gang_share
from mast_opt.data_placement.tetris.gibbs.sweeps import GibbsSweeps, warm_after
from mast_opt.data_placement.tetris.incumbent import Assignment, SearchPlan, assignment_of, decisions, plan_of
from mast_opt.data_placement.tetris.initial_solution import first_state, given_state
from mast_opt.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.data_placement.tetris.lagrangian.bounding import Bounding
from mast_opt.data_placement.tetris.params import FINE, MANY
from mast_opt.data_placement.tetris.stage_objective import EARLIER, StageObjective
from mast_opt.data_placement.tetris.state import TetrisState, cost, forbidden
from mast_opt.data_placement.tetris.sub_mip.completion import complete_plan
from mast_opt.data_placement.tetris.sub_mip.fix_and_optimise import search_seconds_before_sub_mips, sub_mip_applicable
from mast_opt.search.budget import ROUNDS, TimeBudget
from mast_opt.search.interface import SearchContext, SearchResult
from mast_opt.search.throttle import Throttle

RESERVE = 0.04
"""Share of the time that is reserved for handing the plan over, multistart from what its size takes."""
LINK_SURCHARGE = 20.0
"""Times that remote reads and copies are priced while links are taken for wide, so that few are left to fit in."""
HANDOVER_S = 1e-7
"""Seconds for each read and region that the last pass, the certificate and the verifier take."""


@dataclass(frozen=True, eq=False)
class EpsilonConstraint:
    """The cap on an earlier term, and the arrays that price that term alone."""

    term: str
    value: float
    arrays: TetrisArrays


class TetrisSearch:
    """The plan under search (on a small instance one for each thread), the best one seen, and the relaxation.

    Args:
        weights: of every term.
        caps: terms that come before.
        share: part of the remaining time that this search may take.
    """

    def __init__(
        self,
        problem: DataPlacement,
        tools: SearchContext,
        start: Plan | None,
        weights: dict[str, float],
        caps: tuple[EpsilonConstraint, ...],
        share: float = 1.0,
    ) -> None:
        self.problem, self.tools, self.watch = problem, tools, tools.watch
        self.start, self.caps = start, caps
        self.objective = StageObjective(weights, {cap.term: cap.value for cap in caps})
        self.handover_s = HANDOVER_S * len(problem.read_workload) * len(problem.regions)
        left_s = self.watch.remaining_s * share
        self.until_s = self.watch.elapsed_s + left_s
        budget_s = max(left_s * (1 - RESERVE) - self.handover_s, left_s / 2)
        if self.watch.stop.iterations is None:
            budget_s = search_seconds_before_sub_mips(problem, self.objective, budget_s)
        multistart = start is None and problem.remote_reads and len(problem.workloads) <= MOST_WORKLOADS
        self.pace = TimeBudget(self.watch, budget_s, rounds_for(len(problem.workloads)) if multistart else ROUNDS)
        bounded = arrays_of(problem, weights)
        self.a: TetrisArrays = bounded
        if problem.links is not None and sub_mip_applicable(problem, self.objective):
            raised = {term: LINK_SURCHARGE * weights[term] for term in ("remote", "copy")}
            self.a = arrays_of(problem, weights | raised)
        refuse = problem.may_refuse
        if start is None:
            first: TetrisState = first_state(self.a, refuse, 1)
        else:
            first = given_state(self.a, *assignment_of(problem, start), refuse, 1)
        most = tools.threads if multistart else min(tools.threads, len(problem.regions) // 2)
        self.rng = np.random.default_rng(tools.rng.integers(2**63))
        self.random = [self.rng.integers(1, 2**63, size=1).astype(np.uint64) for _ in range(max(1, min(most, MOST)))]
        proving = np.random.default_rng(self.rng.integers(2**63))
        self.bounding = Bounding(problem, tools, self.objective, bounded, self.pace.counted, budget_s, proving)
        first_cost = cost(self.a, first)
        unit = max(first_cost - forbidden(self.a, first) - self._earlier_cost(first), 1e-12) / max(
            len(problem.workloads), 1
        )
        cooling, slices = (
            Cooling(unit, self._hot() * self._temperature_scale()),
            KernelRuns(self.a, refuse, len(self.random)),
        )
        self.method: MultistartAnnealing | ParallelAnnealing | GibbsSweeps
        if multistart:
            beginning = decisions(first)
            plans = [SearchPlan(first.copy()._replace(random=random), first_cost) for random in self.random]
            restarts = RestartGenerator(self.a, beginning, refuse, unit, self._temperature_scale())
            self.method = MultistartAnnealing(self.a, restarts, plans, slices, cooling, self.pace, self.rng)
        else:
            searched = SearchPlan(first, first_cost)
            annealing = ParallelAnnealing(self.a, searched, slices, cooling, self.pace, self.rng, self.random)
            self.method = annealing
            if self._sweeps:
                self.method = GibbsSweeps(self.a, refuse, unit, annealing, self.pace, self.rng)
        self.best: Assignment | None = None
        self.best_cost = math.inf
        self.best_shown = math.inf
        """The term that is minimised now, without the weight of those before."""
        self._copying = Throttle()
        self._note()

    def _earlier_cost(self, first: TetrisState) -> float:
        """What the terms before contribute to the cost, where that says nothing of what a change may cost now."""
        return 0.0 if self.objective.work_alone else EARLIER * sum(cost(cap.arrays, first) for cap in self.caps)

    @property
    def _sweeps(self) -> bool:
        """Do sweeps come before the annealing? Prices make sense of what is scarce where there is much of all."""
        reads = self.problem.remote_reads and self.objective.weights["remote"] > 0
        scratch = self.start is None and not self.caps and self.problem.links is None
        many = len(self.problem.workloads) >= MANY and gang_share(self.a) <= FINE
        return scratch and reads and many and not self.objective.gpus_alone

    def _hot(self) -> float:
        if self._sweeps:
            return warm_after(self.a)
        if self.caps and not self.objective.work_alone:
            return LATER
        return HOT if self.start is None else WARM

    def _temperature_scale(self) -> float:
        """What changes cost relative to the mean cost of a workload, compared with the usual case."""
        if self.objective.gpus_alone and not self.caps:
            return GPUS_ALONE
        return 1.0 if self.problem.remote_reads else BOUND

    def run(self) -> None:
        """Rounds of annealing, with the relaxation in parallel, until a limit or the asked gap is reached."""
        counted, alone = self.pace.counted, self.tools.threads == 1
        over = threading.Event()
        with ThreadPoolExecutor(max_workers=self.tools.threads, thread_name_prefix="mast-opt-tetris") as pool:
            bounding = None if counted or alone else pool.submit(self.bounding.until, over)
            try:
                while self.pace.done < 1.0 and not self.watch.done:
                    busy = not self.bounding.converged
                    relax = self.bounding.in_round(self.watch.round) if bounding is None else None
                    relaxing = None if relax is None else pool.submit(relax)
                    threads = max(1, len(self.random) - 1) if busy and not alone else len(self.random)
                    self.method.round(pool, threads, self.best)
                    if relaxing is not None:
                        relaxing.result()
                    self.watch.round += 1
                    self._note(self.method.frequent)
            finally:
                over.set()
            if bounding is not None:
                bounding.result()
        self.method.finish(lambda: self.pace.cancelled() or self.watch.remaining_s < self.handover_s)
        self._note(True)

    def _note(self, every: bool = False) -> None:
        """Copy the best plan seen between rounds (``every`` better one, or now and then) and report what is known."""
        for plan in self.method.plans:
            self._look_at(plan, every)
        bound = self.bounding.bound - EARLIER * sum(cap.value for cap in self.caps)
        self.watch.report(
            objective=self.best_shown if self.best is not None and self.problem.links is None else None,
            bound=max(0.0, bound) if math.isfinite(bound) else None,
        )

    def _look_at(self, plan: SearchPlan, every: bool) -> None:
        """Copy the plan if it is the best."""
        plan.check_limits(self.a, self.problem.may_refuse)
        better = plan.cost < self.best_cost - (0 if every else 1e-4) * abs(self.best_cost)
        if (self.best is None or better) and (every or self._may_copy()) and self._feasible(plan):
            with self._copying.doing():
                s = plan.state
                self.best = decisions(s)
                plan.cost = self.best_cost = cost(self.a, s)
                self.best_shown = self.best_cost - EARLIER * sum(cost(cap.arrays, s) for cap in self.caps)

    def _may_copy(self) -> bool:
        """Copying a plan takes time on large instances; where rounds are counted the clock has no say."""
        return self.pace.counted or self._copying.due

    def _feasible(self, plan: SearchPlan) -> bool:
        """Is the plan within the hard limits and the values of earlier terms, without a forbidden read?"""
        return plan.feasible(self.a) and all(cost(cap.arrays, plan.state) <= cap.value for cap in self.caps)

    def found(self) -> SearchResult[Plan]:
        """The best plan, its shares and flows optimised, with the certificate of the bound.

        Where the start breaks no limit, the plan is no worse.
        """
        words = f"{self.watch.round} rounds, {len(self.random)} {self.method.name}"
        plan = None if self.best is None else plan_of(self.problem, self.best)
        with self.bounding.during_sub_mips():
            plan = complete_plan(self.problem, self.tools, plan, self.objective, self.start, self.until_s)
        certificate = self.bounding.certificate()
        limit = self.watch.limit()  # only now: what finishes the plan is stopped too
        if plan is None:
            words += "; no plan within the hard limits was found"
        return SearchResult(plan, max(0.0, certificate.bound(self.problem)), limit, words, certificate)
