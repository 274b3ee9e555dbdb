"""From today's assignment to the plan's, wave by wave, so that no reservation falls below its guarantee on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mast_opt.server_assignment.guarantees import Guarantees
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import Bools, Ints, ServerAssignment


@dataclass(frozen=True)
class Deadlock:
    """A ring of reservations in which each can give only after it was given, and what broke it: the smallest relief
    at that moment."""

    wave: int
    """The wave that begins with the relief."""
    ring: tuple[int, ...]
    """Each waits for the next, the last for the first."""
    reservation: int
    """The one that was relieved."""
    loan: tuple[int, ...]
    """Servers lent to it, fewest first choice; nobody has them and they go back. Empty where no loan would do."""
    below_mrru: int
    """By how much it falls below its guarantee for a while instead; 0 with a loan."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The moves in order, as arrays of the same length; those of a wave may run at the same time."""

    wave: Ints
    """0, 1, … ascending."""
    server: Ints
    source: Ints
    """Q: nobody has it."""
    target: Ints
    """Q: nobody gets it."""
    loan: Bools
    """True: the server is lent, or goes back."""
    deadlocks: tuple[Deadlock, ...]

    @property
    def waves(self) -> int:
        return int(self.wave[-1]) + 1 if len(self.wave) else 0


@dataclass
class _Flow:
    """Equal servers with the same way to go."""

    source: int
    target: int
    kind: int
    board: int
    servers: list[int]
    loan: bool = False


def steps(problem: ServerAssignment, plan: Plan) -> Steps:
    """An order of the moves from today's assignment to the plan's.

    A server that changes hands belongs to nobody until its wave is over. Whatever has moved at that moment, each
    reservation is guaranteed what it asks, or what today and the plan guarantee if that is less. Where reservations
    wait for one another in a ring, servers that nobody has are lent; where none would do, the one that has to fall
    least below its guarantee does so.

    Raises:
        ValueError: the plan is not one position for each server.
    """
    if plan.reservation.shape != (len(problem.servers),):
        raise ValueError(f"reservation has shape {plan.reservation.shape}, expected {(len(problem.servers),)}")
    order = _Order(problem, plan)
    while order.flows:
        if not order.run(loans=False) and not order.run(loans=True):
            order.relieve()
    return order.done()


