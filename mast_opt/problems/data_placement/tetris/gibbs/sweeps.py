"""Gibbs sweeps for large data-placement instances (tetris), after which threads anneal parts of the plan.

The sampler prices cores, storage and GPUs instead of forbidding what exceeds them, so replica repair has to turn its
state into a feasible plan now and then.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.annealing.parallel import ParallelAnnealing
from mast_opt.problems.data_placement.tetris.gibbs import replica_reduced_costs
from mast_opt.problems.data_placement.tetris.gibbs.congestion_prices import congestion_prices_of, update_prices
from mast_opt.problems.data_placement.tetris.gibbs.params import GibbsParams
from mast_opt.problems.data_placement.tetris.gibbs.sampler import GibbsState, gibbs_sweep, learn_cores
from mast_opt.problems.data_placement.tetris.incumbent import Assignment, SearchPlan
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.projections import SINGLE
from mast_opt.problems.data_placement.tetris.replica_repair import repair_replicas
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, excess, state_of
from mast_opt.problems.data_placement.tetris.strategy import usual_share
from mast_opt.problems.search.budget import Throttle, TimeBudget
from mast_opt.problems.search.random_scalar import gumbel

BLOCK = 10_000
"""Workloads or datasets that one call of a kernel looks at."""
NOISES = 1 << 15


class GibbsSweeps:
    """Rounds of one sweep each, and then those of ``annealing``.

    Args:
        refuse: may work be left out?
        unit: mean cost of a workload.
        annealing: what goes on with the plan.
        pace: of the whole search.
    """

    frequent = False
    """True if every better plan is copied, which takes time where plans are large."""

    def __init__(
        self,
        a: TetrisArrays,
        refuse: bool,
        unit: float,
        annealing: ParallelAnnealing,
        pace: TimeBudget,
        rng: np.random.Generator,
        params: GibbsParams,
    ) -> None:
        self._a, self._refuse, self._unit, self._annealing, self._pace = a, refuse, unit, annealing, pace
        self.plans, self.name = annealing.plans, annealing.name
        self._params = params
        gang = usual_share(a.option_mgpu, a.supply)
        self._share = params.share / (1 + params.gang_discount * gang)
        self._sweeps, self._repairing = 0, Throttle()
        self._stiff = min(params.stiffness, params.gang_stiffness / max(gang, 1e-9)) / len(a.cpu)
        self._cores = params.core_stiffness * unit * len(a.tier) / max(int(a.cpu_need.sum()), 1)
        copies = float(a.replica_price.max(axis=1).sum()) or float((a.read_volume * a.remote_price).sum())
        self._storage = params.storage_step * copies / max(int(a.size.sum()), 1)
        self._held, self._new = np.zeros(len(a.cpu)), np.zeros(len(a.cpu))
        self._rise = self._held, self._new
        self._gibbs: GibbsState | None = self._gibbs_state(annealing.plans[0].state, rng)

    def _gibbs_state(self, s: TetrisState, rng: np.random.Generator) -> GibbsState:
        """State of tetris' Gibbs sampler from a search state, with prices of GPUs."""
        a, regions = self._a, len(self._a.cpu)
        gibbs = GibbsState(
            option=s.option.copy(),
            region=s.region.copy(),
            gpus=congestion_prices_of(a, s.demand, self._params.ramp),
            cpu=s.cpu.copy(),
            quota=s.quota.copy(),
            reduced_cost=replica_reduced_costs.reduced_cost_buffers(len(a.size), regions),
            volume=(a.read_volume * a.remote_price).astype(SINGLE),
            held=np.zeros(regions, SINGLE),
            core=np.zeros(regions, SINGLE),
            core_before=np.zeros(regions),
            core_level=self._params.core_level,
            steep=max(self._params.core_steepness, 2 * usual_share(a.cpu_need, a.cpu)),
            refresh=self._params.refresh,
            noise=gumbel(NOISES, regions + 1),
            random=rng.integers(1, 2**63, size=1).astype(np.uint64),
            reads=np.zeros(regions, SINGLE),
            cost=np.zeros(regions + 1, SINGLE),
            least=np.zeros(regions + 1, SINGLE),
        )
        replica_reduced_costs.fill_reduced_costs(a, gibbs.volume, gibbs.region, gibbs.reduced_cost, gibbs.least)
        return gibbs

    def round(self, pool: ThreadPoolExecutor, threads: int, best: Assignment | None) -> None:
        """One Gibbs sweep of tetris, or when those are over a round of annealing."""
        if self._gibbs is not None:
            began = time.perf_counter()
            pool.submit(self._sweep, self._gibbs, self._pace.done / self._share).result()
            if self._sweeps == 1:
                self._share = min(
                    self._share, self._params.most_sweeps / max(self._pace.in_all(time.perf_counter() - began), 1.0)
                )
            if self._pace.done < self._share or self._pace.over():
                return
            self._hand_over(self._gibbs)
        self._annealing.round(pool, threads, best)

    def _sweep(self, b: GibbsState, done: float) -> None:
        """Run one sweep over all workloads at the temperature for this point of the search."""
        a, workloads = self._a, len(self._a.tier)
        params = self._params
        stiffness = self._stiff * params.stiffening**done
        temperature = self._unit * params.hot * (params.cold / params.hot) ** done
        for first in range(0, workloads, BLOCK):
            gibbs_sweep(a, b, first, min(first + BLOCK, workloads), temperature, stiffness, self._cores)
            if self._pace.over():
                return
        update_prices(a, b.gpus, stiffness, 2 * params.learning)
        learn_cores(a, b, self._cores, params.learning)
        self._price_storage(b)
        self._sweeps += 1
        if self._sweeps % params.repair_every == 0 if self._pace.counted else self._repairing.due:
            with self._repairing.doing():
                plan = self._repaired(b)
                if plan.within_limits:
                    self._take(plan)

    def _price_storage(self, b: GibbsState) -> None:
        """Raise or lower prices of storage and of what arrives by what was in use a sweep ago."""
        a, datasets, regions = self._a, len(self._a.size), len(self._a.cpu)
        used, arriving = np.zeros(regions), np.zeros(regions)
        for first in range(0, datasets, BLOCK):
            replica_reduced_costs.change_prices(
                a, b.reduced_cost, first, min(first + BLOCK, datasets), *self._rise, b.least, used, arriving
            )
            if self._pace.over():
                return
        used += np.bincount(b.region, weights=a.output, minlength=regions + 1)[:regions]
        before = self._held, self._new
        self._held = self._raised_price(self._held, used, a.storage)
        self._new = self._raised_price(self._new, arriving, a.ingress)
        self._rise = self._held - before[0], self._new - before[1]
        b.held[:] = self._held

    def _raised_price(self, price: FloatArray, used: FloatArray, limit: Ints) -> FloatArray:
        """Price of storage in tetris' Gibbs sweeps, raised where use is above its level."""
        return np.asarray(
            np.maximum(price + self._storage * (used / np.maximum(limit, 1) - self._params.storage_level), 0.0)
        )

    def _repaired(self, b: GibbsState) -> SearchPlan:
        """The plan of the sampler, with the replicas that are worth their room."""
        a = self._a
        place = np.zeros(a.stored.shape, np.bool_)
        replica_reduced_costs.replicas_of(a, b.reduced_cost, b.least, place)
        s = state_of(a, b.option, b.region, place, 1)
        repair_replicas(a, s)
        return SearchPlan(s, cost(a, s), excess(a, s, self._refuse) == 0)

    def _take(self, plan: SearchPlan) -> None:
        """Take over into Gibbs sweeps the plan of another search."""
        mine = self.plans[0]
        mine.state, mine.cost, mine.within_limits = (
            plan.state._replace(random=mine.state.random),
            plan.cost,
            plan.within_limits,
        )

    def _hand_over(self, b: GibbsState) -> None:
        """Annealing goes on with the plan; where limits are exceeded, it repairs them."""
        self._take(self._repaired(b))
        self._gibbs = None
        self._annealing.pace = self._pace.after(self._share)

    def finish(self, over: Callable[[], bool]) -> None:
        """A last pass of tetris that takes improvements only, until it is ``over``."""
        self._annealing.finish(over)
