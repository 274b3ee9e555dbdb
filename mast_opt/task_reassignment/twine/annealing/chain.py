"""Annealing chain of twine: one search, with its assignment, its temperature, and costs at that temperature."""

from __future__ import annotations

import math

import numpy as np

from mast_opt.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.task_reassignment.twine.annealing.kernel import anneal
from mast_opt.task_reassignment.twine.annealing.racing import Runner
from mast_opt.task_reassignment.twine.instance_arrays import Floats, Small, TwineArrays
from mast_opt.task_reassignment.twine.state import COST, ROUND, TwineState, recount, state_of, untracked_violations

HOT = 1 / 6
"""First temperature over the largest cost that a process alone can cause."""
COLD = 1e-6
"""Last temperature over the first, unless …"""
FINE = 0.01
"""… this share of what a process costs on average in the best assignment is less: where almost nothing is left but the
moves themselves, each of them counts."""
EXCESS = (3.0, 1e3)
"""Price of a weighted unit of excess at the first and the last temperature."""
BROKEN = 30.0
"""Price of a missing location or dependency at the first temperature, in temperatures; later it falls as the square
root of the temperature."""
URGENCY = 60.0
"""In the colder half of a cooling, prices rise by e to this power for the whole of it while a rule is broken …"""
MOST_URGENT = 1e6
"""… up to this factor."""
SLOW = 1.4
"""Power of the elapsed part of a cooling to which the temperature falls: above 1, it falls slowly at first."""
AWAY = 3.0
"""Price of a process that is not at home, in temperatures, where machines hold MANY processes: there a few large ones
are enough to level everything, and the others had better stay."""
MANY = 80
"""Processes for each machine."""
NEAR = (0.4, 0.6, 6.0)
"""A cooling close to today's assignment begins at a temperature between these powers of COLD, and a process that is not
at home costs that many temperatures: where today is nearly as cheap as can be, few moves are wanted."""
LAST = 0.75
"""Power of COLD at which a cooling from hot ends: what is left below, later ones settle as well."""
PACE = ((0.0, 0.8, 1.0), (0.12, 0.6, 1.0))
"""A cooling that races takes its time where large processes find their places: after the parts of it in the first row
it is where others are after those in the second."""
STRICTER = 5.0
"""Factor on the price of excess while hot, after a cooling that was lost."""
FREEZE = 0.1
"""A cooling is frozen if over this part of it …"""
STILL = 1e-4
"""… the cost has fallen by less than this share."""
HOPELESS = 1e4
"""Factor on prices at which a cooling that is lost ends early."""
LOST = 0.05
"""A cooling that ends with a rule broken has failed if the best known costs more than this share above it."""
LARGE = 2.0
"""Processes move that can cost at least this many temperatures."""
FEWEST = 10
"""Processes that move however small they are."""
MIX = (0.5, 0.3, 0.1, 0.5, 0.8)
"""Shares, as ``anneal`` takes them: swaps, swaps within a service among them, ejections, ways home of those away,
partners that need almost the same."""


ALONE = 2.0
"""Factor on swaps within a service where partners that need almost the same are not listed."""


