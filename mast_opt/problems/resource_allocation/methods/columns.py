"""Column generation: linear programs over the configurations that pay, of the many that an instance may have.

Pairs of a thousand jobs on three types are 1.5 million configurations, and an optimal allocation uses a few thousand. A
program over some of them gives prices; the configurations that earn more than they pay at these prices join, until
there are none. The prices then prove the optimum over all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.kind.problem_data import Bools, Floats
from mast_opt.problems.resource_allocation.formulation.program import AllocationProgram, block_values
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.prices import Prices, prices_of, profits, without_profit
from mast_opt.problems.resource_allocation.methods.solves import Solves, Stopped
from mast_opt.problems.resource_allocation.methods.subproblems import with_configurations
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

PAYS = 1e-9
"""Profit of a configuration, as a part of what the rates of all jobs are worth, that is no round-off."""

Build = Callable[[ResourceAllocation, AllocationProgram], None]
"""(problem, its program with nothing but limits) adds an objective and what it needs."""


@dataclass(frozen=True, eq=False)
class Found:
    """The optimum of a program over all configurations."""

    share: Floats
    """Share of each configuration, [C]."""
    rest: Floats
    """The values of the columns after the shares."""
    weight: Floats
    """[J] the prices of the rows that were asked for."""
    prices: Prices


class Columns:
    """Programs of one problem with fractional shares; what has joined once stays.

    Args:
        first: [C] mask of the configurations in the first program, to which one joins of each job that has none; all,
            or some that seem good, unless given.
        rounds: in which configurations may join; without limit unless given.
    """

    def __init__(
        self,
        problem: ResourceAllocation,
        solves: Solves,
        params: AllocationParams,
        first: Bools | None = None,
        rounds: int | None = None,
    ) -> None:
        self.problem, self.solves, self._params = problem, solves, params
        width = len(problem.configurations)
        if first is not None:
            self.chosen: Bools = first | _of_the_others(problem, first)
        elif width <= params.direct_configurations:
            self.chosen = np.ones(width, np.bool_)
        else:
            self.chosen = _first(problem, params.first_configurations)
        self._rounds = float("inf") if rounds is None else rounds
        self.complete = True
        """Whether every program was solved over all configurations."""
        self._part: ResourceAllocation | None = None

    def include_paying(self, prices: Prices, gain: Floats | None) -> None:
        """Let the configurations that earn most at some prices take part too; ``gain`` as in ``solve``."""
        self._join(self._paying(profits(self.problem, prices, gain), prices))

    def solve(
        self,
        build: Build,
        *,
        maximise: bool,
        block: str = "",
        unit: Floats | None = None,
        gain: Floats | None = None,
        weight: Floats | None = None,
    ) -> Found:
        """Optimum of an allocation program with the columns generated so far.

        Args:
            block: the rows whose prices are the weights of the jobs' rates.
            unit: [J] in which these rows count the rates; 1 unless given.
            gain: [C] what a share adds to the objective beyond that.
            weight: [J] the weights themselves, in the place of ``block``.

        Raises:
            Stopped: there is no allocation, or a limit came first.
        """
        p = self.problem
        while True:
            part = self.restricted()
            program = AllocationProgram(part)
            build(part, program)
            mip = program.build(maximise)
            try:
                solved = self.solves(mip, prices=True)
            except Stopped as stopped:
                if self.chosen.all() or not stopped.result.status.is_infeasible:
                    raise
                self._join(np.ones(len(self.chosen), np.bool_))
                continue
            assert solved.prices is not None
            of_rates = weight if weight is not None else np.abs(block_values(mip, block, solved.prices, len(p.jobs)))
            of_rates = of_rates if unit is None else of_rates / unit
            prices = prices_of(part, mip, solved.prices, of_rates)
            joining = np.zeros(len(self.chosen), np.bool_)
            if not self.chosen.all():
                joining = self._paying(profits(p, prices, gain), prices)
            if self._rounds <= 0 and joining.any():
                self.complete = False
            if self._rounds <= 0 or not joining.any():
                share = np.zeros(len(self.chosen))
                count = int(np.count_nonzero(self.chosen))
                share[self.chosen] = solved.x[:count]
                return Found(share, solved.x[count:], of_rates, without_profit(p, prices, gain))
            self._rounds -= 1
            self._join(joining)

    def _join(self, more: Bools) -> None:
        """Add columns to the restricted program."""
        self.chosen = self.chosen | more
        self._part = None

    def restricted(self) -> ResourceAllocation:
        """The problem with nothing but the chosen configurations."""
        if self.chosen.all():
            return self.problem
        if self._part is None:
            self._part = with_configurations(self.problem, self.chosen)
        return self._part

    def _paying(self, profit: Floats, prices: Prices) -> Bools:
        """The configurations that earn most beyond what they pay, a few for each job."""
        p, members = self.problem, self.problem.members
        worth = prices.rate_weight[members.job] * members.rate
        least = PAYS * max(float(worth.max(initial=0.0)), np.finfo(float).tiny)
        rows = np.flatnonzero((profit[members.configuration] > least) & ~self.chosen[members.configuration])
        return best_of_each(p, rows, profit, self._params.joining_configurations)


def _first(problem: ResourceAllocation, count: int) -> Bools:
    """Mask of the first configurations: for each job, ``count`` in which all members together gain most for what they
    use, and as many in which it is alone."""
    p, members, uses = problem, problem.members, problem.uses
    part = np.divide(uses.amount, p.resources.amount[uses.resource], out=np.ones(len(uses)), where=uses.amount > 0)
    used = np.bincount(uses.configuration, part, minlength=len(p.configurations))
    gained = np.bincount(members.configuration, members.rate / p.normal_rate[members.job], len(p.configurations))
    alone = np.bincount(members.configuration, minlength=len(p.configurations)) == 1
    value = gained / np.maximum(used, np.finfo(float).tiny)
    every = np.arange(len(members))
    return best_of_each(p, every[alone[members.configuration]], value, count) | best_of_each(p, every, value, count)


def _of_the_others(problem: ResourceAllocation, chosen: Bools) -> Bools:
    """The fastest configuration of each job that has none among the chosen ones."""
    members = problem.members
    served = np.bincount(members.job[chosen[members.configuration]], minlength=len(problem.jobs)) > 0
    rate: Floats = np.bincount(members.configuration, members.rate, len(problem.configurations)).astype(np.float64)
    return best_of_each(problem, np.flatnonzero(~served[members.job]), rate, 1)


def best_of_each(problem: ResourceAllocation, rows: np.ndarray, value: Floats, count: int) -> Bools:
    """Mask [C] of the configurations with the highest values, so many for each job, among these rows of members."""
    members = problem.members
    order = rows[np.lexsort((-value[members.configuration[rows]], members.job[rows]))]
    job = members.job[order]
    rank = np.arange(len(order)) - np.searchsorted(job, job)
    chosen = np.zeros(len(problem.configurations), np.bool_)
    chosen[members.configuration[order[rank < count]]] = True
    return chosen
