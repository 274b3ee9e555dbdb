"""Solver ``twine`` of task reassignment: parallel simulated annealing from today's assignment.

Large processes move first, and processes that have left are offered the way home again and again: a move away takes
room of the transient resources on two machines, so it has to be worth it. Excess over capacities and missing locations
or dependencies are priced while the temperature is high. Where processes are few, a short cooling that stays close to
today's assignment comes first, and then several race; where they are many, one on every core takes most of the time.
Shorter ones follow from the best of all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mast_opt.search.interface import SearchContext, SearchResult
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import TaskReassignment
from mast_opt.task_reassignment.twine.annealing.chain import MIX, Chain
from mast_opt.task_reassignment.twine.annealing.racing import Racing, Runner
from mast_opt.task_reassignment.twine.initial_solution import opening
from mast_opt.task_reassignment.twine.instance_arrays import twine_arrays_of
from mast_opt.task_reassignment.twine.state import ROUND
from mast_opt.task_reassignment.verification.aggregate_bound import aggregate_bound
from mast_opt.task_reassignment.verification.verifier import verify

ROUNDS = 400
"""Rounds when neither a time limit nor a number of rounds is given."""


@dataclass(frozen=True)
class Schedule:
    """How the time is divided."""

    heat: tuple[float, float]
    """Least and largest share that a cooling from hot takes; in between, ENOUGH proposals for each process."""
    heated_by: float
    """When the second and later ones of a chain have to be over."""
    further: float
    """Share that each one after them takes, or less where it freezes early."""
    reheat: tuple[float, float]
    """Those begin at a temperature between these powers of the coldest over the hottest."""
    homeward: float
    """Share of the usual offers of the way home that every second cooling gets."""
    near: float
    """Share that a cooling close to today's assignment takes, before all others."""
    race: bool
    """Are coolings from hot given up where they fall behind?"""


FEW = Schedule((0.15, 0.8), 0.65, 0.04, (0.2, 0.45), 0.1, 0.02, True)
"""Few processes: coolings differ much, and some instances want other ways."""
MANY = Schedule((0.8, 0.8), 0.8, 0.2, (0.4, 0.6), 1.0, 0.0, False)
"""Many processes: as slow as possible, then once more to polish."""
FROM = 3_000
"""Processes that are many."""
OTHERWISE = 3
"""Every so-manieth cooling offers the way home as did not do best so far."""
ENOUGH = 300_000
"""Proposals for each process in a cooling from hot, after which several gain more than a longer one."""


def twine(
    problem: TaskReassignment,
    tools: SearchContext,
    start: Plan | None,
    mix: tuple[float, ...] = MIX,
) -> SearchResult[Plan]:
    """Minimise a task-reassignment problem heuristically. Deterministic for equal seed, threads and rounds.

    ``mix`` (see ``chain.MIX``) switches operators off, for measuring what each of them buys.
    """
    fleet = twine_arrays_of(problem)
    schedule = FEW if len(problem.processes) < FROM else MANY
    begin = opening(problem, problem.initial if start is None else start.machine)
    chains = [Chain(problem, fleet, begin, rng) for rng in tools.rng.spawn(tools.threads)]
    turns = _Turns(schedule, mix, ENOUGH * len(problem.processes) / ROUND)
    watch, bound = tools.watch, aggregate_bound(problem)
    watch.report(_objective(chains), bound)
    for chain in chains:
        turns.begin(chain)
    began = _progress(tools)
    with ThreadPoolExecutor(tools.threads, thread_name_prefix="mast-opt-twine") as pool:
        while not watch.done and (done := _progress(tools)) < 1.0:
            for chain in chains:
                if chain.over(done) and not turns.heat(chain, done, (done - began) / max(watch.round - 1, 1)):
                    best = min(chains, key=lambda one: one.cost)
                    chain.adopt(best.best, best.cost)
                    turns.reheat(chain, done)
            for running in [pool.submit(chain.round, done) for chain in chains]:
                running.result()
            turns.judge(chains)
            watch.round += 1
            watch.report(_objective(chains), bound)
            if watch.round == 1:  # which loads the kernels
                began = _progress(tools)
    best = min(chains, key=lambda chain: chain.cost)
    words = f"{watch.round} rounds, {len(chains)} chains, {turns.heats} coolings from hot, {turns.reheats} reheats"
    plan = Plan(best.best.astype(np.int64))
    feasible = np.isfinite(best.cost) and verify(problem, plan).ok
    return SearchResult(plan if feasible else None, bound, watch.limit(), words)


class _Turns:
    """What kind of cooling comes next."""

    def __init__(self, schedule: Schedule, mix: tuple[float, ...], enough: float) -> None:
        """``enough``: rounds of a cooling from hot."""
        self._schedule, self._enough = schedule, enough
        self._race = Racing() if schedule.race else None
        self._mixes = (mix, (*mix[:3], mix[3] * schedule.homeward, *mix[4:]))
        self._favourite, self._best = 0, np.inf
        self._mix_of: dict[Chain, int] = {}
        self.heats, self.reheats = 0, 0

    def begin(self, chain: Chain) -> None:
        """The first one."""
        if self._schedule.near > 0.0:
            chain.stay_near(self._mixes[0], self._schedule.near)
        else:
            self.heat(chain, 0.0, 0.0)

    def judge(self, chains: list[Chain]) -> None:
        """After a round: remember which mix the best assignment of all came from, and give up who is behind."""
        for chain in chains:
            if chain in self._mix_of and chain.cost < self._best:
                self._best, self._favourite = chain.cost, self._mix_of[chain]
        if self._race is not None:
            self._race.judge(chain.runner for chain in chains if chain.runner is not None)

    def heat(self, chain: Chain, done: float, step: float) -> bool:
        """Begin from hot, if the chain has not yet or there is time; a round takes ``step`` of the search."""
        if self._race is not None and chain.runner is not None and chain.lost:
            self._race.strike(chain.runner)
        least, most = self._schedule.heat
        end = done + min(max(self._enough * step, least), most)
        if chain in self._mix_of and end > self._schedule.heated_by:
            return False
        chosen = self.heats if self.heats < len(self._mixes) else self._choice(self.heats)
        chain.heat(self._mixes[chosen], done, end, None if self._race is None else Runner())
        self._mix_of[chain] = chosen
        self.heats += 1
        return True

    def _choice(self, turn: int) -> int:
        """Mostly the mix that has done best."""
        return self._favourite if turn % OTHERWISE else 1 - self._favourite

    def reheat(self, chain: Chain, done: float) -> None:
        """Go on from the best. A chain whose cooling ended with a rule broken and left nothing as good cools once more
        from hot for as long as is left."""
        chosen = self._mix_of[chain] = self._choice(self.reheats)
        mix = self._mixes[chosen]
        self.reheats += 1
        if chain.lost:
            chain.retry(mix, done)
            return
        further = self._schedule.further
        last = done + 1.5 * further >= 1.0
        chain.reheat(*self._schedule.reheat, mix, done, 1.0 if last else done + further)


def _objective(chains: list[Chain]) -> float | None:
    cost = min(chain.cost for chain in chains)
    return cost if np.isfinite(cost) else None


def _progress(tools: SearchContext) -> float:
    """How much of the search is over, 0 to 1."""
    watch, stop = tools.watch, tools.watch.stop
    if stop.iterations is None and stop.time_limit_s is not None:
        return watch.elapsed_s / stop.time_limit_s
    return watch.round / (ROUNDS if stop.iterations is None else max(stop.iterations, 1))