class Chain:
    """A search from an assignment, with a random generator of its own."""

    def __init__(self, problem: TaskReassignment, fleet: TwineArrays, begin: Ints, rng: np.random.Generator) -> None:
        """At ``begin``; ``stay_near``, ``heat`` or ``reheat`` comes before the first round."""
        self._problem, self._fleet, self._rng, self._opening = problem, fleet, rng, begin
        self._usual_away = AWAY if len(problem.processes) >= MANY * len(problem.machines) else 0.0
        self._stand(begin)
        self.runner: Runner | None = None
        """Of a cooling that races."""
        self._from_hot = False
        self._sizes = fleet.size[fleet.by_size]
        self._hot = max(HOT * float(self._sizes[0]), 1.0)
        self.best: Small = self._state.machine.copy()
        """[P] the cheapest assignment without excess and broken rules, else the one it began with."""
        self._best_cost: Floats = np.array([self._state.total[COST]])
        if self._state.total[1:].any():
            self._best_cost[0] = np.inf

    def _stand(self, machine: Ints) -> None:
        """Be at an assignment, with everything counted afresh."""
        self._state: TwineState = state_of(self._problem, self._fleet, machine, self._rng)
        self._uncounted = untracked_violations(self._problem, machine)

    @property
    def cost(self) -> float:
        """Of ``best``; infinite while nothing was found that breaks no rule."""
        return float(self._best_cost[0])

    @property
    def lost(self) -> bool:
        """Is a rule broken where its cooling has come to, and the best known dearer by more than tells of a few
        changes? Not asked of a cooling that was given up on the way."""
        broken = bool(self._state.total[1:].any()) and not self._behind
        return broken and float(self._state.total[COST]) < (1 - LOST) * self.cost

    @property
    def _behind(self) -> bool:
        return self.runner is not None and self.runner.behind

    def adopt(self, machine: Small, cost: float) -> None:
        """Take over a cheaper assignment that another search found."""
        if cost < self.cost:
            self.best = machine.copy()
            self._best_cost[0] = cost

    def over(self, done: float) -> bool:
        """Has this cooling come to its end, frozen, failed or fallen behind? The last one is left to its end."""
        failed = self._urgency >= HOPELESS and self.lost
        return done >= self._end or ((self._frozen or failed or self._behind) and self._end < 1.0)

    def stay_near(self, mix: tuple[float, ...], end: float) -> None:
        """Cool close to where the chain began, from half-way down."""
        self._begin(float(self._rng.uniform(*NEAR[:2])), 1.0, mix, 0.0, end)
        self._away = NEAR[2]

    def heat(self, mix: tuple[float, ...], begin: float, end: float, runner: Runner | None = None) -> None:
        """Cool from hot, beginning at the opening, in a race or not; excess is dearer if the last such cooling was
        lost."""
        strict = STRICTER if self._from_hot and self.lost else 1.0
        self._stand(self._opening)
        self._begin(0.0, LAST, mix, begin, end, strict)
        self._from_hot, self.runner = True, runner

    def reheat(self, least: float, most: float, mix: tuple[float, ...], begin: float, end: float) -> None:
        """Begin again from the best assignment, at a random power of COLD between the first two numbers, and cool from
        one point of the search, 0 to 1, to the other."""
        self._stand(self.best.astype(np.int64))
        self._begin(float(self._rng.uniform(least, most)), 1.0, mix, begin, end)

    def retry(self, mix: tuple[float, ...], done: float) -> None:
        """After a cooling that was lost, begin again from hot for all that is left. Where an assignment is known that
        breaks no rule, a unit of excess costs as much as all of it, so that none arises; else it costs STRICTER times
        the usual price."""
        strict = max(STRICTER, self.cost / EXCESS[0]) if np.isfinite(self.cost) else STRICTER
        self._stand(self.best.astype(np.int64))
        self._begin(0.0, 1.0, mix, done, 1.0, strict)

    def _begin(
        self, power: float, last: float, mix: tuple[float, ...], begin: float, end: float, strict: float = 1.0
    ) -> None:
        """Cool from one power of COLD to another, with excess that much dearer while hot."""
        finest = FINE * self.cost / len(self._sizes) / self._hot
        self._cold = min(COLD, finest) if 0.0 < finest < np.inf else COLD
        self._from, self._to = self._hot * self._cold**power, self._hot * self._cold**last
        self._start, self._end = begin, end
        self._strict, self._away = strict, self._usual_away
        self._mix: Floats = np.array(mix)
        self._mix[1] *= 1.0 if self._fleet.alike.shape[1] else ALONE
        self._urgency, self._within = 1.0, 0.0
        self._mark, self._least, self._frozen = 0.0, np.inf, False
        self._from_hot, self.runner = False, None

    def round(self, done: float) -> None:
        """Propose changes at the temperature for this point, 0 to 1, of the search."""
        part = min(max((done - self._start) / max(self._end - self._start, 1e-9), 0.0), 1.0)
        within = part if self.runner is None else float(np.interp(part, *PACE))
        temperature = self._from * (self._to / self._from) ** within**SLOW
        position = math.log(self._hot / temperature) / math.log(1 / self._cold)
        urgency = self._urge(within)
        hot = self._strict * EXCESS[0]
        excess = urgency * hot * max(EXCESS[1] / hot, 1.0) ** position
        broken = urgency * BROKEN * math.sqrt(self._hot * temperature)
        movable = int(np.searchsorted(-self._sizes, -LARGE * temperature))
        movable = max(movable, min(FEWEST, len(self._sizes)))
        anneal(
            self._fleet,
            self._state,
            ROUND,
            temperature,
            excess,
            broken,
            self._away * temperature,
            movable,
            self._mix,
            self.best,
            self._best_cost,
        )
        if self._uncounted:
            self._uncounted = recount(self._problem, self._state, self._uncounted)
            if not self._state.total[1:].any():
                self.adopt(self._state.machine, float(self._state.total[COST]))
        if self.runner is not None:
            usual = EXCESS[0] * (EXCESS[1] / EXCESS[0]) ** position
            energy = self._state.total @ np.array([1.0, usual, broken / urgency])
            self.runner.observe(part, float(energy))
        if within >= self._mark + FREEZE:
            now = float(self._state.total[COST])
            self._frozen = now > self._least * (1 - STILL) and not self._state.total[1:].any()
            self._mark, self._least = within, now

    def _urge(self, within: float) -> float:
        """The factor on prices, after it has risen or fallen for the time that has passed."""
        step = math.exp(URGENCY * (within - self._within))
        self._within = within
        if within > 0.5 and self._state.total[1:].any():
            self._urgency = min(self._urgency * step, MOST_URGENT)
        else:
            self._urgency = max(1.0, self._urgency / step)
        return self._urgency
