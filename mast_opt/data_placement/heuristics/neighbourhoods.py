"""Large neighbourhoods: a few readers with their datasets, or two regions, solved exactly with the rest held.

For what the annealing does not see: the capacities of links, on which remote reads and copies share the room. A plan
that exceeds them is brought back by the same search, with a price on the excess.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.data_placement.formulation import base
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import Bools, DataPlacement
from mast_opt.data_placement.verify import verify
from mast_opt.errors import BackendError
from mast_opt.mip import FloatArray, Mip
from mast_opt.mip.extending import Extension, extended
from mast_opt.result import SolveParams, Status
from mast_opt.search import Tools

SMALL, LARGEST = 20_000, 1_000_000
"""Reads times regions, or times links, up to which neighbourhoods are better than more annealing."""
BEFORE, WHOLLY, BEFORE_LINKS = (0.2, 0.5), 30_000, 0.3
"""Share of the time that is annealed before: reads times regions over this number, between these; where links are
limited, as if they were not."""
BEFORE_BOUND = 0.8
"""The same where remote reads are forbidden: trades of datasets leave little to be found."""
WHOLE, BEFORE_WHOLE = 600, 0.3
"""Reads times regions up to which a program of whole decisions is solved as one, and the share of the time before."""
FOR_WHOLE = 0.7
"""Share of the time left that the whole program may take."""
SECONDS = 2.0
"""For one neighbourhood."""
FIRST, FEWEST, GROWTH = 6, 2, 1.1
"""Workloads that a neighbourhood frees at first and at least; more after one that was solved in time, fewer after
one that was not."""
FRUITLESS = 50
"""Neighbourhoods in a row without an improvement that end the search where there is no time limit; the whole program
then takes no longer than they may."""
RESERVE = 0.1
"""Share of the time that is kept for settling shares exactly."""
EXCESS = 100.0
"""Price of exceeding a link by its own capacity."""
BY_REGIONS = 0.25
"""Share of the neighbourhoods that free two regions."""


def worthwhile(problem: DataPlacement) -> bool:
    """Should a part of the time go to neighbourhoods?"""
    reads = len(problem.read_workload)
    if problem.objective.lexicographic:
        return False
    if problem.links is not None:
        return reads * len(problem.links.source) <= LARGEST
    return reads * len(problem.regions) <= SMALL


def share_before(problem: DataPlacement) -> float:
    """Share of the time that is better annealed, where neighbourhoods follow: on small instances that soon ends."""
    if problem.links is not None:
        return BEFORE_LINKS
    if not problem.remote_reads:
        return BEFORE_WHOLE if solved_whole(problem) else BEFORE_BOUND
    size = len(problem.read_workload) * len(problem.regions)
    return float(np.clip(size / WHOLLY, *BEFORE))


def solved_whole(problem: DataPlacement) -> bool:
    """Is the whole program one for a solver of integer programs? Then that beats every search."""
    whole = problem.links is None and not problem.remote_reads and not problem.splittable.any()
    return whole and len(problem.read_workload) * len(problem.regions) <= WHOLE


class Neighbourhoods:
    """The base formulation of a problem, of which parts are solved with the rest held fixed."""

    def __init__(self, problem: DataPlacement, tools: Tools) -> None:
        self._problem, self._tools = problem, tools
        self._formulation = base(problem)
        width = len(self._formulation.mip.cost)
        self._mip = _with_excess(self._formulation.mip)
        self._excess = slice(width, len(self._mip.cost))
        self._workload = np.full(len(self._mip.cost), -1)
        self._dataset, self._region, self._type = (self._workload.copy() for _ in range(3))
        for block in self._mip.columns:
            ids = block.ids.ravel()
            if block.name == "place":
                self._dataset[ids], self._region[ids] = np.divmod(np.arange(block.size), len(problem.regions))
            elif block.name in ("run", "unserved") and block.cells is not None:
                self._workload[ids] = block.cells[0]
                if block.name == "run":
                    self._region[ids], self._type[ids] = block.cells[1:]
        flows = [
            block for block in self._mip.columns if block.name in ("remote_from", "copy") and block.cells is not None
        ]
        nothing = np.zeros(0, np.int64)
        self._flow = np.concatenate([nothing, *(block.ids.ravel() for block in flows)])
        self._carried = np.concatenate([nothing, *(block.cells[-3] for block in flows if block.cells is not None)])
        """[flow columns] the dataset that is read or copied."""
        pairs = [block.cells[-2] * len(problem.regions) + block.cells[-1] for block in flows if block.cells is not None]
        self._along = np.concatenate([nothing, *pairs])
        """[flow columns] source and target."""
        self._decisions = (self._workload >= 0) | (self._dataset >= 0)
        self._most = float(FIRST)
        self._started = False
        self._reserve_s = 0.0
        self._complete = False
        """Has the whole program been solved?"""

    def improve(self, plan: Plan) -> Plan | None:
        """The best plan found from this one until time is almost over or the search is cancelled.

        Without a time limit it ends after ``FRUITLESS`` neighbourhoods. The plan's shares are rounded and may exceed a
        limit by that. None if nothing was found that keeps the limits of links.
        """
        watch, best, value, fruitless = self._tools.watch, None, np.inf, 0
        unlimited = np.isinf(watch.remaining_s)
        self._reserve_s = 0.0 if unlimited else max(0.2, RESERVE * watch.remaining_s)
        x = self._begin(plan)
        if x is not None and solved_whole(self._problem):
            x = self._whole(x)
        while x is not None:
            if x[self._excess].sum() < 1e-9 and self._mip.objective(x) < value - 1e-9:
                value = self._mip.objective(x)
                best = self._formulation.decode(x[: self._excess.start])
                verdict = verify(self._problem, best)
                if verdict.ok:
                    watch.report(objective=verdict.objective)
            if self._complete or watch.done or watch.remaining_s < self._reserve_s:
                break
            if unlimited and fruitless == FRUITLESS:
                break
            better = self._solve(x, self._decisions & ~self._free(x))
            saved = 0.0 if better is None else self._mip.objective(x) - self._mip.objective(better)
            fruitless = 0 if saved > 1e-9 else fruitless + 1
            if better is not None and saved > 0:
                x = better
        return best

    def _begin(self, plan: Plan) -> FloatArray | None:
        """The plan's columns; where its replicas leave reads without a link, with other replicas."""
        chosen = self._chosen(plan)
        x = self._solve(chosen, self._decisions)
        return self._solve(chosen, self._workload >= 0) if x is None else x

    def _chosen(self, plan: Plan) -> FloatArray:
        """Values of the columns that are decisions."""
        p = self._problem
        x = np.zeros(len(self._mip.cost))
        x[self._dataset >= 0] = plan.place.ravel()
        run = np.zeros((len(p.workloads) + 1, len(p.regions) + 1, len(p.gpu_types) + 2), np.bool_)
        run[plan.run_workload, plan.run_region, plan.run_type] = True
        work = self._workload >= 0
        x[work] = run[self._workload, self._region, self._type][work]
        out = np.ones(len(p.workloads) + 1, np.bool_)
        out[plan.run_workload] = False
        left = work & (self._region < 0)
        x[left] = out[self._workload][left]
        return x

    def _solve(self, x: FloatArray, held: Bools) -> FloatArray | None:
        """The program with some columns held at their values in x; None if nothing was found in time."""
        tools = self._tools
        fixed = np.flatnonzero(held)
        params = SolveParams(
            time_limit_s=max(0.05, min(SECONDS, tools.watch.remaining_s - self._reserve_s)),
            gap=1e-4,
            threads=1,
            start=x if self._started else None,
            cancel=tools.watch.stop.cancel,
        )
        result = tools.mip_solver(self._mip.fix(fixed, np.rint(x[fixed])), params)
        self._started = self._started or result.x is not None
        solved = result.status is Status.OPTIMAL
        self._complete = solved and not len(fixed)
        grown = self._most * (GROWTH if solved else 1 / GROWTH)
        self._most = float(np.clip(grown, FEWEST, max(FEWEST, len(self._problem.workloads))))
        return result.x

    def _whole(self, x: FloatArray) -> FloatArray:
        """The best that the solver for integer programs finds of the whole program from x."""
        tools = self._tools
        left_s = tools.watch.remaining_s - self._reserve_s
        if tools.integer_solver is None or tools.watch.done or left_s <= 0:
            return x
        params = SolveParams(
            time_limit_s=FOR_WHOLE * left_s if np.isfinite(left_s) else FRUITLESS * SECONDS,
            gap=tools.watch.stop.gap,
            threads=tools.threads,
            start=x,
            cancel=tools.watch.stop.cancel,
        )
        try:
            result = tools.integer_solver(self._mip, params)
        except BackendError:  # such as amounts too large for it; the plan so far stands
            return x
        self._complete = result.status is Status.OPTIMAL
        return x if result.x is None else result.x

    def _free(self, x: FloatArray) -> Bools:
        """[columns] those that may change."""
        p, rng = self._problem, self._tools.rng
        if self._most >= len(p.workloads):
            return np.ones(len(x), np.bool_)
        works = np.zeros(len(p.workloads) + 1, np.bool_)
        if rng.random() < BY_REGIONS and len(p.regions) > 2:
            near = np.zeros(len(p.regions) + 1, np.bool_)
            near[rng.choice(len(p.regions), 2, replace=False)] = True
            here = self._workload[(self._workload >= 0) & near[self._region] & (x > 0.5)]
            works[rng.permutation(here)[: 2 * round(self._most)]] = True
            works[-1] = True  # columns of no workload
            return np.asarray(near[self._region] & works[self._workload])
        data = np.zeros(len(p.datasets) + 1, np.bool_)
        dataset = self._seed(x)
        while works.sum() < self._most:
            data[dataset] = True
            readers = rng.permutation(p.read_workload[p.read_dataset == dataset])
            works[readers[: max(1, round(self._most - works.sum()))]] = True
            read = np.unique(p.read_dataset[works[p.read_workload]])
            following = read[~data[read]]
            following = following if len(following) else np.flatnonzero(~data[:-1])
            if not len(following):
                break
            dataset = int(rng.choice(following))
        data[np.unique(p.read_dataset[works[p.read_workload]])] = True
        return np.asarray(works[self._workload] | data[self._dataset])

    def _seed(self, x: FloatArray) -> int:
        """A dataset to begin with: one that crosses a link beyond its capacity, where there is any."""
        p, rng = self._problem, self._tools.rng
        over = np.flatnonzero(x[self._excess] > 1e-9)
        if p.links is not None and len(over):
            link = int(rng.choice(over))
            pair = p.links.source[link] * len(p.regions) + p.links.target[link]
            crossing = self._carried[(self._along == pair) & (x[self._flow] > 1e-6)]
            if len(crossing):
                return int(rng.choice(crossing))
        return int(rng.integers(len(p.datasets)))


def _with_excess(mip: Mip) -> Mip:
    """The program with a priced column on every link by which it may be exceeded, in units of its capacity."""
    link = next((block for block in mip.rows if block.name == "link"), None)
    if link is None or not link.size:
        return mip
    rows, new = link.ids.ravel(), np.arange(link.size) + len(mip.cost)
    capacity = np.maximum(mip.row_upper[rows], 1.0)
    wider = extended(mip, Extension("excess", columns=link.size, entries=[(rows, new, -capacity)]))
    cost = wider.cost.copy()
    cost[new] = EXCESS
    return replace(wider, cost=cost)
