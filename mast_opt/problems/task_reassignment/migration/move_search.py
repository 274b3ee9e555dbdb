"""Exhaustive search of limited size for a migration order (task reassignment), where the greedy order gets stuck.

A wave is no more than its moves one after another: each starts before anything of its wave is free. So single moves
of any process to any machine reach whatever any order reaches.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment

STATES = 20_000
"""States that are looked at."""
CELLS = 100_000_000
"""Processes × machines × resources that are compared, in all states together: large instances see fewer states."""


@dataclass(frozen=True)
class FoundOrder:
    """Result of the search for an order."""

    moves: tuple[tuple[int, int, int], ...] | None
    """(process, source, target), as few as possible; None where no order was found."""
    exhausted: bool
    """Was every state seen that can be reached? Without moves: is it proven that there is no order?"""


def search(problem: TaskReassignment, machine: Ints, free: Ints, target: Ints) -> FoundOrder:
    """The fewest single moves that lead from a state to the target (A*: each process that is elsewhere has to move).

    Args:
        machine: [P] where each process is.
        free: [M, K] room on each machine.
        target: [P]
    """
    p = problem
    cells = max(p.processes.need.shape[0] * p.machines.capacity.shape[0] * p.machines.capacity.shape[1], 1)
    limit = min(STATES, CELLS // cells)
    kept = p.processes.need * p.resources.transient
    leaving = p.processes.need - kept
    ties = itertools.count()
    start = (machine.tobytes(), free.tobytes())
    came: dict[tuple[bytes, bytes], tuple[tuple[bytes, bytes], tuple[int, int, int]] | None] = {start: None}
    depth = {start: 0}
    waiting = int((machine != target).sum())
    heap = [(waiting, waiting, next(ties), start)]
    seen: set[tuple[bytes, bytes]] = set()
    while heap:
        _, waiting, _, state = heapq.heappop(heap)
        if state in seen:
            continue
        if not waiting:
            return FoundOrder(_path(came, state), True)
        if len(seen) >= limit:
            return FoundOrder(None, False)
        seen.add(state)
        here = np.frombuffer(state[0], machine.dtype)
        room = np.frombuffer(state[1], free.dtype).reshape(free.shape)
        fits = (p.processes.need[:, None, :] <= room[None]).all(axis=2)
        hosts = np.zeros((len(p.services), len(p.machines)), np.bool_)
        hosts[p.processes.service, here] = True
        fits &= ~hosts[p.processes.service]
        for process, to in np.argwhere(fits).tolist():
            source = int(here[process])
            then, left = here.copy(), room.copy()
            then[process] = to
            left[to] -= p.processes.need[process]
            left[source] += leaving[process]
            after = (then.tobytes(), left.tobytes())
            steps = depth[state] + 1
            if after in seen or steps >= depth.get(after, steps + 1):
                continue
            depth[after] = steps
            came[after] = state, (process, source, to)
            still = waiting + int(source == target[process]) - int(to == target[process])
            heapq.heappush(heap, (steps + still, still, next(ties), after))
    return FoundOrder(None, True)


def _path(
    came: dict[tuple[bytes, bytes], tuple[tuple[bytes, bytes], tuple[int, int, int]] | None],
    state: tuple[bytes, bytes],
) -> tuple[tuple[int, int, int], ...]:
    moves = []
    while (step := came[state]) is not None:
        state, move = step
        moves.append(move)
    return tuple(reversed(moves))
