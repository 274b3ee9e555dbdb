"""Migration planner of task reassignment: move by move, so that no machine ever holds more than its capacity.

Where this greedy order gets stuck, an exhaustive search of limited size looks for another one. A wave is no more than
its moves one after another: each starts before anything of its wave is free. So single moves of any process to any
machine reach whatever any order reaches.
"""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.kind.migration_plan import Move, Order, Stuck
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Bools, Ints, TaskReassignment

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
    """True if every reachable state was seen; without moves, if it is proven that there is no order."""


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
    """Moves of processes that led to a state of the search, first to last."""
    moves = []
    while (step := came[state]) is not None:
        state, move = step
        moves.append(move)
    return tuple(reversed(moves))


@dataclass(frozen=True)
class Step:
    """One move. Moves of the same wave may run at the same time, one wave after another."""

    wave: int
    """0, 1, …"""
    process: int
    source: int
    target: int
    hop: bool = False
    """True: the target is a stopover, because the way to the plan's machine is blocked."""


@dataclass(frozen=True)
class Blocked:
    """A process that cannot get to its machine, and what is missing there."""

    process: int
    target: int
    missing: Ints
    """[K] room that is missing there for each resource."""
    conflict: bool
    """Whether a process of the same service is on that machine."""


@dataclass(frozen=True)
class Steps:
    """The moves in order; ``blocked`` lists what is left when no move and no stopover is possible any more."""

    moves: tuple[Step, ...]
    blocked: tuple[Blocked, ...]
    proven: bool = True
    """True without ``blocked``, and where every order was tried, with every stopover of every process."""

    @property
    def waves(self) -> int:
        """Number of waves in which processes move."""
        return self.moves[-1].wave + 1 if self.moves else 0


def steps(problem: TaskReassignment, plan: Plan) -> Steps:
    """An order of the moves from today's assignment to a plan without violations.

    A process that moves holds what it needs on both machines until its wave is over, and transient resources on every
    machine that it has left until the last wave is over. Two processes of a service are never on one machine. The
    spread and the dependencies of services hold at the end; on the way they may not.

    Everything moves as soon as it fits. Where that gets stuck, all orders of single moves are searched, up to a number
    of states; ``proven`` says whether the search ended.

    Raises:
        ValueError: the plan does not have one machine for each process.
    """
    if plan.machine.shape != (len(problem.processes),):
        raise ValueError(f"machine has shape {plan.machine.shape}, expected {(len(problem.processes),)}")
    order = _Order(problem, plan)
    while order.pending.any():
        if not order.wave() and not order.hop():
            return _searched(problem, plan, order)
    return Steps(tuple(order.moves), ())


def _searched(problem: TaskReassignment, plan: Plan, order: "_Order") -> Steps:
    """The steps after a search from where the order is stuck and, where moves cannot be taken back because transient
    resources stay behind, from the beginning too."""
    found = search(problem, order.machine, order.free, plan.machine)
    if found.moves is not None:
        return Steps((*order.moves, *_single(order.now, found.moves, plan)), ())
    proven = found.exhausted
    if order.moves and problem.processes.need[:, problem.resources.transient].any():
        found = search(problem, problem.processes.initial, problem.machines.capacity - problem.held, plan.machine)
        if found.moves is not None:
            return Steps(_single(0, found.moves, plan), ())
        proven = found.exhausted
    return Steps(tuple(order.moves), order.blocked(), proven)


def _single(wave: int, moves: tuple[tuple[int, int, int], ...], plan: Plan) -> tuple[Step, ...]:
    """One move of a process in each wave."""
    return tuple(
        Step(wave + at, process, source, target, target != plan.machine[process])
        for at, (process, source, target) in enumerate(moves)
    )