@dataclass
class _Order:
    """Who has what now, and what still has to move."""

    p: ServerAssignment
    plan: Plan
    wave: int = 0
    moves: list[tuple[int, int, int, int, bool]] = field(default_factory=list)
    deadlocks: list[Deadlock] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nobody = len(self.p.reservations)
        self.state = Guarantees(self.p, self.plan.reservation)
        self.flows = _flows(self.p, self.plan)
        free = np.flatnonzero((self.plan.reservation == self.nobody) & ~self.p.owned)
        self.spare: dict[tuple[int, int], list[int]] = {}
        """(type, switchboard) → servers that nobody has and nobody gets."""
        where = zip(self.p.server_type[free].tolist(), self.p.server_switchboard[free].tolist(), strict=True)
        for server, at in zip(free.tolist(), where, strict=True):
            self.spare.setdefault(at, []).append(server)

    def run(self, *, loans: bool) -> bool:
        """One wave of everything that may move, what is free first; loans go back only when asked. Was there any?"""
        started = [
            (flow, self._start(flow, count))
            for flow in self.flows
            if flow.loan == loans and (count := self._allowed(flow))
        ]
        self._finish(started)
        return bool(started)

    def relieve(self) -> None:
        """Break a deadlock: a loan of as few servers as possible, else the smallest fall below a guarantee."""
        blocked = self.flows
        waiting = [self._waits(flow) for flow in blocked]
        ring = _ring(blocked, waiting, self.state.shares.tolist(), self.p.pool)
        below = [self._below(flow, who) for flow, who in zip(blocked, waiting, strict=True)]
        within = [at for at, flow in enumerate(blocked) if waiting[at] in ring and not flow.loan]
        offers = [(self._offer(blocked[at], waiting[at], below[at]), at) for at in within]
        lendable = [(len(offer), below[at], at, offer) for offer, at in offers if offer]
        if lendable:
            _, _, at, offer = min(lendable)
            self.deadlocks.append(Deadlock(self.wave, ring, waiting[at], tuple(offer), 0))
            self._lend(offer, waiting[at])
        else:
            _, at = min((below[at], at) for at in within)
            self._force(blocked[at], ring)

    def _force(self, flow: _Flow, ring: tuple[int, ...]) -> None:
        """Start one server of a flow although its source, the pool or both fall below their guarantees."""
        falls = {flow.source: self.state.below(flow.source, flow.kind, flow.board)} if flow.source < self.nobody else {}
        if self.p.pool is not None and self._may_come(flow) == 0:
            falls[self.p.pool] = max(falls.get(self.p.pool, 0), self._pool_below(flow))
        for who, below in falls.items():
            if below > 0:
                self.deadlocks.append(Deadlock(self.wave, ring, who, (), below))
        self._finish([(flow, self._start(flow, 1))])

    def done(self) -> Steps:
        columns = np.array(self.moves, np.int64).reshape(-1, 5).T.copy()
        wave, server, source, target, loan = columns
        return Steps(wave, server, source, target, loan > 0, tuple(self.deadlocks))

    def _allowed(self, flow: _Flow) -> int:
        """How many servers of a flow may start now."""
        limits = [len(flow.servers), self._may_come(flow)]
        if flow.source < self.nobody:
            limits.append(_or_all(self.state.may_leave(flow.source, flow.kind, flow.board), flow))
        return min(limits)

    def _may_come(self, flow: _Flow) -> int:
        if flow.target == self.nobody:
            return len(flow.servers)
        return _or_all(self.state.may_come(flow.target, flow.source, flow.kind, flow.board), flow)

    def _pool_below(self, flow: _Flow) -> int:
        return self.state.pool_below(flow.target, flow.source, flow.kind, flow.board)

    def _start(self, flow: _Flow, count: int) -> list[int]:
        going, flow.servers = flow.servers[:count], flow.servers[count:]
        self.state.start(flow.source, flow.target, flow.kind, flow.board, count)
        self.moves += [(self.wave, server, flow.source, flow.target, flow.loan) for server in going]
        return going

    def _finish(self, started: list[tuple[_Flow, list[int]]]) -> None:
        """End a wave: what is on its way arrives; what nobody gets can be lent from now on."""
        for flow, going in started:
            self.state.arrive(flow.source, flow.target, flow.kind, flow.board, len(going))
            if flow.target == self.nobody:
                self.spare.setdefault((flow.kind, flow.board), []).extend(going)
        self.flows = [flow for flow in self.flows if flow.servers]
        self.wave += bool(started)

    def _waits(self, flow: _Flow) -> int:
        """The reservation that keeps a blocked flow from starting: its source, or the pool."""
        if flow.source < self.nobody and self.state.may_leave(flow.source, flow.kind, flow.board) == 0:
            return flow.source
        assert self.p.pool is not None
        return self.p.pool

    def _below(self, flow: _Flow, who: int) -> int:
        if who == flow.source:
            return self.state.below(who, flow.kind, flow.board)
        return self._pool_below(flow)

    def _offer(self, flow: _Flow, who: int, below: int) -> list[int]:
        """The fewest spare servers of one kind that, lent to the reservation, let one server of the flow start; among
        as few, those of the least worth."""
        choices = []
        for (kind, board), servers in self.spare.items():
            worth = int(self.p.value_mrru[who, kind])
            needed = -(-below // worth) if worth else len(servers) + 1
            for count in (needed, needed + 1):
                if count <= len(servers) and self._helps(flow, who, kind, board, count):
                    choices.append((count, worth, servers[:count]))
                    break
        return min(choices)[2] if choices else []

    def _helps(self, flow: _Flow, who: int, kind: int, board: int, count: int) -> bool:
        """Would the flow start if so many spare servers were lent?"""
        room = self.state.may_come(who, self.nobody, kind, board)
        if room is not None and room < count:
            return False
        total, at_risk = self.state.total[who], self.state.at_risk[:, board].copy()
        self.state.start(self.nobody, who, kind, board, count)
        self.state.arrive(self.nobody, who, kind, board, count)
        helps = self._allowed(flow) > 0
        self.state.total[who], self.state.at_risk[:, board] = total, at_risk
        return helps

    def _lend(self, servers: list[int], who: int) -> None:
        kind, board = int(self.p.server_type[servers[0]]), int(self.p.server_switchboard[servers[0]])
        self.spare[kind, board] = self.spare[kind, board][len(servers) :]
        there = _Flow(self.nobody, who, kind, board, servers, loan=True)
        self._finish([(there, self._start(there, len(servers)))])
        self.flows.append(_Flow(who, self.nobody, kind, board, list(servers), loan=True))


def _flows(p: ServerAssignment, plan: Plan) -> list[_Flow]:
    """Everything that has to move, servers that nobody has first."""
    moved = np.flatnonzero(plan.reservation != p.owner)
    keys = np.stack(
        [p.owner[moved], plan.reservation[moved], p.server_type[moved], p.server_switchboard[moved]], axis=1
    )
    order = np.lexsort((moved, *keys.T[::-1], keys[:, 0] < len(p.reservations)))
    keys, moved = keys[order], moved[order]
    edge = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1))) if len(moved) else moved
    parts = np.split(moved, edge[1:])
    return [
        _Flow(source, target, kind, board, part.tolist())
        for (source, target, kind, board), part in zip(keys[edge].tolist(), parts, strict=False)
    ]


def _ring(blocked: list[_Flow], waiting: list[int], shares: list[bool], pool: int | None) -> tuple[int, ...]:
    """Reservations that wait for one another: each for those that hold back what it is to be given, the pool also for
    those that hold back what the sharing ones are to give away."""
    import networkx as nx

    waits = nx.DiGraph()
    for flow, who in zip(blocked, waiting, strict=True):
        if flow.target < len(shares):
            waits.add_edge(flow.target, who)
        if pool is not None and flow.source < len(shares) and shares[flow.source]:
            waits.add_edge(pool, who)
    return tuple(source for source, _ in nx.find_cycle(waits, waiting[0]))


def _or_all(limit: int | None, flow: _Flow) -> int:
    return len(flow.servers) if limit is None else limit
