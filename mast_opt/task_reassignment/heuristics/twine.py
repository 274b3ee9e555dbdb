"""The solver ``twine``: annealing over shifts, swaps and ejections, on every core, from today's assignment.

Large processes move first, and processes that have left are offered the way home again and again: a move away takes
room of the transient resources on two machines, so it has to be worth it. Excess over capacities and missing locations
or dependencies are priced while the temperature is high. One long cooling on every core is followed by short ones from
the best assignment of all, and by exact re-optimisation of a few machines at a time where the program is small enough.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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
FIRST = 0.3
"""Share of the search that the first cooling takes."""
COOLINGS = 20
"""Coolings after the first."""
REHEAT = (0.15, 0.45)
"""They begin at a temperature between these powers of the coldest over the hottest."""


def twine(
    problem: TaskReassignment, tools: Tools, start: Plan | None, mix: tuple[float, ...] = MIX, exact: bool = True
) -> Found[Plan]:
    """Minimise a task-reassignment problem heuristically. Deterministic for equal seed, threads and rounds.

    ``mix`` (see ``chain.MIX``) and ``exact`` switch neighbourhoods off, for measuring what each of them buys.
    """
    fleet = fleet_of(problem)
    begin = opening(problem, problem.initial if start is None else start.machine)
    chains = [Chain(problem, fleet, begin, rng, mix) for rng in tools.rng.spawn(tools.threads)]
    watch, bound, cooling = tools.watch, aggregate_bound(problem), 0
    machines = Machines(problem, tools) if exact else None
    watch.report(_objective(chains), bound)
    with ThreadPoolExecutor(tools.threads, thread_name_prefix="mast-opt-twine") as pool:
        while not watch.done and (done := _progress(tools)) < 1.0:
            now, within = _cooling(done)
            if now != cooling:
                cooling = now
                _exchange(chains, machines, tools)
            for running in [pool.submit(chain.round, within) for chain in chains]:
                running.result()
            watch.round += 1
            watch.report(_objective(chains), bound)
    best = min(chains, key=lambda chain: chain.cost)
    words = f"{watch.round} rounds, {len(chains)} chains, {cooling} reheats"
    plan = Plan(best.best.astype(np.int64))
    feasible = np.isfinite(best.cost) and verify(problem, plan).ok
    return Found(plan if feasible else None, bound, watch.limit(), words)


def _objective(chains: list[Chain]) -> float | None:
    cost = min(chain.cost for chain in chains)
    return cost if np.isfinite(cost) else None


def _exchange(chains: list[Chain], machines: Machines | None, tools: Tools) -> None:
    """Every chain goes on from the best assignment of all, improved on a few machines."""
    best = min(chains, key=lambda chain: chain.cost)
    if machines is not None and np.isfinite(best.cost):
        best.adopt(*machines.improved(best.best, best.cost, tools.rng))
    for chain in chains:
        chain.adopt(best.best, best.cost)
        chain.reheat(*REHEAT)


def _cooling(done: float) -> tuple[int, float]:
    """Number of the cooling and the part of it that is over, at a point of the search."""
    if done < FIRST:
        return 0, done / FIRST
    at = (done - FIRST) / (1 - FIRST) * COOLINGS
    return 1 + int(at), at % 1.0


def _progress(tools: Tools) -> float:
    """How much of the search is over, 0 to 1."""
    watch, stop = tools.watch, tools.watch.stop
    if stop.iterations is None and stop.time_limit_s is not None:
        return watch.elapsed_s / stop.time_limit_s
    return watch.round / (ROUNDS if stop.iterations is None else max(stop.iterations, 1))