class _Order:
    """State of an order: what each machine holds now, and who still has to move."""

    def __init__(self, problem: TaskReassignment, plan: Plan) -> None:
        self.p = problem
        self.target = plan.machine
        self.machine = problem.processes.initial.copy()
        self.free: Ints = problem.machines.capacity - problem.held
        self.pending: Bools = self.machine != self.target
        self.moves: list[Step] = []
        self.now = 0
        size = (problem.processes.need / np.maximum(problem.machines.capacity.sum(axis=0), 1)).max(axis=1)
        self.by_size: Ints = np.argsort(-size, kind="stable")
        self.changed: Bools = np.ones(len(problem.machines), np.bool_)
        self.on: list[set[int]] = [set() for _ in problem.machines.labels]
        for service, machine in zip(problem.processes.service.tolist(), self.machine.tolist(), strict=True):
            self.on[machine].add(service)

    def wave(self) -> bool:
        """Start every move of a process for which there is room, the large ones first. Returns whether
        there was any.
        """
        waiting = self.by_size[self.pending[self.by_size] & self.changed[self.target[self.by_size]]]
        left = []
        for process in waiting.tolist():
            target = int(self.target[process])
            if not self._fits(process, target):
                continue
            source = self._start(process, target, hop=False)
            left.append((process, source))
        self.changed[:] = False
        if left:
            self._finish(left)
        return bool(left)

    def hop(self) -> bool:
        """Send the smallest process whose place helps where it is in nobody's way. Returns whether there was one.

        Nobody waits for the machine of a stopover, so no process makes two.
        """
        for process in self.by_size[::-1].tolist():
            if not self.pending[process]:
                continue
            source = int(self.machine[process])
            if not self._helps(process, source):
                continue
            roomy = (self.free >= self.p.processes.need[process]).all(axis=1)
            for machine in np.flatnonzero(roomy).tolist():
                if machine != source and self._fits(process, machine) and not self._awaited(machine):
                    self._finish([(process, self._start(process, machine, hop=True))])
                    return True
        return False

    def blocked(self) -> tuple[Blocked, ...]:
        """Processes that still have to move, with what they miss."""
        return tuple(
            Blocked(
                process,
                target,
                np.maximum(self.p.processes.need[process] - self.free[target], 0),
                int(self.p.processes.service[process]) in self.on[target],
            )
            for process in np.flatnonzero(self.pending).tolist()
            for target in [int(self.target[process])]
        )

    def _fits(self, process: int, machine: int) -> bool:
        """Whether a process fits on a machine now."""
        fits = bool((self.p.processes.need[process] <= self.free[machine]).all())
        return fits and int(self.p.processes.service[process]) not in self.on[machine]

    def _helps(self, process: int, source: int) -> bool:
        """Whether anyone who waits for this machine fits once the process is gone."""
        room = self.free[source] + self.p.processes.need[process] * ~self.p.resources.transient
        mine = self.p.processes.service[process]
        waiting = np.flatnonzero(self.pending & (self.target == source))
        fits = (self.p.processes.need[waiting] <= room).all(axis=1)
        return any(
            service == mine or service not in self.on[source]
            for service in self.p.processes.service[waiting[fits]].tolist()
        )

    def _awaited(self, machine: int) -> bool:
        """Whether a process that waits goes to this machine."""
        return bool((self.pending & (self.target == machine)).any())

    def _start(self, process: int, target: int, *, hop: bool) -> int:
        """Begin a move: from now on the process holds room on both machines. Returns the machine it leaves."""
        source = int(self.machine[process])
        self.free[target] -= self.p.processes.need[process]
        self.on[target].add(int(self.p.processes.service[process]))
        self.machine[process] = target
        self.pending[process] = target != self.target[process]
        self.moves.append(Step(self.now, process, source, target, hop))
        return source

    def _finish(self, left: list[tuple[int, int]]) -> None:
        """End a wave: what its processes held on their old machines is free, but for transient resources."""
        for process, source in left:
            self.free[source] += self.p.processes.need[process] * ~self.p.resources.transient
            self.on[source].discard(int(self.p.processes.service[process]))
            self.changed[source] = True
        self.now += 1


def migration_plan(problem: TaskReassignment, plan: Plan) -> Order:
    """Waves of moves from today's machines to the plan's."""
    p = problem
    found = steps(problem, plan)
    moves = tuple(
        Move(
            wave=step.wave,
            action="move",
            what=p.processes.labels[step.process],
            source=p.machines.labels[step.source],
            target=p.machines.labels[step.target],
            hop=step.hop,
        )
        for step in found.moves
    )
    stuck = tuple(
        Stuck(p.processes.labels[blocked.process], p.machines.labels[blocked.target], _reason(p, blocked))
        for blocked in found.blocked
    )
    return Order(moves, stuck, _relief(problem, found.blocked), proven=found.proven)


_CONFLICT = "a process of the same service is still there"


def _reason(problem: TaskReassignment, blocked: Blocked) -> str:
    """Reason why a process cannot move to its machine, in words."""
    words = (_missing(problem, blocked), _CONFLICT if blocked.conflict else "")
    return "; ".join(part for part in words if part)


def _missing(problem: TaskReassignment, blocked: Blocked) -> str:
    """Words on the resources that a machine lacks for a blocked process."""
    lacks = zip(problem.resources.labels, blocked.missing.tolist(), strict=True)
    words = [f"{amount:,} of {resource}" for resource, amount in lacks if amount]
    return f"{' and '.join(words)} are missing there" if words else ""


def _relief(problem: TaskReassignment, blocked: tuple[Blocked, ...]) -> tuple[str, ...]:
    """The smallest room with which one of those that are stuck could make its move after the other steps, measured by
    the machine's capacity. Room does not help where a process of the same service is on the machine."""
    p = problem
    lacking = [one for one in blocked if one.missing.any() and not one.conflict]
    if not lacking:
        return ()
    nearest = min(lacking, key=lambda one: float((one.missing / p.machines.capacity[one.target].clip(1)).max()))
    lacks = zip(p.resources.labels, nearest.missing.tolist(), strict=True)
    room = " and ".join(f"{amount:,} more of {resource}" for resource, amount in lacks if amount)
    machine, process = p.machines.labels[nearest.target], p.processes.labels[nearest.process]
    return (f"after these steps, {room} on {machine} would let {process} move there",)
