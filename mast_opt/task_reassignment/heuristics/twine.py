"""The solver ``twine``: annealing over shifts and swaps of processes, on every core, from today's assignment.

Excess over capacities and missing locations or dependencies are priced while the temperature is high and paid back
as it falls; large processes move first. One long cooling is followed by short ones from the best assignment.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mast_opt.search import Found, Tools
from mast_opt.task_reassignment.aggregate import aggregate_bound
from mast_opt.task_reassignment.heuristics.anneal import anneal
from mast_opt.task_reassignment.heuristics.fleet import Fleet, fleet_of
from mast_opt.task_reassignment.heuristics.state import COST, State, state_of
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import Ints, TaskReassignment

PROPOSALS = 20_000
"""Changes proposed in a round, a few milliseconds."""
ROUNDS = 1_000
"""Rounds when neither a time limit nor a number of rounds is given."""
FIRST = 0.35
"""Share of the search that the first cooling takes."""
COOLINGS = 10
"""Coolings after the first."""
COLD = 1e-3
"""Last temperature over the first."""
EXCESS = (3.0, 1e3)
"""Price of a weighted unit of excess at the first and the last temperature."""
BROKEN = 1e3
"""Price of a missing location or dependency, in temperatures."""
SWAPS, KIN = 0.5, 0.5
LARGE = 2.0
"""Processes move that can cost at least this many temperatures."""


def twine(problem: TaskReassignment, tools: Tools, start: Plan | None) -> Found[Plan]:
    """Minimise a task-reassignment problem heuristically. Deterministic for equal seed, threads and rounds."""
    fleet = fleet_of(problem)
    begin = problem.initial if start is None else start.machine
    chains = [_Chain(problem, fleet, begin, rng) for rng in tools.rng.spawn(tools.threads)]
    watch, bound = tools.watch, aggregate_bound(problem)
    watch.report(objective=float(chains[0].cost[0]), bound=bound)
    with ThreadPoolExecutor(tools.threads, thread_name_prefix="mast-opt-twine") as pool:
        while not watch.done and (done := _progress(tools)) < 1.0:
            for running in [pool.submit(chain.round, done) for chain in chains]:
                running.result()
            watch.round += 1
            watch.report(objective=float(min(chain.cost[0] for chain in chains)))
    best = min(chains, key=lambda chain: chain.cost[0])
    words = f"{watch.round} rounds, {len(chains)} chains"
    return Found(Plan(best.best.astype(np.int64)), bound, watch.limit(), words)


def _progress(tools: Tools) -> float:
    """How much of the search is over, 0 to 1."""
    watch, stop = tools.watch, tools.watch.stop
    if stop.iterations is None and stop.time_limit_s is not None:
        return watch.elapsed_s / stop.time_limit_s
    return watch.round / (ROUNDS if stop.iterations is None else max(stop.iterations, 1))


class _Chain:
    """One search of its own."""

    def __init__(self, problem: TaskReassignment, fleet: Fleet, begin: Ints, rng: np.random.Generator) -> None:
        self.problem, self.fleet, self.rng = problem, fleet, rng
        self.state: State = state_of(problem, fleet, begin, rng)
        self.best = self.state.machine.copy()
        self.cost = np.array([self.state.total[COST]])
        self.sizes = fleet.size[fleet.by_size]
        self.hot = max(float(self.sizes[0]), 1.0)
        self.cooling = 0
        self.from_hot = self.hot

    def round(self, done: float) -> None:
        """Propose changes at the temperature for this point of the search."""
        cooling = 0 if done < FIRST else 1 + int((done - FIRST) / (1 - FIRST) * COOLINGS)
        if cooling != self.cooling:
            self.cooling = cooling
            self.state = state_of(self.problem, self.fleet, self.best.astype(np.int64), self.rng)
            self.from_hot = self.hot * COLD ** float(self.rng.uniform(0.3, 0.7))
        within = done / FIRST if cooling == 0 else (done - FIRST) / (1 - FIRST) * COOLINGS - (cooling - 1)
        cold = self.hot * COLD
        temperature = self.from_hot * (cold / self.from_hot) ** min(max(within, 0.0), 1.0)
        position = np.log(self.hot / temperature) / np.log(1 / COLD)
        excess = EXCESS[0] * (EXCESS[1] / EXCESS[0]) ** position
        movable = max(int(np.searchsorted(-self.sizes, -LARGE * temperature)), min(10, len(self.sizes)))
        prices = (temperature, excess, BROKEN * temperature)
        anneal(self.fleet, self.state, PROPOSALS, *prices, movable, SWAPS, KIN, self.best, self.cost)
