"""Solver ``twine`` of task reassignment: parallel simulated annealing from today's assignment.

Large processes move first, and processes that have left are offered the way home again and again: a move away takes
room of the transient resources on two machines, so it has to be worth it. Excess over capacities and missing locations
or dependencies are priced while the temperature is high. Where processes are few, a short cooling that stays close to
today's assignment comes first, and then several race; where they are many, one on every core takes most of the time.
Shorter ones follow from the best of all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment
from mast_opt.problems.task_reassignment.twine.annealing.chain import Chain
from mast_opt.problems.task_reassignment.twine.annealing.racing import Racing, Runner
from mast_opt.problems.task_reassignment.twine.initial_solution import initial_assignment
from mast_opt.problems.task_reassignment.twine.instance_arrays import twine_arrays_of
from mast_opt.problems.task_reassignment.twine.params import RaceParams, TwineParams
from mast_opt.problems.task_reassignment.twine.strategy import TwineStrategy, choose_strategy
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from mast_opt.problems.task_reassignment.verification.verifier import verify


def twine(
    problem: TaskReassignment,
    tools: SearchContext,
    start: Plan | None,
    params: TwineParams,
) -> SearchResult[Plan]:
    """Minimise a task-reassignment problem heuristically. Deterministic for equal seed, threads and rounds."""
    fleet = twine_arrays_of(problem, params.operators)
    listed = fleet.alike.shape[1] > 0
    strategy = choose_strategy(len(problem.processes), len(problem.machines), listed, params)
    tools.watch.chose(strategy)
    begin = initial_assignment(problem, problem.processes.initial if start is None else start.machine)
    chains = [Chain(problem, fleet, begin, rng, params, strategy.away) for rng in tools.rng.spawn(tools.threads)]
    turns = _CoolingSequence(strategy, params.racing)
    watch, bound = tools.watch, aggregate_bound(problem)
    _report(watch, chains, bound)
    for chain in chains:
        turns.begin(chain)
    began = _progress(tools, params.rounds)
    with ThreadPoolExecutor(tools.threads, thread_name_prefix="mast-opt-twine") as pool:
        while not watch.done and (done := _progress(tools, params.rounds)) < 1.0:
            for chain in chains:
                if chain.over(done) and not turns.heat(chain, done, (done - began) / max(watch.round - 1, 1)):
                    best = min(chains, key=lambda one: one.cost)
                    chain.adopt(best.best, best.cost)
                    turns.reheat(chain, done)
            for running in [pool.submit(chain.round, done) for chain in chains]:
                running.result()
            turns.judge(chains)
            watch.round += 1
            _report(watch, chains, bound)
            if watch.round == 1:  # which loads the kernels
                began = _progress(tools, params.rounds)
    best = min(chains, key=lambda chain: chain.cost)
    counts = f"{watch.round} rounds, {len(chains)} chains, {turns.heats} coolings from hot, {turns.reheats} reheats"
    plan = Plan(best.best.astype(np.int64))
    feasible = np.isfinite(best.cost) and verify(problem, plan).ok
    return SearchResult(plan if feasible else None, bound, watch.limit(), f"{strategy.words}; {counts}")


class _CoolingSequence:
    """Sequence of coolings: what kind comes next."""

    def __init__(self, strategy: TwineStrategy, params: RaceParams) -> None:
        self._schedule, self._enough, self._params = strategy.schedule, strategy.hot_rounds, params
        self._race = Racing(params) if self._schedule.race else None
        shares = strategy.shares
        self._mixes = (shares, shares._replace(ways_home=shares.ways_home * self._schedule.rare_ways_home))
        self._favourite, self._best = 0, np.inf
        self._mix_of: dict[Chain, int] = {}
        self.heats, self.reheats = 0, 0

    def begin(self, chain: Chain) -> None:
        """Begin the first cooling of a chain."""
        if self._schedule.near_share > 0.0:
            chain.stay_near(self._mixes[0], self._schedule.near_share)
        else:
            self.heat(chain, 0.0, 0.0)

    def judge(self, chains: list[Chain]) -> None:
        """Remember, after a round, which mix the best assignment of all came from, and give up who is behind."""
        for chain in chains:
            if chain in self._mix_of and chain.cost < self._best:
                self._best, self._favourite = chain.cost, self._mix_of[chain]
        if self._race is not None:
            self._race.judge(chain.runner for chain in chains if chain.runner is not None)

    def heat(self, chain: Chain, done: float, step: float) -> bool:
        """Begin from hot, if the chain has not yet or there is time; a round takes ``step`` of the search."""
        if self._race is not None and chain.runner is not None and chain.lost:
            self._race.remove(chain.runner)
        end = done + min(max(self._enough * step, self._schedule.hot_least), self._schedule.hot_most)
        if chain in self._mix_of and end > self._schedule.hot_until:
            return False
        chosen = self.heats if self.heats < len(self._mixes) else self._choice(self.heats)
        chain.heat(self._mixes[chosen], done, end, None if self._race is None else Runner(self._params))
        self._mix_of[chain] = chosen
        self.heats += 1
        return True

    def _choice(self, turn: int) -> int:
        """Mostly the mix that has done best."""
        return self._favourite if turn % self._params.other_turn else 1 - self._favourite

    def reheat(self, chain: Chain, done: float) -> None:
        """Go on from the best. A chain whose cooling ended with a rule broken and left nothing as good cools once more
        from hot for as long as is left."""
        chosen = self._mix_of[chain] = self._choice(self.reheats)
        mix = self._mixes[chosen]
        self.reheats += 1
        if chain.lost:
            chain.retry(mix, done)
            return
        schedule, share = self._schedule, self._schedule.reheat_share
        last = done + 1.5 * share >= 1.0
        chain.reheat(schedule.reheat_low, schedule.reheat_high, mix, done, 1.0 if last else done + share)


def _report(watch: SearchMonitor, chains: list[Chain], bound: float) -> None:
    best = min(chains, key=lambda chain: chain.cost)
    machine = best.best.copy()
    watch.report(best.cost if np.isfinite(best.cost) else None, bound, lambda: Plan(machine.astype(np.int64)))


def _progress(tools: SearchContext, rounds: int) -> float:
    """Share of the search that is over, 0 to 1; ``rounds``: of one without a limit."""
    watch, stop = tools.watch, tools.watch.stop
    if stop.iterations is None and stop.time_limit_s is not None:
        return watch.elapsed_s / stop.time_limit_s
    return watch.round / (rounds if stop.iterations is None else max(stop.iterations, 1))
