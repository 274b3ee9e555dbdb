"""Migration steps of a job-placement plan as rows: what moves, what is stopped then, and what starts at last.

A job moves when its target is free. Where moves wait for one another, one of the jobs is stopped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools, Ints
from mast_opt.problems.kind.migration_plan import Move, Order, Stopped


@dataclass(frozen=True, eq=False)
class MoveOrder:
    """Waves of running jobs; what is in one wave may move at the same time."""

    waves: tuple[tuple[int, ...], ...]
    stopped_before: tuple[tuple[int, int], ...]
    """(wave, running job): the job stops before that wave and starts at its target in the wave that it is in."""


class _Room:
    """Free capacity of servers and GPUs while jobs move."""

    def __init__(self, problem: JobPlacement, plan: Plan) -> None:
        p = self.p = problem
        self.free = p.free.copy()
        devices = p.servers.supply[:, GPU] // WHOLE
        self.start = np.cumsum(devices) - devices
        self.count = devices
        self.device = np.full(int(devices.sum()), WHOLE)
        self.plan = plan
        entries = p.held_devices
        at = self.start[p.allocations.server[entries.row]] + entries.device
        np.subtract.at(self.device, at, entries.mgpu)
        owner = p.allocations.running[entries.row]
        self.held: dict[int, tuple[Ints, Ints, Ints, Ints]] = {}
        """Running job → (server, amounts, device, milli-GPUs) of what it holds now."""
        for v in np.unique(plan.moved).tolist():
            rows, mine = p.allocations.running == v, owner == v
            self.held[v] = (p.allocations.server[rows], p.held[rows], at[mine], entries.mgpu[mine])
        self.wanted = dict(self._targets())
        """Running job → the same of what it holds after its move."""

    def _targets(self) -> Iterator[tuple[int, tuple[Ints, Ints, Ints, Ints]]]:
        """Holdings at the targets of the moves."""
        p, plan = self.p, self.plan
        need_of = np.zeros((len(p.running), 3), np.int64)
        need_of[p.allocations.running] = p.allocations.need
        need = need_of[plan.moved]
        untouched = self._untouched()
        for v in np.unique(plan.moved).tolist():
            devices: list[int] = []
            amounts: list[int] = []
            rows = np.flatnonzero(plan.moved == v)
            for row in rows.tolist():
                chosen = self._gpus(row, int(need[row, GPU]), untouched)
                devices += [device for device, _ in chosen]
                amounts += [amount for _, amount in chosen]
            taken = need[rows] * plan.moved_tasks[rows, None]
            yield v, (plan.moved_server[rows], taken, np.array(devices, np.int64), np.array(amounts, np.int64))

    def _gpus(self, row: int, mgpu: int, untouched: Bools) -> list[tuple[int, int]]:
        """(GPU, milli-GPUs) of a row of moved running jobs: those that it names, else the lowest that
        nothing else has.
        """
        plan, s = self.plan, int(self.plan.moved_server[row])
        first, tasks = int(self.start[s]), int(plan.moved_tasks[row])
        if 0 < mgpu < WHOLE:
            return [(first + int(plan.moved_gpu_index[row]), mgpu * tasks)]
        number = mgpu // WHOLE * tasks
        if plan.moved_indexed[row]:
            chosen = first + int(plan.moved_gpu_index[row]) + np.arange(number)
        else:
            here = np.arange(first, first + int(self.count[s]))
            chosen = here[untouched[here]][:number]
        untouched[chosen] = False
        return [(int(device), WHOLE) for device in chosen.tolist()]

    def _untouched(self) -> Bools:
        """Mask of the GPUs that hold nothing when all jobs have moved, and that no row of the plan names."""
        plan = self.plan
        after = self.device.copy()
        for _, _, device, mgpu in self.held.values():
            np.add.at(after, device, mgpu)
        untouched: Bools = after == WHOLE
        moved = (plan.moved_server, plan.moved_gpu_index, plan.moved_indexed)
        for server, index, indexed in ((plan.server, plan.gpu_index, plan.indexed), moved):
            named = indexed & (index >= 0) & (index < self.count[server])
            untouched[self.start[server[named]] + index[named]] = False
        return untouched

    def leave(self, v: int) -> None:
        """Give back what a running job holds now."""
        self._change(self.held[v], 1)

    def fits(self, v: int) -> bool:
        """Whether a running job that has left has room at its target; it is there afterwards if so."""
        self._change(self.wanted[v], -1)
        server, _, device, _ = self.wanted[v]
        if (self.free[server] >= 0).all() and (self.device[device] >= 0).all():
            return True
        self._change(self.wanted[v], 1)
        return False

    def back(self, v: int) -> None:
        """Take what a running job held before again."""
        self._change(self.held[v], -1)

    def _change(self, held: tuple[Ints, Ints, Ints, Ints], sign: int) -> None:
        """Add running jobs' holdings to the free room, or take them away."""
        server, amount, device, mgpu = held
        np.add.at(self.free, server, sign * amount)
        np.add.at(self.device, device, sign * mgpu)


