"""Search of tetris for one objective: threads anneal parts of one plan while the relaxation proves its bound."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.annealing.cooling_schedule import Cooling
from mast_opt.problems.data_placement.tetris.annealing.kernel import KernelRuns
from mast_opt.problems.data_placement.tetris.annealing.multistart import (
    MultistartAnnealing,
    RestartGenerator,
    rounds_for,
)
from mast_opt.problems.data_placement.tetris.annealing.parallel import ParallelAnnealing
from mast_opt.problems.data_placement.tetris.gibbs.sweeps import GibbsSweeps
from mast_opt.problems.data_placement.tetris.incumbent import Assignment, SearchPlan, assignment_of, decisions, plan_of
from mast_opt.problems.data_placement.tetris.initial_solution import first_state, given_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of, unavoidable_dollars
from mast_opt.problems.data_placement.tetris.lagrangian.bounding import Bounding
from mast_opt.problems.data_placement.tetris.lagrangian.spectral import spectrum_of
from mast_opt.problems.data_placement.tetris.multilevel.start import multilevel_state
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, forbidden
from mast_opt.problems.data_placement.tetris.strategy import Budget, Features, Search, choose_strategy
from mast_opt.problems.data_placement.tetris.sub_mip.completion import complete_plan
from mast_opt.problems.data_placement.tetris.workload_parts import WorkloadParts
from mast_opt.problems.data_placement.verification.spectral_bound import Spectrum
from mast_opt.problems.search.budget import ROUNDS, Throttle, TimeBudget
from mast_opt.problems.search.interface import SearchContext, SearchResult


@dataclass(frozen=True, eq=False)
class EpsilonConstraint:
    """The cap on an earlier term, and the arrays that price that term alone."""

    term: str
    value: float
    arrays: TetrisArrays


class TetrisSearch:
    """The plan under search (on a small instance one for each thread), the best one seen, and the relaxation.

    Args:
        parts: of the problem's workloads; the search places these, the bound is that of the problem.
        weights: of every term.
        caps: terms that come before.
        params: of the solver.
        share: part of the remaining time that this search may take.
    """

    def __init__(
        self,
        problem: DataPlacement,
        parts: WorkloadParts,
        tools: SearchContext,
        start: Plan | None,
        weights: dict[str, float],
        caps: tuple[EpsilonConstraint, ...],
        params: TetrisParams,
        share: float = 1.0,
    ) -> None:
        self.problem, self.parts, self.tools, self.watch = problem, parts, tools, tools.watch
        self.start, self.caps, self.params = start, caps, params
        self.objective = StageObjective(weights, {cap.term: cap.value for cap in caps})
        counted, left_s = self.watch.stop.iterations is not None, self.watch.remaining_s * share
        features, budget = Features.of(parts.problem, start), Budget(left_s, counted, tools.threads)
        self.strategy = choose_strategy(features, self.objective, budget, params)
        self.watch.chose(self.strategy)
        self.handover_s = params.handover_s_per_cell * features.read_cells
        self.until_s = self.watch.elapsed_s + left_s
        multistart = self.strategy.search is Search.MULTISTART
        slice_changes, workloads = params.operators.slice_changes, features.workloads
        rounds = rounds_for(workloads, params.multistart, slice_changes) if multistart else ROUNDS
        whole = parts.problem is problem
        bounded = arrays_of(problem, weights)
        surcharge = self.strategy.link_surcharge
        raised = weights | {term: surcharge * weights[term] for term in ("remote", "copy")}
        same = bounded if whole and surcharge == 1.0 else None
        self.a: TetrisArrays = arrays_of(parts.problem, raised, parts.share) if same is None else same
        refuse = problem.may_refuse
        self.rng = np.random.default_rng(tools.rng.integers(2**63))
        began_s = self.watch.elapsed_s
        first = self._first()
        self.pace = TimeBudget(self.watch, self.strategy.search_s - self.watch.elapsed_s + began_s, rounds)
        self.random = [self.rng.integers(1, 2**63, size=1).astype(np.uint64) for _ in range(self.strategy.chains)]
        self.bounding = self._bounding(bounded)
        first_cost = cost(self.a, first)
        fixed = forbidden(self.a, first) + self._earlier_cost(first) + unavoidable_dollars(parts.problem, raised)
        mean = max(first_cost - fixed, 1e-12) / max(workloads, 1)
        cooling = Cooling(mean, self.strategy.hot, params.cooling)
        slices = KernelRuns(self.a, refuse, len(self.random), params.operators, small=multistart)
        self.method: MultistartAnnealing | ParallelAnnealing | GibbsSweeps
        if multistart:
            plans = [SearchPlan(first.copy()._replace(random=random), first_cost) for random in self.random]
            scale = self.strategy.temperature_scale
            restarts = RestartGenerator(self.a, decisions(first), refuse, mean, scale, params.multistart)
            self.method = MultistartAnnealing(
                self.a, restarts, plans, slices, cooling, self.pace, self.rng, params.multistart
            )
        else:
            searched = SearchPlan(first, first_cost)
            annealing = ParallelAnnealing(self.a, searched, slices, cooling, self.pace, self.rng, self.random)
            self.method = annealing
            if self.strategy.search is Search.GIBBS:
                self.method = GibbsSweeps(self.a, refuse, mean, annealing, self.pace, self.rng, params.gibbs)
        self.best: Assignment | None = None
        self.best_cost = math.inf
        self.best_shown = math.inf
        """The term that is minimised now, without the weight of those before."""
        self._copying = Throttle()
        self._note()

    def _first(self) -> TetrisState:
        """The state to begin with: the given one, that of a partition of the co-access graph, or close to today's."""
        refuse, params = self.problem.may_refuse, self.params.multilevel
        if self.start is not None:
            assignment = assignment_of(self.parts.problem, self.parts.assigned(self.problem, self.start))
            return given_state(self.a, *assignment, refuse, 1)
        first = first_state(self.a, refuse, 1)
        if self.strategy.search is not Search.MULTILEVEL:
            return first
        pace = TimeBudget(self.watch, params.share * self.strategy.search_s)
        seeded = np.random.default_rng(self.rng.integers(2**63))
        return multilevel_state(self.a, first, refuse, pace, seeded, params)

    def _bounding(self, a: TetrisArrays) -> Bounding:
        """Bounding of one search, with tree cuts and spectrum as the strategy says."""
        rng = np.random.default_rng(self.rng.integers(2**63))
        cuts, spectrum = self.strategy.tree_cuts, self._spectrum(rng)
        return Bounding(self.problem, self.tools, self.objective, a, cuts, rng, self.params, spectrum)

    def _spectrum(self, rng: np.random.Generator) -> Spectrum | None:
        """A spectral bound, where plans are partitions of the datasets."""
        params, partitions = self.params.spectral, self.strategy.search is Search.MULTILEVEL
        limit_s = params.share * self.strategy.search_s
        pace = TimeBudget(self.watch, limit_s)
        if not partitions or (pace.by_clock and params.check_s * len(self.problem.datasets) ** 3 > limit_s):
            return None
        return spectrum_of(self.problem, pace.over, rng, params)

    def _earlier_cost(self, first: TetrisState) -> float:
        """Contribution of the terms before to the cost, where that says nothing of what a change may cost now."""
        return (
            0.0
            if self.objective.work_alone
            else self.params.lexicographic_weight * sum(cost(cap.arrays, first) for cap in self.caps)
        )

    def run(self) -> None:
        """Run tetris: rounds of annealing, with the relaxation in parallel, until a limit or the asked gap
        is reached.
        """
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
        """Copy tetris' best plan seen between rounds (``every`` better one, or now and then) and report
        what is known.
        """
        for plan in self.method.plans:
            self._look_at(plan, every)
        bound = self.bounding.bound - self.params.lexicographic_weight * sum(cap.value for cap in self.caps)
        best = self.best if self.problem.links is None else None
        self.watch.report(
            objective=None if best is None else self.best_shown,
            bound=max(0.0, bound) if math.isfinite(bound) else None,
            plan=None if best is None else partial(self._merged, best),
        )

    def _merged(self, best: Assignment) -> Plan:
        """Plan of the data placement from the best assignment of its parts."""
        return self.parts.merged(self.problem, plan_of(self.parts.problem, best))

    def _look_at(self, plan: SearchPlan, every: bool) -> None:
        """Copy tetris' plan if it is the best."""
        plan.check_limits(self.a, self.problem.may_refuse)
        better = plan.cost < self.best_cost - (0 if every else 1e-4) * abs(self.best_cost)
        if (self.best is None or better) and (every or self._may_copy()) and self._feasible(plan):
            with self._copying.doing():
                s = plan.state
                self.best = decisions(s)
                plan.cost = self.best_cost = cost(self.a, s)
                self.best_shown = self.best_cost - self.params.lexicographic_weight * sum(
                    cost(cap.arrays, s) for cap in self.caps
                )

    def _may_copy(self) -> bool:
        """Whether tetris may copy its plan now: copying takes time on large instances; where rounds are counted the
        clock has no say.
        """
        return self.pace.counted or self._copying.due

    def _feasible(self, plan: SearchPlan) -> bool:
        """Whether tetris' plan is within the hard limits and the values of earlier terms, without a forbidden read."""
        return plan.feasible(self.a) and all(cost(cap.arrays, plan.state) <= cap.value for cap in self.caps)

    def found(self) -> SearchResult[Plan]:
        """Tetris' best plan, its shares and flows optimised, with the certificate of the bound.

        Where the start breaks no limit, the plan is no worse.
        """
        words = f"{self.watch.round} rounds, {len(self.random)} {self.method.name}"
        plan = None
        if self.best is not None:
            plan = self._merged(self.best)
        with self.bounding.during_sub_mips():
            plan = complete_plan(
                self.problem,
                self.tools,
                plan,
                self.objective,
                self.start,
                self.until_s,
                self.strategy.finish,
                self.params,
            )
        certificate = self.bounding.certificate()
        limit = self.watch.limit()  # only now: what finishes the plan is stopped too
        if plan is None:
            words += "; no plan within the hard limits was found"
        return SearchResult(plan, self.bounding.proven(certificate), limit, words, certificate)
