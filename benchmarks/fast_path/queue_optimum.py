"""The best plan that admits jobs in the order of the queue, by mixed-integer programs.

A job is admitted if some plan holds it together with all jobs that were admitted before it, wherever these run: the
lexicographically greatest vector of admissions in queue order. A window of jobs is decided at once, each worth twice
the next one; what was decided before is fixed, what comes later stays out. So the number of programs is that of the
jobs over the window, and no weight passes 2 to the power of the window.

The bid order of the fast path says more: nobody is stopped who need not be. ``fewest_stops`` adds that, tier by tier:
once a tier is admitted, the stops that lose the fewest GPU-hours are found, and later tiers may only add stops that
serve them, which are those of jobs less important than they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems.backends.highs import Highs
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.formulation.strengthened import strong
from mast_opt.problems.job_placement.units import Bools, Ints
from mast_opt.problems.mip import Block, Mip, frozen

WINDOW = 8
"""Jobs that one program decides."""
LIMIT_S = 60.0
"""For one program."""


@dataclass(frozen=True)
class QueueOptimum:
    """Who is admitted in queue order."""

    admitted: Bools
    """[J]"""
    proven: bool
    """Did every program end with a proof?"""


def queue_optimum(
    problem: JobPlacement, *, fewest_stops: bool, window: int = WINDOW, limit_s: float = LIMIT_S
) -> QueueOptimum:
    """Decide the queue window by window; windows end where tiers do.

    Args:
        fewest_stops: see above; without it any stop is free.
        window: jobs that one program decides, at most 20 so that its weights stay exact.
        limit_s: for one program; one that ends without a proof leaves its best plan and ``proven`` False.
    """
    search = _Search(problem, limit_s)
    for tier in range(len(problem.tiers)):
        queue = problem.order[problem.queue_tier[problem.order] == tier]
        if fewest_stops:
            search.forbid_stops(tier)
        for first in range(0, len(queue), window):
            search.admit(queue[first : first + window])
        if fewest_stops and len(queue):
            search.fix_stops()
    return QueueOptimum(search.admitted, search.proven)


class _Search:
    """The program of a problem, and what has been decided."""

    def __init__(self, problem: JobPlacement, limit_s: float) -> None:
        self._p, self._limit_s = problem, limit_s
        self._mip = strong(problem).mip
        assign, preempt = self._block("assign"), self._block("preempt")
        self._assign, self._job = assign.ids, _cells(assign)
        self._preempt, self._victim = preempt.ids, _cells(preempt)
        self._admission = next(block for block in self._mip.rows if block.name == "admitted").ids
        self.admitted: Bools = np.zeros(len(problem.jobs), np.bool_)
        self.proven = True
        self._lower, self._upper = np.array(self._mip.col_lower), np.array(self._mip.col_upper)

    def _block(self, name: str) -> Block:
        return next(block for block in self._mip.columns if block.name == name)

    def admit(self, jobs: Ints) -> None:
        """Decide these jobs, each worth more than all that follow it."""
        worth = np.zeros(len(self._p.jobs))
        worth[jobs] = 2.0 ** np.arange(len(jobs))[::-1]
        cost = np.zeros(len(self._mip.cost))
        cost[self._assign] = -worth[self._job]
        result = self._solved(cost, np.isin(np.arange(len(worth)), jobs), 0.5 / worth.sum())
        if result.x is None:
            return
        chosen = self._job[result.x[self._assign] > 0.5]
        self.admitted[np.intersect1d(chosen, jobs)] = True

    def forbid_stops(self, tier: int) -> None:
        """From now on, only jobs less important than the tier are stopped in addition."""
        kept = self._p.running.tier[self._victim] <= tier
        columns = self._preempt[kept]
        self._upper[columns] = self._lower[columns]

    def fix_stops(self) -> None:
        """From now on, the stops stand that lose the fewest GPU-hours for the jobs admitted so far, then the fewest."""
        cost = np.zeros(len(self._mip.cost))
        cost[self._preempt] = self._p.running.at_risk_mgpu_hours[self._victim] / 1000 + 1e-3
        result = self._solved(cost, np.zeros(len(self._p.jobs), np.bool_), 1e-6)
        if result.x is not None:
            self._lower[self._preempt] = np.rint(result.x[self._preempt])

    def _solved(self, cost: FloatArray, undecided: Bools, gap: float) -> SolveResult:
        """The program with the admitted jobs in and all others out but the undecided ones."""
        lower, upper = np.array(self._mip.row_lower), self._upper.copy()
        lower[self._admission[self.admitted]] = 1.0
        upper[self._assign[~(self.admitted | undecided)[self._job]]] = 0.0
        program: Mip = replace(
            self._mip,
            cost=frozen(cost),
            offset=0.0,
            terms={},
            row_lower=frozen(lower),
            col_lower=frozen(self._lower.copy()),
            col_upper=frozen(upper),
        )
        result = Highs().solve(program, SolveParams(time_limit_s=self._limit_s, gap=gap, threads=1))
        if result.status.is_infeasible:
            raise RuntimeError(f"no plan holds the jobs that one held before: {result.message}")
        self.proven &= result.status is Status.OPTIMAL
        return result


def _cells(block: Block) -> Ints:
    """The first index of each member of a block of listed cells."""
    if block.cells is None:
        raise TypeError(f"{block.name} is a full grid")
    return np.asarray(block.cells[0], np.int64)
