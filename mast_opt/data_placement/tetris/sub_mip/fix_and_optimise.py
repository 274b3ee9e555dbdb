"""Fix-and-optimise (large neighbourhood search) of tetris: a few readers with their datasets, or two regions, are free.

For what the annealing does not see: the capacities of links, on which remote reads and copies share the room, and
the caps on earlier terms of a lexicographic objective. A plan that exceeds links is brought back by the
same search, with a price on the excess.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.data_placement.formulation.formulation import base
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import Bools, DataPlacement
from mast_opt.data_placement.tetris.params import LINKED
from mast_opt.data_placement.tetris.stage_objective import StageObjective
from mast_opt.data_placement.tetris.sub_mip.elastic_links import EXCESS, ElasticLinks
from mast_opt.data_placement.tetris.sub_mip.free_columns import FreeColumns
from mast_opt.data_placement.tetris.sub_mip.workloads_only import share_before, workloads_only
from mast_opt.data_placement.verification.verifier import verify
from mast_opt.mip import Mip
from mast_opt.search.interface import SearchContext

SMALL = 20_000
"""Reads times regions up to which neighbourhoods are better than more annealing, where earlier terms have caps. Without
caps and links they find nothing that annealing does not."""
BEFORE_LINKS, BEFORE_LATER = 0.3, 0.2
"""Share of the time that is annealed before: where links are limited, as if they were not; and where earlier terms have
caps, which few changes of one or two workloads stay within."""
WHOLE, BEFORE_WHOLE = 600, 0.3
"""Reads times regions up to which a program of whole decisions without remote reads is solved as one, and the share of
the time before."""
WHOLE_LATER = 2_500
"""The same where remote reads have a price and earlier terms have caps, which leaves little freedom."""
FOR_WHOLE = 0.7
"""Share of the time left that the whole program may take."""
NEAR, FOR_NEAR = 10.0, 0.4
"""Excess, in units of links' capacities, up to which neighbourhoods are let bring a plan within the links, and the
share of the time left that they may take."""
EXCESS_GROWTH, MOST_EXCESS = 10.0, 1e6
"""Times that the excess is priced after a neighbourhood that left it, and the highest price."""
FOR_STAYING = 0.5
"""Share of the time left that may go to finding any plan within the links, with replicas where they are today."""
FOR_WORK = 0.4
"""Share of the time left that may go to placing all work with those replicas."""
SECONDS = 2.0
"""For one neighbourhood."""
FIRST, FEWEST, GROWTH = 6, 2, 1.1
"""Workloads that a neighbourhood frees at first and at least; more after one that was solved in time, fewer after
one that was not."""
PATIENCE = 50
"""Neighbourhoods in a row without an improvement that end the search where there is no time limit; the whole program
then takes no longer than they may."""
BY_REGIONS = 0.25
"""Share of the neighbourhoods that free two regions."""
RESERVE = 0.1
"""Share of the time that is reserved for completing the plan."""


def sub_mip_applicable(problem: DataPlacement, objective: StageObjective) -> bool:
    """Should a part of the time go to neighbourhoods?"""
    reads = len(problem.read_workload)
    if problem.links is not None:
        return reads * len(problem.links.source) <= LINKED
    if objective.caps:
        return reads * len(problem.regions) <= SMALL
    return solve_full_mip(problem, objective)


def search_seconds_before_sub_mips(problem: DataPlacement, objective: StageObjective, left_s: float) -> float:
    """Seconds of those left that are better annealed; the rest is for what is solved exactly."""
    if workloads_only(problem, objective):
        return share_before(problem) * left_s
    if not sub_mip_applicable(problem, objective):
        return left_s
    if problem.links is not None:
        return BEFORE_LINKS * left_s
    return (BEFORE_LATER if objective.caps and problem.remote_reads else BEFORE_WHOLE) * left_s


def solve_full_mip(problem: DataPlacement, objective: StageObjective) -> bool:
    """Is the whole program one for a solver of integer programs? Then that beats every search."""
    if problem.links is not None or problem.splittable.any() or (problem.remote_reads and not objective.caps):
        return False
    return len(problem.read_workload) * len(problem.regions) <= (WHOLE_LATER if problem.remote_reads else WHOLE)


class FixAndOptimise:
    """The base formulation of a problem, of which parts are solved with the rest held fixed.

    Args:
        objective: what is minimised, and the caps.
        until_s: seconds on the watch at which the search ends; infinite where time has no limit.
    """

    def __init__(
        self, problem: DataPlacement, tools: SearchContext, objective: StageObjective, until_s: float = math.inf
    ) -> None:
        self._problem, self._tools, self._objective, self._until_s = problem, tools, objective, until_s
        self._formulation = base(problem)
        stated = objective.staged(self._formulation.mip)
        self._width = len(stated.cost)
        self._links = ElasticLinks(problem, stated)
        self._mip = self._links.mip
        self._decisions = FreeColumns(problem, self._mip)
        self._most = float(FIRST)
        self._started = False
        self._reserve_s = 0.0 if math.isinf(self._left_s) else max(0.2, RESERVE * self._left_s)
        self._complete = False
        """Has the whole program been solved?"""

    @property
    def _left_s(self) -> float:
        watch = self._tools.watch
        return min(watch.remaining_s, self._until_s - watch.elapsed_s)

    @property
    def _over(self) -> bool:
        return self._tools.watch.done or self._left_s <= self._reserve_s

    def _params(self, share: float, start: FloatArray | None = None) -> SolveParams:
        """For a program that may take a share of the time left; without a limit, as long as neighbourhoods may."""
        left_s = max(0.05, self._left_s - self._reserve_s)
        return SolveParams(
            time_limit_s=share * left_s if math.isfinite(left_s) else PATIENCE * SECONDS,
            gap=1e-4,
            threads=1,
            start=start,
            cancel=self._tools.watch.stop.cancel,
        )

    def improve(self, plan: Plan) -> Plan | None:
        """The best plan found from this one until time is almost over or the search is cancelled.

        Without a time limit it ends after ``PATIENCE`` neighbourhoods. The plan's shares are rounded and may exceed a
        limit by that. None if nothing was found within the links.
        """
        watch, best, value, failures = self._tools.watch, None, math.inf, 0
        unlimited = math.isinf(self._left_s)
        x = self._begin(plan)
        if x is not None and solve_full_mip(self._problem, self._objective):
            x = self._whole(x)
        while x is not None:
            if self._links.within(x) and self._mip.objective(x) < value - 1e-9:
                value = self._mip.objective(x)
                best = self._formulation.decode(x[: self._width])
                verdict = verify(self._problem, best)
                if verdict.ok and self._objective.within_caps(verdict):
                    watch.report(objective=self._objective.shown(verdict))
            if self._complete or self._over:
                break
            if unlimited and failures == PATIENCE:
                break
            better = self._step(x)
            failures = 0 if self._mip.objective(x) - self._mip.objective(better) > 1e-9 else failures + 1
            x = better
        return best

    def _begin(self, plan: Plan) -> FloatArray | None:
        """The plan's columns; where its replicas leave reads without a link, with other replicas.

        Where it exceeds links by much, or reads where no link leads, a plan that does not is looked for among those
        that leave all data where it is; then the best of those.
        """
        chosen = self._decisions.of(plan)
        x = self._solve(self._mip, chosen, self._decisions.all)
        x = self._solve(self._mip, chosen, self._decisions.workload >= 0) if x is None else x
        if x is not None and self._links.exceeded(x) <= NEAR:
            x = self._brought_within(x)
        if x is not None and self._links.within(x):
            return x
        staying = self._staying()
        if staying is not None and (x is None or self._links.exceeded(staying) < self._links.exceeded(x)):
            self._complete = False
            return self._with_replicas_held(staying)
        return x

    def _brought_within(self, x: FloatArray) -> FloatArray:
        """From a plan that is nearly within the links to one that is, if neighbourhoods find it soon.

        The price of the excess rises where a neighbourhood leaves it: a solver's gap may hide what is small.
        """
        left_s, tried, price = self._left_s - self._reserve_s, 0, EXCESS
        until_s = self._left_s - FOR_NEAR * left_s if math.isfinite(left_s) else -math.inf
        while not (self._links.within(x) or self._tools.watch.done or self._left_s < until_s or tried == PATIENCE):
            before = self._links.exceeded(x)
            x, tried = self._step(x), tried + 1
            if self._links.exceeded(x) >= before:
                price = min(EXCESS_GROWTH * price, MOST_EXCESS)
                self._mip = self._links.priced(price)
        self._mip = self._links.mip
        return x

    def _with_replicas_held(self, x: FloatArray) -> FloatArray:
        """The best that is found of where work runs, and of what it reads from where, from x and with its replicas."""
        if self._over:
            return x
        held = np.flatnonzero(self._decisions.dataset >= 0)
        program = self._strict(x).fix(held, np.rint(x[held]))
        result = self._tools.mip_solver(program, self._params(FOR_WORK, x))
        return x if result.x is None else result.x

    def _strict(self, x: FloatArray) -> Mip:
        """The program; from a plan within the links on they may not be exceeded again."""
        if not self._links.within(x):
            return self._mip
        excess = np.arange(self._links.excess.start, self._links.excess.stop)
        return self._mip.fix(excess, np.zeros(len(excess)))

    def _staying(self) -> FloatArray | None:
        """Of the plans with today's replicas wherever those are feasible, the one found that exceeds links least; None
        where none was found in time."""
        if self._over:
            return None
        p = self._problem
        copies = p.stored.sum(axis=1)
        feasible = (copies >= p.copies_min) & (copies <= p.copies_max) & ~(p.stored & p.closed).any(axis=1)
        feasible &= ~(p.pinned & ~p.stored).any(axis=1)
        held = np.flatnonzero((self._decisions.dataset >= 0) & np.append(feasible, False)[self._decisions.dataset])
        today = p.stored[self._decisions.dataset[held], self._decisions.region[held]]
        program = self._links.only_excess().fix(held, today.astype(np.float64))
        return self._tools.mip_solver(program, self._params(FOR_STAYING)).x

    def _step(self, x: FloatArray) -> FloatArray:
        """The best that is found around x in one neighbourhood, which may be x."""
        better = self._solve(self._strict(x), x, self._decisions.all & ~self._free(x))
        return x if better is None or self._mip.objective(better) >= self._mip.objective(x) else better

    def _solve(self, mip: Mip, x: FloatArray, held: Bools) -> FloatArray | None:
        """A program with some columns held at their values in x; None if nothing was found in time."""
        tools = self._tools
        fixed = np.flatnonzero(held)
        params = SolveParams(
            time_limit_s=max(0.05, min(SECONDS, self._left_s - self._reserve_s)),
            gap=1e-4,
            threads=1,
            start=x if self._started else None,
            cancel=tools.watch.stop.cancel,
        )
        result = tools.mip_solver(mip.fix(fixed, np.rint(x[fixed])), params)
        self._started = self._started or result.x is not None
        solved = result.status is Status.OPTIMAL
        self._complete = solved and not len(fixed)
        grown = self._most * (GROWTH if solved else 1 / GROWTH)
        self._most = float(np.clip(grown, FEWEST, max(FEWEST, len(self._problem.workloads))))
        return result.x

    def _whole(self, x: FloatArray) -> FloatArray:
        """The best that a solver of integer programs finds of the whole program from x."""
        tools = self._tools
        if tools.integer_solver is None or self._over:
            return x
        params = replace(self._params(FOR_WHOLE, x), gap=tools.watch.stop.gap, threads=tools.threads)
        try:
            result = tools.integer_solver(self._mip, params)
        except BackendError:  # such as amounts too large for it; the plan so far stands
            return x
        self._complete = result.status is Status.OPTIMAL
        return x if result.x is None else result.x

    def _free(self, x: FloatArray) -> Bools:
        """[columns] those that may change, around what crosses a link beyond its capacity if anything does."""
        p, rng = self._problem, self._tools.rng
        if self._most >= len(p.workloads):
            return np.ones(len(x), np.bool_)
        if rng.random() < BY_REGIONS and len(p.regions) > 2:
            return self._decisions.in_two_regions(x, self._most, rng)
        crossing_dataset = self._links.crossing_dataset(x, rng)
        dataset = int(rng.integers(len(p.datasets))) if crossing_dataset is None else crossing_dataset
        return self._decisions.around(dataset, self._most, rng)
