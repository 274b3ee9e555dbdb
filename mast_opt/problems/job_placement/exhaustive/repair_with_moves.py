"""Solver ``exhaustive+repair`` of job placement where running jobs may be moved: ruin and recreate, then sub-MIPs.

1. A plan without moves by ``ruin_and_recreate``, in a share of the time; the start, if that is better. Its bound says
   nothing here.
2. The bound of the linear relaxation, in which running jobs may be moved too.
3. The whole program, where it is small enough, for a share of the time.
4. Rounds: two clusters, their running jobs with their moves, and the jobs that wait are solved exactly, the rest is
   fixed. After a pass over the clusters without gain, one cluster more is solved at a time.
"""

from dataclasses import replace

import numpy as np

from mast_opt.core.solve_result import Limit
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.job_placement.exhaustive.ruin_and_recreate import exhaustive_repair
from mast_opt.problems.job_placement.exhaustive.sub_mip import FixAndOptimise
from mast_opt.problems.job_placement.formulation.aggregated import relaxation
from mast_opt.problems.job_placement.movable_jobs import without_moves
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult
from mast_opt.problems.search.sub_mip import LEAST_S


def repair(
    problem: JobPlacement, tools: SearchContext, start: Plan | None, params: ExhaustiveRepairParams
) -> SearchResult[Plan]:
    """Solve like ``exhaustive_repair``, with moves of running jobs where there may be some."""
    if not len(problem.movable):
        return exhaustive_repair(problem, tools, start, params)
    return _RepairWithMoves(problem, tools, params).run(start)


class _RepairWithMoves:
    """One run; ``best`` is the incumbent and ``value`` its objective."""

    def __init__(self, problem: JobPlacement, tools: SearchContext, params: ExhaustiveRepairParams) -> None:
        self.p, self.params, self.tools, self.watch = problem, params, tools, tools.watch
        self.sub_mips = FixAndOptimise(problem, tools, params)
        self.best: Plan | None = None
        self.value = np.inf
        self.bound: float | None = None

    def run(self, start: Plan | None) -> SearchResult[Plan]:
        """The best plan of jobs, with moves, and the highest bound that were found."""
        self.watch.chose(self.sub_mips.strategy)
        self._offer(self._unmoved())
        self._offer(start)
        if not self.watch.done:
            self._relax()
        if not self.watch.done and self.best is not None:
            plan, bound = self.sub_mips.whole(self.best)
            self._offer(plan)
            self._raise_bound(bound)
        ended = self._rounds() if self.sub_mips.strategy.sub_mips else ", too large for sub-MIPs: nothing is moved"
        proven = self.watch.gap is not None and self.watch.gap <= self.watch.stop.gap
        limit = None if proven else self.watch.limit() or Limit.ITERATIONS
        return SearchResult(self.best, self.bound, limit, f"{self.watch.round} rounds of sub-MIPs{ended}")

    def _unmoved(self) -> Plan | None:
        """A job-placement plan in which every running job stays where it is or is stopped."""
        stop, remaining = self.watch.stop, self.watch.remaining_s
        limit = None if np.isinf(remaining) else max(remaining * self.params.unmoved_share, LEAST_S)
        watch = SearchMonitor(replace(stop, time_limit_s=limit))
        return exhaustive_repair(without_moves(self.p), replace(self.tools, watch=watch), None, self.params).plan

    def _offer(self, plan: Plan | None) -> None:
        """Keep a plan with moves of running jobs that breaks no rule, if it is no worse than the best."""
        if plan is None:
            return
        verdict = verify(self.p, plan)
        if verdict.ok and verdict.objective <= self.value:
            self.best, self.value = plan, verdict.objective
            self.watch.report(objective=self.value, plan=lambda: plan)

    def _relax(self) -> None:
        """Raise the bound on jobs' placement by the linear relaxation with moves."""
        mip = relaxation(self.p).mip
        linear = replace(mip, integral=np.zeros_like(mip.integral))
        self._raise_bound(self.sub_mips.sub_mip(linear, self.sub_mips.linear_limits()).bound)

    def _raise_bound(self, bound: float | None) -> None:
        """Raise the proven bound of the batch with moves, and report it."""
        if bound is not None:
            self.bound = max(0.0, self.bound or 0.0, min(bound, self.value))
            self.watch.report(bound=self.bound)

    def _rounds(self) -> str:
        """Improve the placement of jobs until a limit, the requested gap, or a plan that no neighbourhood improves;
        returns why it ended.
        """
        count = len(self.p.clusters)
        width, without_gain = min(2, count), 0
        while not self.watch.done and self.best is not None:
            if without_gain >= count or (width == count and without_gain):
                if width == count:
                    return ", none of the last helped: every cluster was tried"
                width, without_gain = width + 1, 0
            before = self.value
            self._offer(self.sub_mips.of_clusters(self.best, self.sub_mips.joined(without_gain, width)))
            self.watch.round += 1
            gained = self.value < before - self.params.least_gain * abs(before)
            without_gain = 0 if gained else without_gain + 1
        return ""
