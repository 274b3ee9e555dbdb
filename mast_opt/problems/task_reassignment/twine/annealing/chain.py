"""Annealing chain of twine: one search, with its assignment, its temperature, and costs at that temperature."""

import math

import numpy as np

from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine import state as state_arrays
from mast_opt.problems.task_reassignment.twine.annealing.kernel import OperatorShares, anneal
from mast_opt.problems.task_reassignment.twine.annealing.racing import Runner
from mast_opt.problems.task_reassignment.twine.instance_arrays import Floats, Small, TwineArrays
from mast_opt.problems.task_reassignment.twine.operators.set_exchange import exchange_sets
from mast_opt.problems.task_reassignment.twine.params import TwineParams


class Chain:
    """Annealing chain: one search from an assignment, with a random generator of its own."""

    def __init__(
        self,
        problem: TaskReassignment,
        fleet: TwineArrays,
        begin: Ints,
        rng: np.random.Generator,
        params: TwineParams,
        away: float = 0.0,
    ) -> None:
        """Begin with the assignment ``begin``; ``stay_near``, ``heat`` or ``reheat`` comes before the first round.

        Args:
            away: price of a process that is not on today's machine, in temperatures, but in ``stay_near``.
        """
        self._problem, self._fleet, self._rng, self._initial = problem, fleet, rng, begin
        self._params, self._cooling, self._prices = params, params.cooling, params.prices
        self._usual_away = away
        self._stand(begin)
        self.runner: Runner | None = None
        """Runner of a cooling that races."""
        self._from_hot = False
        self._sizes = fleet.size[fleet.by_size]
        self._hot = max(self._cooling.first_temperature * float(self._sizes[0]), 1.0)
        self.best: Small = self._state.machine.copy()
        """[P] the cheapest assignment without excess and broken rules, else the one it began with."""
        self._best_cost: Floats = np.array([self._state.total[state_arrays.COST]])
        if self._state.total[1:].any():
            self._best_cost[0] = np.inf

    def _stand(self, machine: Ints) -> None:
        """Go to an assignment, with everything counted from scratch."""
        self._state: state_arrays.TwineState = state_arrays.state_of(self._problem, self._fleet, machine, self._rng)
        self._untracked = state_arrays.untracked_violations(self._problem, machine)

    @property
    def cost(self) -> float:
        """Cost of ``best``; infinite while nothing was found that breaks no rule."""
        return float(self._best_cost[0])

    @property
    def lost(self) -> bool:
        """Whether the cooling has come to a broken rule, while the best known costs more than a few changes could.

        A cooling that was given up on the way is not lost.
        """
        broken = bool(self._state.total[1:].any()) and not self._behind
        return broken and float(self._state.total[state_arrays.COST]) < (1 - self._prices.lost_share) * self.cost

    @property
    def _behind(self) -> bool:
        """Whether the cooling has fallen behind in its race."""
        return self.runner is not None and self.runner.behind

    def adopt(self, machine: Small, cost: float) -> None:
        """Take over a cheaper assignment that another search found."""
        if cost < self.cost:
            self.best = machine.copy()
            self._best_cost[0] = cost

    def over(self, done: float) -> bool:
        """Whether this cooling has come to its end: frozen, failed or fallen behind. The last one is left to its
        end."""
        failed = self._urgency >= self._prices.hopeless_urgency and self.lost
        return done >= self._end or ((self._frozen or failed or self._behind) and self._end < 1.0)

    def stay_near(self, mix: OperatorShares, end: float) -> None:
        """Cool close to where the chain began, from half-way down."""
        self._begin(float(self._rng.uniform(self._params.near_low, self._params.near_high)), 1.0, mix, 0.0, end)
        self._away = self._params.near_away

    def heat(self, mix: OperatorShares, begin: float, end: float, runner: Runner | None = None) -> None:
        """Cool from hot, beginning at the initial solution, in a race or not.

        Excess costs more if the last such cooling was lost.
        """
        strict = self._prices.stricter if self._from_hot and self.lost else 1.0
        self._stand(self._initial)
        self._begin(0.0, self._cooling.hot_end, mix, begin, end, strict)
        self._from_hot, self.runner = True, runner

    def reheat(self, least: float, most: float, mix: OperatorShares, begin: float, end: float) -> None:
        """Begin again from the best assignment, after set exchanges, at a random power between the first two numbers,
        and cool from one point of the search, 0 to 1, to the other."""
        if np.isfinite(self.cost):
            best = self.best.astype(np.int64)
            if exchanged := exchange_sets(self._problem, best, self._params.operators):
                self.adopt(exchanged[0].astype(np.int32), exchanged[1])
        self._stand(self.best.astype(np.int64))
        self._begin(float(self._rng.uniform(least, most)), 1.0, mix, begin, end)

    def retry(self, mix: OperatorShares, done: float) -> None:
        """Begin again from hot for all that is left, after a cooling that was lost.

        Where an assignment is known that breaks no rule, a unit of excess costs as much as all of it, so that none
        arises; else it costs ``PriceParams.stricter`` times the usual price.
        """
        strict = self._prices.stricter
        if np.isfinite(self.cost):
            strict = max(strict, self.cost / self._prices.excess_first)
        self._stand(self.best.astype(np.int64))
        self._begin(0.0, 1.0, mix, done, 1.0, strict)

    def _begin(
        self, power: float, last: float, mix: OperatorShares, begin: float, end: float, strict: float = 1.0
    ) -> None:
        """Cool from one power to another, with ``strict`` times the usual price of excess while it is hot."""
        finest = self._cooling.finest_share * self.cost / len(self._sizes) / self._hot
        coldest = self._cooling.last_temperature
        self._cold = min(coldest, finest) if 0.0 < finest < np.inf else coldest
        self._from, self._to = self._hot * self._cold**power, self._hot * self._cold**last
        self._start, self._end = begin, end
        self._strict, self._away = strict, self._usual_away
        self._mix = mix
        self._urgency, self._within = 1.0, 0.0
        self._mark, self._least, self._frozen = 0.0, np.inf, False
        self._from_hot, self.runner = False, None

    def round(self, done: float) -> None:
        """Propose changes at the temperature for this point, 0 to 1, of the search."""
        part = min(max((done - self._start) / max(self._end - self._start, 1e-9), 0.0), 1.0)
        within = part if self.runner is None else self.runner.pace(part)
        temperature = self._from * (self._to / self._from) ** within**self._cooling.slow
        position = math.log(self._hot / temperature) / math.log(1 / self._cold)
        urgency = self._urge(within)
        first, last = self._prices.excess_first, self._prices.excess_last
        hot = self._strict * first
        excess = urgency * hot * max(last / hot, 1.0) ** position
        broken = urgency * self._prices.broken * math.sqrt(self._hot * temperature)
        movable = int(np.searchsorted(-self._sizes, -self._cooling.movable * temperature))
        movable = max(movable, min(self._cooling.least_movable, len(self._sizes)))
        anneal(
            self._fleet,
            self._state,
            state_arrays.ROUND,
            temperature,
            excess,
            broken,
            self._away * temperature,
            movable,
            self._mix,
            self.best,
            self._best_cost,
        )
        if self._untracked:
            self._untracked = state_arrays.recount(self._problem, self._state, self._untracked)
            if not self._state.total[1:].any():
                self.adopt(self._state.machine, float(self._state.total[state_arrays.COST]))
        if self.runner is not None:
            usual = first * (last / first) ** position
            energy = self._state.total @ np.array([1.0, usual, broken / urgency])
            self.runner.observe(part, float(energy))
        if within >= self._mark + self._cooling.freeze_part:
            now, still = float(self._state.total[state_arrays.COST]), 1 - self._cooling.freeze_share
            self._frozen = now > self._least * still and not self._state.total[1:].any()
            self._mark, self._least = within, now

    def _urge(self, within: float) -> float:
        """The factor on prices, after it has risen or fallen for the time that has passed."""
        step = math.exp(self._prices.urgency * (within - self._within))
        self._within = within
        if within > 0.5 and self._state.total[1:].any():
            self._urgency = min(self._urgency * step, self._prices.most_urgency)
        else:
            self._urgency = max(1.0, self._urgency / step)
        return self._urgency
