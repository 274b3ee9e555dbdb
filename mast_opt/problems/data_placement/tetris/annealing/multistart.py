"""Multistart annealing of tetris for small instances: every thread anneals its own plans from randomised starts."""

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris import initial_solution
from mast_opt.problems.data_placement.tetris.annealing.beam_packing import largest_first, pack
from mast_opt.problems.data_placement.tetris.annealing.cooling_schedule import Cooling
from mast_opt.problems.data_placement.tetris.annealing.kernel import KernelRuns
from mast_opt.problems.data_placement.tetris.annealing.params import MultistartParams
from mast_opt.problems.data_placement.tetris.decomposition import undivided
from mast_opt.problems.data_placement.tetris.incumbent import Assignment, SearchPlan, decisions
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.state import state_of
from mast_opt.problems.search.budget import ROUNDS, TimeBudget


class RestartGenerator:
    """Start plans of the coolings.

    Args:
        first: the plan that is nearest to today's.
        refuse: may work be left out?
        unit: mean cost of a workload.
        temperature_scale: how much hotter than usual first temperatures are, but for those after packing.
    """

    def __init__(
        self,
        a: TetrisArrays,
        first: Assignment,
        refuse: bool,
        unit: float,
        temperature_scale: float,
        params: MultistartParams,
    ) -> None:
        self._a, self._first, self._refuse, self._unit, self._params = a, first, refuse, unit, params
        self._after_packing = params.packed / temperature_scale
        self._repacked = None, 1.0, params.repacked, 0.0
        self._gangs = largest_first(a)
        self._today = initial_solution.feasible_replicas(a)

    def begin(self, number: int, best: Assignment | None, rng: np.random.Generator) -> tuple[Assignment, float]:
        """Assignment from which tetris begins the cooling of that number, and its temperature relative to the usual.

        Args:
            best: the best plan so far.
        """
        if not len(self._gangs):
            return self._without_packing(number, rng)
        lap, position = divmod(number, len(self._repacked))
        share = self._repacked[position]
        if share is None:
            return self._without_packing(lap, rng)
        packed = rng.random(len(self._gangs)) < (1.0 if best is None else share)
        return self._packed(best or self._first, packed, rng), self._after_packing

    def _without_packing(self, number: int, rng: np.random.Generator) -> tuple[Assignment, float]:
        """A start of tetris' multistart annealing without packing, and its temperature."""
        hot = self._params.unpacked
        turn = number % len(hot)
        if turn != self._params.scattered:
            return self._first, hot[turn]
        return decisions(initial_solution.randomised_state(self._a, self._refuse, rng)), hot[turn]

    def _packed(self, plan: Assignment, packed: Bools, rng: np.random.Generator) -> Assignment:
        """A plan of tetris with some of its gangs packed again, and all other work, in random order, where it costs
        least with this data.
        """
        a, regions = self._a, len(self._a.cpu)
        option, region = a.option_start[:-1].copy(), np.full(len(a.tier), regions)
        held, loose = self._gangs[~packed], self._gangs[packed]
        option[held], region[held] = plan.option[held], plan.region[held]
        if len(loose):
            self._pack(option, region, loose, rng)
        others = rng.permutation(np.flatnonzero(region == regions))
        return decisions(initial_solution.greedy_state(a, option, region, self._today, others, self._refuse))

    def _pack(self, option: Ints, region: Ints, loose: Ints, rng: np.random.Generator) -> None:
        """Write the places of these gangs of tetris' multistart in one of the packings, drawn at random."""
        params = self._params
        width, even = (math.exp(rng.uniform(*np.log(ends))) for ends in (params.beam_width, params.evenness))
        noise, random = params.noise * self._unit * rng.random(), rng.integers(1, 2**63, size=1).astype(np.uint64)
        others = state_of(self._a, option, region, self._today, 1)
        packings = pack(self._a, others, loose, round(width), even, noise, random)
        weight = np.exp((packings.cost.min() - packings.cost) / (params.choice * self._unit))
        chosen = rng.choice(len(weight), p=weight / weight.sum())
        packed = packings.region[chosen] >= 0
        option[loose[packed]], region[loose[packed]] = packings.option[chosen, packed], packings.region[chosen, packed]


def changes_of(workloads: int, params: MultistartParams, slice_changes: int, coolings: int = 0) -> int:
    """Number of changes of a cooling after that many coolings; at least a slice."""
    usual = max(params.changes * workloads, slice_changes)
    for_size, for_time = workloads / params.longer_from_workloads, coolings / params.longer_from_coolings
    return int(usual * max(1.0, for_size) * max(1.0, for_time))


def rounds_for(workloads: int, params: MultistartParams, slice_changes: int) -> int:
    """Number of rounds where neither a time limit nor a number is given: as many changes as on larger instances."""
    return max(1, ROUNDS * slice_changes // changes_of(workloads, params, slice_changes))


class MultistartAnnealing:
    """Rounds in which every thread cools a plan of its own, from beginning to end.

    Args:
        restarts: what the coolings begin from.
    """

    name = "plans at a time"
    frequent = True
    """True where every better plan is kept."""

    def __init__(
        self,
        a: TetrisArrays,
        restarts: RestartGenerator,
        plans: list[SearchPlan],
        slices: KernelRuns,
        cooling: Cooling,
        pace: TimeBudget,
        rng: np.random.Generator,
        params: MultistartParams,
    ) -> None:
        self._a, self._slices, self._cooling, self._pace, self._rng = a, slices, cooling, pace, rng
        self._params = params
        self._workloads = len(a.tier)
        self._restarts = restarts
        self.plans = plans
        self.coolings = 0
        """Number of coolings that have begun."""

    def round(self, pool: ThreadPoolExecutor, threads: int, best: Assignment | None) -> None:
        """Cool every plan of tetris once; shorter where time is short."""
        changes = changes_of(self._workloads, self._params, self._slices.params.slice_changes, self.coolings)
        if self._pace.rounds_left < 2:
            changes = max(self._params.least_changes, int(changes * min(1.0, self._pace.rounds_left)))
        work: list[Future[None]] = []
        for thread in range(threads):
            rng = np.random.default_rng(self._rng.integers(2**63))
            work.append(pool.submit(self._cool, thread, self.coolings, best, rng, changes))
            self.coolings += 1
        for running in work:
            running.result()

    def _cool(self, thread: int, cooling: int, best: Assignment | None, rng: np.random.Generator, changes: int) -> None:
        """Run one cooling of a thread's plan in tetris, from its start plan."""
        plan, over = self.plans[thread], self._pace.over
        beginning, times = self._restarts.begin(cooling, best, rng)
        plan.go_to(self._a, beginning)
        finish = self._cooling.params.finish
        number = math.ceil((1 - finish) * changes / self._slices.params.slice_changes)
        edges = [self._cooling.within((1 - finish) * edge / number, times) for edge in range(number)]
        part = undivided(self._a, plan.state)
        steps = int((1 - finish) * changes / number)
        plan.cost += self._slices.run(thread, part, steps, zip(edges, [*edges[1:], self._cooling.coldest]), over)
        plan.cost += self._slices.run(thread, part, int(finish * changes), [(0.0, 0.0)], over)

    def finish(self, over: Callable[[], bool]) -> None:
        """Do nothing: every cooling of tetris is finished when its round ends."""
