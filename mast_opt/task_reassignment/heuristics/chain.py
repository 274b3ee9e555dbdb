"""One annealing search: where it stands, how cold it is, and what everything costs at that temperature."""

from __future__ import annotations

import math

import numpy as np

from mast_opt.task_reassignment.heuristics.anneal import anneal
from mast_opt.task_reassignment.heuristics.fleet import Fleet, Floats, Small
from mast_opt.task_reassignment.heuristics.state import COST, ROUND, State, state_of
from mast_opt.task_reassignment.problem import Ints, TaskReassignment

HOT = 1 / 6
"""First temperature over the largest cost that a process alone can cause."""
COLD = 1e-6
"""Last temperature over the first."""
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
ENOUGH = 0.75
"""Power of COLD at which the first cooling ends: what is left below, later ones settle as well."""
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
MIX = (0.5, 0.3, 0.02, 0.5, 0.002, 0.8)
"""Shares, as ``anneal`` takes them: swaps, swaps within a service among them, ejections, shifts home of those away,
shifts of whole services, partners that need almost the same."""


ALONE = 2.0
"""Factor on swaps within a service where partners that need almost the same are not listed."""


class Chain:
    """A search from an assignment without conflicts, with a random generator of its own."""

    def __init__(
        self,
        problem: TaskReassignment,
        fleet: Fleet,
        begin: Ints,
        rng: np.random.Generator,
        mix: tuple[float, ...] = MIX,
        first: float = 1.0,
        near: float = 0.0,
    ) -> None:
        """The first cooling takes that share of the search, after one close to ``begin`` for the share ``near``."""
        self._problem, self._fleet, self._rng, self._opening = problem, fleet, rng, begin
        self._usual_away = AWAY if len(problem.processes) >= MANY * len(problem.machines) else 0.0
        self._strict = 1.0
        self._mix: Floats = np.array(mix)
        self._mix[1] *= 1.0 if fleet.alike.shape[1] else ALONE
        self._state: State = state_of(problem, fleet, begin, rng)
        self._sizes = fleet.size[fleet.by_size]
        self._hot = max(HOT * float(self._sizes[0]), 1.0)
        self._first, self._near = first, near > 0.0
        if self._near:
            self._begin(float(rng.uniform(*NEAR[:2])), 1.0, 0.0, near)
            self._away = NEAR[2]
        else:
            self._begin(0.0, ENOUGH, 0.0, first)
        self.best: Small = self._state.machine.copy()
        """[P] the cheapest assignment without excess and broken rules, else the one it began with."""
        self._best_cost: Floats = np.array([self._state.total[COST]])
        if self._state.total[1:].any():
            self._best_cost[0] = np.inf

    @property
    def cost(self) -> float:
        """Of ``best``; infinite while nothing was found that breaks no rule."""
        return float(self._best_cost[0])

    @property
    def lost(self) -> bool:
        """Is a rule broken where it stands, and the best known dearer by more than tells of a few changes?"""
        return bool(self._state.total[1:].any()) and float(self._state.total[COST]) < (1 - LOST) * self.cost

    def adopt(self, machine: Small, cost: float) -> None:
        """Take over a cheaper assignment that another search found."""
        if cost < self.cost:
            self.best = machine.copy()
            self._best_cost[0] = cost

    def over(self, done: float) -> bool:
        """Has this cooling come to its end, frozen or failed? The last one is left to its end."""
        failed = self._urgency >= HOPELESS and self.lost
        return done >= self._end or ((self._frozen or failed) and self._end < 1.0)

    def reheat(self, least: float, most: float, begin: float, end: float) -> None:
        """Begin again from the best assignment, at a random power of COLD between the first two numbers, and cool from
        one point of the search, 0 to 1, to the other."""
        self._state = state_of(self._problem, self._fleet, self.best.astype(np.int64), self._rng)
        self._begin(float(self._rng.uniform(least, most)), 1.0, begin, end)

    def depart(self, done: float) -> bool:
        """After a cooling close to where it began, begin the first one from hot; False if that has been."""
        if not self._near:
            return False
        self._near = False
        self._state = state_of(self._problem, self._fleet, self._opening, self._rng)
        self._begin(0.0, ENOUGH, done, self._first)
        return True

    def retry(self, done: float) -> None:
        """After a cooling that was lost, begin anew from hot, with excess dearer, for all that is left."""
        self._strict *= STRICTER
        self.reheat(0.0, 0.0, done, 1.0)

    def _begin(self, power: float, last: float, begin: float, end: float) -> None:
        """Cool from one power of COLD to another."""
        self._from, self._to = self._hot * COLD**power, self._hot * COLD**last
        self._start, self._end = begin, end
        self._away = self._usual_away
        self._urgency, self._within = 1.0, 0.0
        self._mark, self._least, self._frozen = 0.0, np.inf, False

    def round(self, done: float) -> None:
        """Propose changes at the temperature for this point, 0 to 1, of the search."""
        within = min(max((done - self._start) / max(self._end - self._start, 1e-9), 0.0), 1.0)
        temperature = self._from * (self._to / self._from) ** within**SLOW
        position = math.log(self._hot / temperature) / math.log(1 / COLD)
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
