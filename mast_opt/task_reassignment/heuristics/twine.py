"""The solver ``twine``: annealing over shifts, swaps, ejections and shifts of whole services, from today's
assignment, on every core.

Large processes move first, and processes that have left are offered the way home again and again: a move away takes
room of the transient resources on two machines, so it has to be worth it. Excess over capacities and missing locations
or dependencies are priced while the temperature is high. Where processes are few, a short cooling that stays close to
today's assignment comes first. One long cooling on every core is followed by shorter ones from the best of all, each
after exact re-optimisation of a few machines at a time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from mast_opt.search import Found, Tools
from mast_opt.task_reassignment.aggregate import aggregate_bound
from mast_opt.task_reassignment.heuristics.chain import MIX, Chain
from mast_opt.task_reassignment.heuristics.fleet import fleet_of
from mast_opt.task_reassignment.heuristics.machines import Machines
from mast_opt.task_reassignment.heuristics.opening import opening
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import TaskReassignment
from mast_opt.task_reassignment.verify import verify

ROUNDS = 400
"""Rounds when neither a time limit nor a number of rounds is given."""


@dataclass(frozen=True)
class Schedule:
    """How the time is divided."""

    first: float
    """Share that the first cooling takes."""
    further: float
    """Share that each one after it takes, or less where it freezes early."""
    reheat: tuple[float, float]
    """Those begin at a temperature between these powers of the coldest over the hottest."""
    homeward: float
    """Share of the usual offers of the way home that every second chain gets."""
    near: float
    """Share that a cooling close to today's assignment takes, before all others."""


FEW = Schedule(0.8, 0.05, (0.2, 0.45), 0.1, 0.02)
"""Few processes: short coolings after the first one, and some instances want other ways."""
MANY = Schedule(0.8, 0.2, (0.4, 0.6), 1.0, 0.0)
"""Many processes: as slow as possible, then once more to polish."""
FROM = 3_000
"""Processes that are many."""


def twine(
    problem: TaskReassignment, tools: Tools, start: Plan | None, mix: tuple[float, ...] = MIX, exact: bool = True
) -> Found[Plan]:
    """Minimise a task-reassignment problem heuristically. Deterministic for equal seed, threads and rounds.

    ``mix`` (see ``chain.MIX``) and ``exact`` switch neighbourhoods off, for measuring what each of them buys.
    """
    fleet = fleet_of(problem)
    schedule = FEW if len(problem.processes) < FROM else MANY
    begin = opening(problem, problem.initial if start is None else start.machine)
    mixes = (mix, (*mix[:3], mix[3] * schedule.homeward, *mix[4:]))
    chains = [
        Chain(problem, fleet, begin, rng, mixes[at % 2], schedule.first, schedule.near)
        for at, rng in enumerate(tools.rng.spawn(tools.threads))
    ]
    watch, bound, reheats = tools.watch, aggregate_bound(problem), 0
    machines = Machines(problem, tools) if exact else None
    watch.report(_objective(chains), bound)
    with ThreadPoolExecutor(tools.threads, thread_name_prefix="mast-opt-twine") as pool:
        while not watch.done and (done := _progress(tools)) < 1.0:
            for chain in chains:
                if chain.over(done) and not chain.depart(done):
                    _begin_again(chain, chains, machines, tools, schedule, done)
                    reheats += 1
            for running in [pool.submit(chain.round, done) for chain in chains]:
                running.result()
            watch.round += 1
            watch.report(_objective(chains), bound)
    best = min(chains, key=lambda chain: chain.cost)
    words = f"{watch.round} rounds, {len(chains)} chains, {reheats} reheats"
    plan = Plan(best.best.astype(np.int64))
    feasible = np.isfinite(best.cost) and verify(problem, plan).ok
    return Found(plan if feasible else None, bound, watch.limit(), words)


def _objective(chains: list[Chain]) -> float | None:
    cost = min(chain.cost for chain in chains)
    return cost if np.isfinite(cost) else None


def _begin_again(
    chain: Chain, chains: list[Chain], machines: Machines | None, tools: Tools, schedule: Schedule, done: float
) -> None:
    """The chain goes on from the best assignment of all, improved on a few machines. One whose cooling
    ended with a rule broken and left nothing as good cools once more for as long as is left."""
    best = min(chains, key=lambda one: one.cost)
    chain.adopt(best.best, best.cost)
    if machines is not None and np.isfinite(chain.cost):
        chain.adopt(*machines.improved(chain.best, chain.cost, tools.rng))
    if chain.lost:
        chain.retry(done)
        return
    last = done + 1.5 * schedule.further >= 1.0
    chain.reheat(*schedule.reheat, done, 1.0 if last else done + schedule.further)


def _progress(tools: Tools) -> float:
    """How much of the search is over, 0 to 1."""
    watch, stop = tools.watch, tools.watch.stop
    if stop.iterations is None and stop.time_limit_s is not None:
        return watch.elapsed_s / stop.time_limit_s
    return watch.round / (ROUNDS if stop.iterations is None else max(stop.iterations, 1))
