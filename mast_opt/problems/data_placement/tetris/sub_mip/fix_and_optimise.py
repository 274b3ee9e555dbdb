"""Fix-and-optimise (large neighbourhood search) of tetris: a few readers with their datasets, or two regions, are free.

For what the annealing does not see: the capacities of links, on which remote reads and copies share the room, and
the caps on earlier terms of a lexicographic objective. A plan that exceeds links is brought back by the
same search, with a price on the excess.

Elastic link capacities in tetris's sub-MIPs: by how much each is exceeded, at a penalty, and what flows over it.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import Bools, DataPlacement
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.sub_mip.params import NeighbourhoodParams
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.transforms import Extension, extended
from mast_opt.problems.search.interface import SearchContext
from mast_opt.problems.search.sub_mip import SubMip

NONE_LEFT = 1e-9
"""Excess, in units of a link's capacity, that counts as none."""


class ElasticLinks:
    """The program with a priced column on every link by which it may be exceeded, in units of its capacity.

    Args:
        excess_price: of exceeding a link by its own capacity.
    """

    def __init__(self, problem: DataPlacement, mip: Mip, excess_price: float) -> None:
        self._problem = problem
        wider = _with_excess(mip)
        self.excess = slice(len(mip.cost), len(wider.cost))
        """The new columns."""
        self.mip = _priced(wider, self.excess, excess_price)
        flows = [block for block in mip.columns if block.name in ("remote_from", "copy") and block.cells is not None]
        nothing = np.zeros(0, np.int64)
        self._flow = np.concatenate([nothing, *(block.ids.ravel() for block in flows)])
        self._carried = np.concatenate([nothing, *(block.cells[-3] for block in flows if block.cells is not None)])
        """[flow columns] the dataset that is read or copied."""
        pairs = [block.cells[-2] * len(problem.regions) + block.cells[-1] for block in flows if block.cells is not None]
        self._along = np.concatenate([nothing, *pairs])
        """[flow columns] source and target."""

    def within(self, x: FloatArray) -> bool:
        """Whether a solution of tetris' sub-MIP exceeds no link."""
        return self.exceeded(x) < NONE_LEFT

    def exceeded(self, x: FloatArray) -> float:
        """Amount by which links of tetris' sub-MIP are exceeded, in units of their capacities."""
        return float(x[self.excess].sum())

    def priced(self, price: float) -> Mip:
        """Tetris' sub-MIP with another price of exceeding a link by its own capacity."""
        return _priced(self.mip, self.excess, price)

    def only_excess(self) -> Mip:
        """Tetris' sub-MIP that minimises the excess and nothing else."""
        cost = np.zeros(len(self.mip.cost))
        cost[self.excess] = 1.0
        return replace(self.mip, cost=cost, offset=0.0)

    def crossing_dataset(self, x: FloatArray, rng: np.random.Generator) -> int | None:
        """A dataset that crosses an exceeded link; None if there is none."""
        p = self._problem
        over = np.flatnonzero(x[self.excess] > NONE_LEFT)
        if p.links is None or not len(over):
            return None
        link = int(rng.choice(over))
        pair = p.links.source[link] * len(p.regions) + p.links.target[link]
        crossing = self._carried[(self._along == pair) & (x[self._flow] > 1e-6)]
        return int(rng.choice(crossing)) if len(crossing) else None


def _with_excess(mip: Mip) -> Mip:
    """The sub-MIP of tetris with a column of excess for each link."""
    link = next((block for block in mip.rows if block.name == "link"), None)
    if link is None or not link.size:
        return mip
    rows, new = link.ids.ravel(), np.arange(link.size) + len(mip.cost)
    capacity = np.maximum(mip.row_upper[rows], 1.0)
    return extended(mip, Extension("excess", columns=link.size, entries=[(rows, new, -capacity)]))


def _priced(mip: Mip, excess: slice, price: float) -> Mip:
    """The sub-MIP of tetris with a price on the excess of links."""
    cost = mip.cost.copy()
    cost[excess] = price
    return replace(mip, cost=cost)


