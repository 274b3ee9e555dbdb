"""Solver ``twine`` of task reassignment: parallel simulated annealing from today's assignment.

Large processes move first, and processes that have left are offered the way home again and again: a move away takes
room of the transient resources on two machines, so it has to be worth it. Excess over capacities and missing locations
or dependencies are priced while the temperature is high. Where processes are few, a short cooling that stays close to
today's assignment comes first, and then several race; where they are many, one on every core takes most of the time.
Shorter ones follow from the best of all.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult
from mast_opt.problems.search.strategy import Strategy
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine.annealing.chain import Chain
from mast_opt.problems.task_reassignment.twine.annealing.kernel import OperatorShares
from mast_opt.problems.task_reassignment.twine.annealing.racing import Racing, Runner
from mast_opt.problems.task_reassignment.twine.instance_arrays import twine_arrays_of
from mast_opt.problems.task_reassignment.twine.params import RaceParams, Schedule, TwineParams
from mast_opt.problems.task_reassignment.twine.state import ROUND, spare, untracked_violations
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from mast_opt.problems.task_reassignment.verification.verifier import verify


def initial_assignment(problem: TaskReassignment, machine: Ints) -> Ints:
    """The start, repaired: no two processes of a service on a machine, and no transient resource short.

    As few processes as possible move. Today's assignment, repaired, where that leaves fewer violations; the search
    has to repair what is left.
    """
    begin = _within_transient_capacity(problem, _without_conflicts(problem, machine))
    if machine is problem.processes.initial or not untracked_violations(problem, begin):
        return begin
    today = initial_assignment(problem, problem.processes.initial)
    return min(begin, today, key=lambda one: untracked_violations(problem, one))


def _without_conflicts(problem: TaskReassignment, machine: Ints) -> Ints:
    """Processes that share a machine with one of their own service go elsewhere.

    Each goes to the machine without its service where the largest share of the capacity is left after it, transient
    resources that it leaves behind included; it stays where none has room for what it needs of these.
    """
    p = problem
    pair = p.processes.service * len(p.machines) + machine
    _, first = np.unique(pair, return_index=True)
    crowded = np.setdiff1d(np.arange(len(machine)), first)
    if not len(crowded):
        return machine
    machine = machine.copy()
    held = np.zeros_like(p.machines.capacity)
    np.add.at(held, machine, p.processes.need)
    away = np.flatnonzero(machine != p.processes.initial)
    np.add.at(held, p.processes.initial[away], p.processes.need[away] * p.resources.transient)
    for process in crowded.tolist():
        left = p.machines.capacity - held - p.processes.need[process]
        possible = (left[:, p.resources.transient] >= 0).all(axis=1)
        possible[p.processes.initial[process]] = True
        possible[machine[p.processes.service == p.processes.service[process]]] = False
        score = np.where(possible, (left / np.maximum(p.machines.capacity, 1)).min(axis=1), -np.inf)
        target = int(score.argmax())
        if np.isneginf(score[target]):
            continue
        source = int(machine[process])
        stays = p.resources.transient & (source == p.processes.initial[process])
        held[source] -= p.processes.need[process] * ~stays
        held[target] += p.processes.need[process] * ~(p.resources.transient & (target == p.processes.initial[process]))
        machine[process] = target
    return machine


def _within_transient_capacity(problem: TaskReassignment, machine: Ints) -> Ints:
    """Send processes home where a transient resource is short, those that need most of it first, and only where nothing
    of their service runs: their need of it is reserved at home anyway."""
    p = problem
    room = spare(p, machine)
    short = np.flatnonzero((room < 0).any(axis=1))
    if not len(short):
        return machine
    machine = machine.copy()
    need = p.processes.need[:, p.resources.transient]
    for m in short.tolist():
        guests = np.flatnonzero((machine == m) & (p.processes.initial != m))
        share = (need[guests] / np.maximum(-room[m], 1) * (room[m] < 0)).max(axis=1)
        for guest in guests[np.argsort(-share, kind="stable")].tolist():
            home = p.processes.initial[guest]
            helps = (need[guest, room[m] < 0] > 0).any()
            if helps and not (machine[p.processes.service == p.processes.service[guest]] == home).any():
                machine[guest] = home
                room[m] += need[guest]
    return machine


@dataclass(frozen=True)
class TwineStrategy(Strategy):
    """Strategy of one search: what the size of the instance decides."""

    schedule: Schedule
    """How the time is divided among coolings."""
    shares: OperatorShares
    """Shares of the operators."""
    away: float
    """Price of a process that is not on today's machine, in temperatures."""
    hot_rounds: float
    """Rounds of a cooling from hot, unless that takes less or more than its share of the time."""

    @property
    def words(self) -> str:
        """Words for the message of the solution."""
        kind = "coolings race" if self.schedule.race else "one long cooling"
        return f"{kind} and being away costs {self.away:g} temperatures" if self.away else kind


def choose_strategy(processes: int, machines: int, listed: bool, params: TwineParams) -> TwineStrategy:
    """The strategy for an instance of this size; ``listed``: with lists of similar processes."""
    operators, prices = params.operators, params.prices
    shares = OperatorShares(
        swaps=operators.swaps,
        same_service=operators.same_service if listed else operators.same_service_unlisted,
        ejections=operators.ejections,
        ways_home=operators.ways_home,
        similar=operators.similar_swaps,
    )
    return TwineStrategy(
        schedule=params.few if processes < params.many_processes else params.many,
        shares=shares,
        away=prices.away if processes >= prices.away_processes * machines else 0.0,
        hot_rounds=params.changes_per_process * processes / ROUND,
    )


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
        """Begin the first cooling of one of twine's chains."""
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
    """Report the best plan of twine's chains, and the bound."""
    best = min(chains, key=lambda chain: chain.cost)
    machine = best.best.copy()
    watch.report(best.cost if np.isfinite(best.cost) else None, bound, lambda: Plan(machine.astype(np.int64)))


def _progress(tools: SearchContext, rounds: int) -> float:
    """Share of the search that is over, 0 to 1; ``rounds``: of one without a limit."""
    watch, stop = tools.watch, tools.watch.stop
    if stop.iterations is None and stop.time_limit_s is not None:
        return watch.elapsed_s / stop.time_limit_s
    return watch.round / (rounds if stop.iterations is None else max(stop.iterations, 1))