def order_of_moves(problem: JobPlacement, plan: Plan) -> MoveOrder:
    """The moves of a plan that breaks no rule, wave by wave: a job moves when its target is free next to all that has
    not moved yet, its own place aside. Where none can, the job that is cheapest to restart stops first."""
    room = _Room(problem, plan)
    cost = np.zeros(len(problem.running), np.int64)
    cost[problem.movable.running] = problem.movable.restart_mgpu_hours
    waiting = sorted(room.held, key=lambda v: (cost[v], v))
    gone: set[int] = set()
    waves: list[tuple[int, ...]] = []
    stops: list[tuple[int, int]] = []
    while waiting:
        wave = _wave(room, waiting, gone)
        if wave:
            waves.append(wave)
            waiting = [v for v in waiting if v not in wave]
            continue
        first = next((v for v in waiting if v not in gone), None)
        if first is None:
            raise ValueError("the plan breaks a rule: its moves have no room even when all of them have stopped")
        stops.append((len(waves), first))
        gone.add(first)
        room.leave(first)
    return MoveOrder(tuple(waves), tuple(stops))


def _wave(room: _Room, waiting: Sequence[int], gone: set[int]) -> tuple[int, ...]:
    """The running jobs that can move at the same time; what they leave is free after the wave."""
    wave = []
    for v in waiting:
        if v not in gone:
            room.leave(v)
        if room.fits(v):
            wave.append(v)
        if v not in gone:
            room.back(v)
    for v in wave:
        if v not in gone:
            room.leave(v)
    return tuple(wave)


def migration_plan(problem: JobPlacement, plan: Plan) -> Order:
    """Moves wave by wave, then every stop before every start, since a start may need the room of any victim; starts in
    queue order.

    A running job moves when its target is free; where moves wait for one another, one of them stops first and starts
    at its target later, and is named as stopped. Nothing else can be in the way: moves need no room that a victim
    frees, victims hold their room until they stop, and what starts fits into what is then free. The amounts are GPUs.
    """
    p = problem
    held = np.bincount(p.allocations.running, weights=p.held[:, GPU], minlength=len(p.running)) / WHOLE
    moves, stopped, wave = _moves(p, plan, held)
    victims = np.flatnonzero(plan.preempt).tolist()
    moves += [
        Move(wave, "stop", p.running.labels[v], _before(p, v), None, float(held[v]), unit="GPUs") for v in victims
    ]
    gpus = p.need_mgpu[plan.job, p.servers.gpu_type[plan.server]] * plan.tasks / WHOLE
    rank = np.empty(len(p.jobs), np.int64)
    rank[p.order] = np.arange(len(p.jobs))
    wave += bool(victims)
    for j in sorted(set(plan.job.tolist()), key=rank.__getitem__):
        rows = plan.job == j
        amount, place = float(gpus[rows].sum()), servers_in_words(p, plan.server[rows])
        moves.append(Move(wave, "start", p.jobs.labels[j], None, place, amount, unit="GPUs"))
    return Order(tuple(moves), unit="GPUs", stopped=tuple(stopped))


def _moves(problem: JobPlacement, plan: Plan, held: NDArray[np.float64]) -> tuple[list[Move], list[Stopped], int]:
    """Rows of the moves, the jobs that stop on the way, and the number of waves."""
    p = problem
    order = order_of_moves(p, plan)
    gone = {v: at for at, v in order.stopped_before}
    moves: list[Move] = []
    wave = 0
    for at, movers in enumerate(order.waves):
        stops = [v for before, v in order.stopped_before if before == at]
        moves += [
            Move(wave, "stop", p.running.labels[v], _before(p, v), None, float(held[v]), unit="GPUs") for v in stops
        ]
        wave += bool(stops)
        for v in sorted(movers):
            target = servers_in_words(p, plan.moved_server[plan.moved == v])
            action, source = ("start", None) if v in gone else ("move", _before(p, v))
            moves.append(Move(wave, action, p.running.labels[v], source, target, float(held[v]), unit="GPUs"))
        wave += 1
    stopped = [Stopped(p.running.labels[v], 1.0, float(held[v]), 0, 0) for v in gone]
    return moves, stopped, wave


def _before(problem: JobPlacement, v: int) -> str | None:
    """Present place of a running job, in words."""
    return servers_in_words(problem, problem.allocations.server[problem.allocations.running == v])


def servers_in_words(problem: JobPlacement, servers: Ints) -> str | None:
    """The servers by name while they are few, else how many of which cluster."""
    used = np.unique(servers)
    if len(used) <= 3:
        return ", ".join(problem.servers.labels[s] for s in used.tolist()) or None
    clusters = np.unique(problem.server_cluster[used]).tolist()
    return f"{len(used)} servers of {', '.join(problem.clusters.labels[c] for c in clusters)}"