class FreeColumns:
    """The columns ``place``, ``run`` and ``unserved`` of a program, by dataset, workload and region (−1: of none)."""

    def __init__(self, problem: DataPlacement, mip: Mip) -> None:
        self._problem = problem
        self.workload = np.full(len(mip.cost), -1)
        self.dataset, self.region, self.type = (self.workload.copy() for _ in range(3))
        for block in mip.columns:
            ids = block.ids.ravel()
            if block.name == "place":
                self.dataset[ids], self.region[ids] = np.divmod(np.arange(block.size), len(problem.regions))
            elif block.name in ("run", "unserved") and block.cells is not None:
                self.workload[ids] = block.cells[0]
                if block.name == "run":
                    self.region[ids], self.type[ids] = block.cells[1:]

    @property
    def all(self) -> Bools:
        """Mask [columns] of every decision of tetris' sub-MIP."""
        return np.asarray((self.workload >= 0) | (self.dataset >= 0))

    def of(self, plan: Plan) -> FloatArray:
        """[columns] the values that a plan of data gives to the decisions, 0 elsewhere."""
        p = self._problem
        x = np.zeros(len(self.workload))
        x[self.dataset >= 0] = plan.place.ravel()
        run = np.zeros((len(p.workloads) + 1, len(p.regions) + 1, len(p.gpu_types) + 2), np.bool_)
        run[plan.run_workload, plan.run_region, plan.run_type] = True
        work = self.workload >= 0
        x[work] = run[self.workload, self.region, self.type][work]
        out = np.ones(len(p.workloads) + 1, np.bool_)
        out[plan.run_workload] = False
        left = work & (self.region < 0)
        x[left] = out[self.workload][left]
        return x

    def around(self, dataset: int, most: float, rng: np.random.Generator) -> Bools:
        """[columns] those of about ``most`` workloads: readers of the dataset, of what these read, and so on."""
        p = self._problem
        works = np.zeros(len(p.workloads) + 1, np.bool_)
        data = np.zeros(len(p.datasets) + 1, np.bool_)
        while works.sum() < most:
            data[dataset] = True
            readers = rng.permutation(p.reads.workload[p.reads.dataset == dataset])
            works[readers[: max(1, round(most - works.sum()))]] = True
            read = np.unique(p.reads.dataset[works[p.reads.workload]])
            following = read[~data[read]]
            following = following if len(following) else np.flatnonzero(~data[:-1])
            if not len(following):
                break
            dataset = int(rng.choice(following))
        data[np.unique(p.reads.dataset[works[p.reads.workload]])] = True
        return np.asarray(works[self.workload] | data[self.dataset])

    def in_two_regions(self, x: FloatArray, most: float, rng: np.random.Generator) -> Bools:
        """[columns] those of about ``2 · most`` workloads that run in two regions, and of the replicas there."""
        p = self._problem
        near = np.zeros(len(p.regions) + 1, np.bool_)
        near[rng.choice(len(p.regions), 2, replace=False)] = True
        here = self.workload[(self.workload >= 0) & near[self.region] & (x > 0.5)]
        works = np.zeros(len(p.workloads) + 1, np.bool_)
        works[rng.permutation(here)[: 2 * round(most)]] = True
        works[-1] = True  # columns of no workload
        return np.asarray(near[self.region] & works[self.workload])


class FixAndOptimise:
    """The base formulation of a problem, of which parts are solved with the rest held fixed.

    Args:
        objective: what is minimised, and the caps.
        until_s: seconds on the watch at which the search ends; infinite where time has no limit.
        whole: is a solver of integer programs given the whole program first?
    """

    def __init__(
        self,
        problem: DataPlacement,
        tools: SearchContext,
        objective: StageObjective,
        params: NeighbourhoodParams,
        until_s: float = math.inf,
        whole: bool = False,
    ) -> None:
        self._limits, self._whole_first = params, whole
        self._sub_mip, self._integer_sub_mip = SubMip(tools, params.sub_mip), SubMip(tools, params.integer_sub_mip)
        self._problem, self._tools, self._objective, self._until_s = problem, tools, objective, until_s
        self._formulation = base(problem)
        stated = objective.staged(self._formulation.mip)
        self._width = len(stated.cost)
        self._links = ElasticLinks(problem, stated, params.excess_price)
        self._mip = self._links.mip
        self._decisions = FreeColumns(problem, self._mip)
        self._most = float(params.first_workloads)
        self._started = False
        self._reserve_s = 0.0 if math.isinf(self._left_s) else max(0.2, params.reserve * self._left_s)
        self._complete = False
        """True if the whole program has been solved."""

    @property
    def _left_s(self) -> float:
        """Seconds left for tetris' fix-and-optimise."""
        watch = self._tools.watch
        return min(watch.remaining_s, self._until_s - watch.elapsed_s)

    @property
    def _over(self) -> bool:
        """Whether tetris' time for sub-MIPs is over."""
        return self._tools.watch.done or self._left_s <= self._reserve_s

    def _longest_s(self, share: float) -> float:
        """Seconds of a sub-MIP of tetris that may take a share of those left; without a limit, as many as
        neighbourhoods may.
        """
        left_s, own = max(0.05, self._left_s - self._reserve_s), self._limits
        return share * left_s if math.isfinite(left_s) else own.patience * own.sub_mip.time_limit_s

    def _params(self, share: float, start: FloatArray | None = None) -> SolveParams:
        """Limits of a sub-MIP of tetris in that share of the time."""
        return replace(self._sub_mip.limits(start=start), time_limit_s=self._longest_s(share))

    def improve(self, plan: Plan) -> Plan | None:
        """The best plan that tetris' sub-MIPs have found from this one until time is almost over or the search is
        cancelled.

        Without a time limit it ends after ``patience`` neighbourhoods. The plan's shares are rounded and may exceed a
        limit by that. None if nothing was found within the links.
        """
        watch, best, value, failures = self._tools.watch, None, math.inf, 0
        unlimited = math.isinf(self._left_s)
        x = self._begin(plan)
        if x is not None and self._whole_first:
            x = self._whole(x)
        while x is not None:
            if self._links.within(x) and self._mip.objective(x) < value - 1e-9:
                value = self._mip.objective(x)
                best = self._formulation.decode(x[: self._width])
                verdict = verify(self._problem, best)
                if verdict.ok and self._objective.within_caps(verdict):
                    watch.report(objective=self._objective.shown(verdict), plan=partial(_itself, best))
            if self._complete or self._over:
                break
            if unlimited and failures == self._limits.patience:
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
        if x is not None and self._links.exceeded(x) <= self._limits.near_excess:
            x = self._brought_within(x)
        if x is not None and self._links.within(x):
            return x
        staying = self._staying()
        if staying is not None and (x is None or self._links.exceeded(staying) < self._links.exceeded(x)):
            self._complete = False
            return self._with_replicas_held(staying)
        return x

    def _brought_within(self, x: FloatArray) -> FloatArray:
        """A plan (fix-and-optimise in tetris) within the links, from one that is nearly within them, if neighbourhoods
        find it soon.

        The price of the excess rises where a neighbourhood leaves it: a solver's gap may hide what is small.
        """
        left_s, tried, price = self._left_s - self._reserve_s, 0, self._limits.excess_price
        until_s = self._left_s - self._limits.near_share * left_s if math.isfinite(left_s) else -math.inf
        while not (
            self._links.within(x) or self._tools.watch.done or self._left_s < until_s or tried == self._limits.patience
        ):
            before = self._links.exceeded(x)
            x, tried = self._step(x), tried + 1
            if self._links.exceeded(x) >= before:
                price = min(self._limits.excess_growth * price, self._limits.most_excess_price)
                self._mip = self._links.priced(price)
        self._mip = self._links.mip
        return x

    def _with_replicas_held(self, x: FloatArray) -> FloatArray:
        """The best that is found of where work runs, and of what it reads from where, from x and with its replicas."""
        if self._over:
            return x
        held = np.flatnonzero(self._decisions.dataset >= 0)
        program = self._strict(x).fix(held, np.rint(x[held]))
        result = self._sub_mip(program, self._params(self._limits.work_share, x))
        return x if result.x is None else result.x

    def _strict(self, x: FloatArray) -> Mip:
        """Tetris' sub-MIP; from a plan within the links on they may not be exceeded again."""
        if not self._links.within(x):
            return self._mip
        excess = np.arange(self._links.excess.start, self._links.excess.stop)
        return self._mip.fix(excess, np.zeros(len(excess)))

    def _staying(self) -> FloatArray | None:
        """Plan with today's replicas, where those are feasible, that exceeds links least of those found; None where
        none was found in time."""
        if self._over:
            return None
        p = self._problem
        copies = p.datasets.stored.sum(axis=1)
        feasible = (
            (copies >= p.datasets.copies_min)
            & (copies <= p.datasets.copies_max)
            & ~(p.datasets.stored & p.closed).any(axis=1)
        )
        feasible &= ~(p.datasets.pinned & ~p.datasets.stored).any(axis=1)
        held = np.flatnonzero((self._decisions.dataset >= 0) & np.append(feasible, False)[self._decisions.dataset])
        today = p.datasets.stored[self._decisions.dataset[held], self._decisions.region[held]]
        program = self._links.only_excess().fix(held, today.astype(np.float64))
        return self._sub_mip(program, self._params(self._limits.today_share)).x

    def _step(self, x: FloatArray) -> FloatArray:
        """The best that tetris' sub-MIP has found around x in one neighbourhood, which may be x."""
        better = self._solve(self._strict(x), x, self._decisions.all & ~self._free(x))
        return x if better is None or self._mip.objective(better) >= self._mip.objective(x) else better

    def _solve(self, mip: Mip, x: FloatArray, held: Bools) -> FloatArray | None:
        """Solution of tetris' sub-MIP with some columns held at their values in x; None if nothing was
        found in time.
        """
        own = self._limits
        fixed = np.flatnonzero(held)
        longest_s = max(0.05, min(own.sub_mip.time_limit_s, self._left_s - self._reserve_s))
        params = replace(self._sub_mip.limits(start=x if self._started else None), time_limit_s=longest_s)
        result = self._sub_mip(mip.fix(fixed, np.rint(x[fixed])), params)
        self._started = self._started or result.x is not None
        solved = result.status is Status.OPTIMAL
        self._complete = solved and not len(fixed)
        grown = self._most * (own.growth if solved else 1 / own.growth)
        self._most = float(np.clip(grown, own.least_workloads, max(own.least_workloads, len(self._problem.workloads))))
        return result.x

    def _whole(self, x: FloatArray) -> FloatArray:
        """The best (fix-and-optimise in tetris) that a solver of integer programs finds of the whole program from x."""
        if self._over:
            return x
        own = self._limits
        longest_s = min(self._longest_s(own.whole_share), own.integer_sub_mip.time_limit_s)
        limits = self._integer_sub_mip.limits(gap=self._tools.watch.stop.gap, start=x)
        try:
            result = self._integer_sub_mip(self._mip, replace(limits, time_limit_s=longest_s))
        except BackendError:  # such as amounts too large for it; the plan so far stands
            return x
        self._complete = result.status is Status.OPTIMAL
        return x if result.x is None else result.x

    def _free(self, x: FloatArray) -> Bools:
        """[columns] columns of tetris' sub-MIP that may change, around what crosses a link beyond its capacity if
        anything does.
        """
        p, rng = self._problem, self._tools.rng
        if self._most >= len(p.workloads):
            return np.ones(len(x), np.bool_)
        if rng.random() < self._limits.two_regions and len(p.regions) > 2:
            return self._decisions.in_two_regions(x, self._most, rng)
        crossing_dataset = self._links.crossing_dataset(x, rng)
        dataset = int(rng.integers(len(p.datasets))) if crossing_dataset is None else crossing_dataset
        return self._decisions.around(dataset, self._most, rng)


def _itself(plan: Plan) -> Plan:
    """The plan itself, for the monitor of tetris' fix-and-optimise, which asks for a function."""
    return plan
