"""Migration planner of server assignment: wave by wave, so that no reservation falls below its guarantee."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mast_opt.problems.kind.migration_plan import Move, Order
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import SHARED, Bools, Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure


class Guarantees:
    """Amounts in mrru. A server that leaves is gone at once; one that comes counts from the end of its wave."""

    def __init__(self, problem: ServerAssignment, after: Ints) -> None:
        """``after``: [S] the plan's assignment."""
        self.p = problem
        now, then = Measure(problem, problem.servers.owner), Measure(problem, after)
        self.floor: Ints = np.minimum(problem.reservations.asked_mrru, np.minimum(now.guaranteed, then.guaranteed))
        """[Q] what is asked, or less where today or the plan guarantees less."""
        self.shares = (problem.reservations.buffer == SHARED) & (problem.pool is not None)
        self.total: Ints = now.total.copy()
        self.at_risk: Ints = now.held.copy()
        """[Q, B] what a switchboard's loss takes; from the pool also what it must then stand in for."""
        if problem.pool is not None:
            self.at_risk[problem.pool] += now.held[problem.reservations.buffer == SHARED].sum(axis=0)

    def may_leave(self, q: int, kind: int, board: int) -> int | None:
        """Number of servers of a type that can leave q from a switchboard; None: any number."""
        worth = int(self.p.reservations.value_mrru[q, kind])
        if worth == 0:
            return None
        return max(int(self.total[q] - self._worst_elsewhere(q, board) - self.floor[q]) // worth, 0)

    def may_come(self, q: int, source: int, kind: int, board: int) -> int | None:
        """Number of servers that can come to reservation q from ``source`` without putting more at risk than the pool
        bears; None: any number.
        """
        pool, more = self.p.pool, self._more_at_risk(q, source, kind)
        if pool is None or more <= 0:
            return None
        return max(int(self.total[pool] - self.at_risk[pool, board] - self.floor[pool]) // more, 0)

    def below(self, q: int, kind: int, board: int) -> int:
        """Amount by which reservation q falls below its floor if one such server leaves."""
        worth = int(self.p.reservations.value_mrru[q, kind])
        return int(self.floor[q] - self.total[q] + worth + self._worst_elsewhere(q, board))

    def pool_below(self, q: int, source: int, kind: int, board: int) -> int:
        """Amount by which the pool falls below its floor if one such server comes to reservation q from ``source``."""
        pool = self.p.pool
        assert pool is not None
        at_risk = self.at_risk[pool, board] + self._more_at_risk(q, source, kind)
        return int(self.floor[pool] - self.total[pool] + at_risk)

    def start(self, source: int, target: int, kind: int, board: int, count: int) -> None:
        """Let servers of reservations leave ``source`` (Q: nobody). What they put at risk for a pool counts from now
        on; what they no longer do, only when they have arrived: in a wave, whatever comes first must do no harm.
        """
        if source < len(self.shares):
            worth = count * self.p.reservations.value_mrru[source, kind]
            self.total[source] -= worth
            self.at_risk[source, board] -= worth
        if self.p.pool is not None:
            self.at_risk[self.p.pool, board] += count * max(self._more_at_risk(target, source, kind), 0)

    def arrive(self, source: int, target: int, kind: int, board: int, count: int) -> None:
        """Let servers of reservations from ``source`` be at ``target`` (Q: nobody)."""
        if target < len(self.shares):
            worth = count * self.p.reservations.value_mrru[target, kind]
            self.total[target] += worth
            self.at_risk[target, board] += worth
        if self.p.pool is not None:
            self.at_risk[self.p.pool, board] += count * min(self._more_at_risk(target, source, kind), 0)

    def _more_at_risk(self, q: int, source: int, kind: int) -> int:
        """Amount that the pool must stand in for in addition when one server of a type goes from ``source`` to
        reservation q.
        """
        coming, going = (
            int(self.p.reservations.value_mrru[who, kind]) if who < len(self.shares) and self.shares[who] else 0
            for who in (q, source)
        )
        return coming - going

    def _worst_elsewhere(self, q: int, board: int) -> int:
        """Largest loss by another switchboard: servers that leave the worst one cost nothing until then."""
        if not self.p.buffered[q]:
            return 0
        row = self.at_risk[q]
        return int(max(row[:board].max(initial=0), row[board + 1 :].max(initial=0)))


_Loan = dict[tuple[int, int], int]
"""(type, switchboard) → servers."""
ATTEMPTS = 50_000
"""Most moves that the search for an order without loans tries."""
CELLS = 5_000_000
"""Most numbers that the states of that search may hold together: it tries fewer moves on large instances."""
MIXTURES = 2000
"""Loans of several types or switchboards that are tried in one deadlock."""


@dataclass(frozen=True)
class Deadlock:
    """A deadlock: a ring of reservations that wait for one another's servers, and the relief that broke it."""

    wave: int
    """The wave that begins with the relief."""
    ring: tuple[int, ...]
    """Each waits for the next, the last for the first."""
    reservation: int
    """The reservation that was relieved."""
    loan: tuple[int, ...]
    """Servers lent to it, which no reservation has; they go back. Empty where no loan to a reservation of the ring was
    found that lets a server start."""
    below_mrru: int
    """Amount by which it falls below its guarantee for a while instead; 0 with a loan."""


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
        """Number of waves in which servers change reservations."""
        return int(self.wave[-1]) + 1 if len(self.wave) else 0


@dataclass
class _Flow:
    """Equal servers with the same source and target."""

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
    wait for one another in a ring, other orders without loans are searched, up to ``ATTEMPTS`` moves; where there is
    none, servers that nobody has are lent to one of them: the fewest with which a server of
    the ring can start, among all of one type and switchboard and ``MIXTURES`` of several. Where that finds none, the
    server of the ring starts for which reservations fall least below their guarantees in total.

    Raises:
        ValueError: the plan is not one position for each server.
    """
    if plan.reservation.shape != (len(problem.servers),):
        raise ValueError(f"reservation has shape {plan.reservation.shape}, expected {(len(problem.servers),)}")
    order = _Order(problem, plan)
    while order.flows:
        if not order.run(loans=False) and not order.run(loans=True):
            other = None if order.deadlocks else _without_loans(problem, plan)
            if other is not None:
                return other
            order.relieve()
    return order.done()


def _without_loans(problem: ServerAssignment, plan: Plan) -> Steps | None:
    """An order of single moves that no ring stops; None where the search finds none."""
    order = _Order(problem, plan)
    flows = order.flows
    path = order.path()
    if path is None:
        return None
    started: list[tuple[_Flow, list[int]]] = []
    for at in path:
        if not order.may_start(flows[at]):
            order.finish(started)
            started = []
        started.append((flows[at], order.start(flows[at], 1)))
    order.finish(started)
    return order.done()


@dataclass
class _Order:
    """State of an order of moves: who has which servers now, and what still has to move."""

    p: ServerAssignment
    plan: Plan
    wave: int = 0
    moves: list[tuple[int, int, int, int, bool]] = field(default_factory=list)
    deadlocks: list[Deadlock] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nobody = len(self.p.reservations)
        self.state = Guarantees(self.p, self.plan.reservation)
        self._begin = self.state.total.copy(), self.state.at_risk.copy()
        self.flows = _flows(self.p, self.plan)
        free = np.flatnonzero((self.plan.reservation == self.nobody) & ~self.p.owned)
        self.spare: dict[tuple[int, int], list[int]] = {}
        """(type, switchboard) → servers that nobody has and nobody gets."""
        where = zip(self.p.servers.type[free].tolist(), self.p.server_switchboard[free].tolist(), strict=True)
        for server, at in zip(free.tolist(), where, strict=True):
            self.spare.setdefault(at, []).append(server)

    def run(self, *, loans: bool) -> bool:
        """Move servers in one wave what may move, free servers first; loans go back only if asked. Returns whether any
        moved.
        """
        started = [
            (flow, self.start(flow, count))
            for flow in self.flows
            if flow.loan == loans and (count := self._allowed(flow))
        ]
        self.finish(started)
        return bool(started)

    def may_start(self, flow: _Flow) -> bool:
        """Whether one server of a flow between reservations may start now."""
        return self._allowed(flow) > 0

    def path(self) -> list[int] | None:
        """Positions of flows between reservations, one for each server that moves, in an order in which every server
        may start once those before it have arrived: a depth-first search. None where it ends without one, or at its
        limit.
        """
        state, attempts = self.state, 0
        limit = min(ATTEMPTS, CELLS // max(len(self.flows) + state.at_risk.size, 1))
        begin = tuple(len(flow.servers) for flow in self.flows)
        stack = [(state.total.copy(), state.at_risk.copy(), begin, iter(range(len(begin))))]
        path: list[int] = []
        seen = {begin}
        while stack and attempts < limit:
            total, at_risk, left, untried = stack[-1]
            if not any(left):
                break
            for at in untried:
                after = (*left[:at], left[at] - 1, *left[at + 1 :])
                if not left[at] or after in seen:
                    continue
                attempts += 1
                state.total[:], state.at_risk[:] = total, at_risk
                flow = self.flows[at]
                if self.may_start(flow):
                    state.start(flow.source, flow.target, flow.kind, flow.board, 1)
                    state.arrive(flow.source, flow.target, flow.kind, flow.board, 1)
                    seen.add(after)
                    path.append(at)
                    stack.append((state.total.copy(), state.at_risk.copy(), after, iter(range(len(begin)))))
                    break
            else:
                stack.pop()
                if path:
                    path.pop()
        found = bool(stack) and not any(stack[-1][2])
        state.total[:], state.at_risk[:] = self._begin
        return path if found else None

    def relieve(self) -> None:
        """Break a deadlock of reservations: the smallest loan that is found, else the smallest fall below
        guarantees.
        """
        blocked = self.flows
        waiting = [self._waits(flow) for flow in blocked]
        ring = _ring(blocked, waiting, self.state.shares.tolist(), self.p.pool)
        below = [self._below(flow, who) for flow, who in zip(blocked, waiting, strict=True)]
        within = [at for at, flow in enumerate(blocked) if waiting[at] in ring and not flow.loan]
        budget = MIXTURES // max(len(within), 1)
        offers = [(self._offer(blocked[at], waiting[at], below[at], budget), at) for at in within]
        lendable = [(len(offer), below[at], at, offer) for offer, at in offers if offer]
        if lendable:
            _, _, at, offer = min(lendable)
            self.deadlocks.append(Deadlock(self.wave, ring, waiting[at], tuple(offer), 0))
            self._lend(offer, waiting[at])
        else:
            _, at = min((sum(self._falls(blocked[at]).values()), at) for at in within)
            self._force(blocked[at], ring)

    def _falls(self, flow: _Flow) -> dict[int, int]:
        """Amounts by which the source, the pool or both fall below their guarantees if one server of a flow starts."""
        falls = {flow.source: self.state.below(flow.source, flow.kind, flow.board)} if flow.source < self.nobody else {}
        if self.p.pool is not None and self._may_come(flow) == 0:
            falls[self.p.pool] = max(falls.get(self.p.pool, 0), self._pool_below(flow))
        return {who: below for who, below in falls.items() if below > 0}

    def _force(self, flow: _Flow, ring: tuple[int, ...]) -> None:
        """Start one server of a flow although its source, the pool or both fall below their guarantees."""
        for who, below in self._falls(flow).items():
            self.deadlocks.append(Deadlock(self.wave, ring, who, (), below))
        self.finish([(flow, self.start(flow, 1))])

    def done(self) -> Steps:
        """Steps of the finished order of servers' moves."""
        columns = np.array(self.moves, np.int64).reshape(-1, 5).T.copy()
        wave, server, source, target, loan = columns
        return Steps(wave, server, source, target, loan > 0, tuple(self.deadlocks))

    def _allowed(self, flow: _Flow) -> int:
        """Number of servers of a flow that may start now."""
        limits = [len(flow.servers), self._may_come(flow)]
        if flow.source < self.nobody:
            limits.append(_or_all(self.state.may_leave(flow.source, flow.kind, flow.board), flow))
        return min(limits)

    def _may_come(self, flow: _Flow) -> int:
        """Servers of a flow that may come to their reservation now."""
        if flow.target == self.nobody:
            return len(flow.servers)
        return _or_all(self.state.may_come(flow.target, flow.source, flow.kind, flow.board), flow)

    def _pool_below(self, flow: _Flow) -> int:
        """Servers of a flow that may come before the pool of servers is too small."""
        return self.state.pool_below(flow.target, flow.source, flow.kind, flow.board)

    def start(self, flow: _Flow, count: int) -> list[int]:
        """Begin to move so many servers of a flow, and return them."""
        going, flow.servers = flow.servers[:count], flow.servers[count:]
        self.state.start(flow.source, flow.target, flow.kind, flow.board, count)
        self.moves += [(self.wave, server, flow.source, flow.target, flow.loan) for server in going]
        return going

    def finish(self, started: list[tuple[_Flow, list[int]]]) -> None:
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
        """Amount by which a reservation falls below its floor if a server of the flow starts."""
        if who == flow.source:
            return self.state.below(who, flow.kind, flow.board)
        return self._pool_below(flow)

    def _offer(self, flow: _Flow, who: int, below: int, budget: int) -> list[int]:
        """The fewest spare servers that, lent to the reservation, let one server of the flow start; among as few, those
        of the least worth. Servers of one type at one switchboard are tried first, then mixtures, ``budget`` of them.
        """
        best: tuple[int, int, _Loan] | None = None
        worth = {
            cell: int(self.p.reservations.value_mrru[who, cell[0]]) for cell, servers in self.spare.items() if servers
        }
        worth = {cell: amount for cell, amount in worth.items() if amount}
        for cell, amount in worth.items():
            needed = max(-(-below // amount), 1)
            for count in (needed, needed + 1):
                if count <= len(self.spare[cell]) and self._helps(flow, who, {cell: count}):
                    one = (count, count * amount, {cell: count})
                    best = one if best is None or one[:2] < best[:2] else best
                    break
        most = sum(len(self.spare[cell]) for cell in worth) if best is None else best[0] - 1
        fewest = max(-(-below // max(worth.values(), default=1)), 2)
        for count in range(fewest, most + 1):
            for loan in _mixtures({cell: len(self.spare[cell]) for cell in worth}, count):
                if budget <= 0:
                    return self._picked(best)
                budget -= 1
                total = sum(number * worth[cell] for cell, number in loan.items())
                if total >= below and (best is None or (count, total) < best[:2]) and self._helps(flow, who, loan):
                    best = count, total, loan
            if best is not None and best[0] == count:
                break
        return self._picked(best)

    def _picked(self, best: tuple[int, int, _Loan] | None) -> list[int]:
        """Servers of the best loan that was found."""
        loan = {} if best is None else best[2]
        return [server for cell, count in loan.items() for server in self.spare[cell][:count]]

    def _helps(self, flow: _Flow, who: int, loan: _Loan) -> bool:
        """Whether the flow would start if so many spare servers were lent in one wave."""
        state = self.state
        total, at_risk = state.total.copy(), state.at_risk.copy()
        helps = True
        for (kind, board), count in loan.items():
            room = state.may_come(who, self.nobody, kind, board)
            helps = helps and (room is None or room >= count)
            state.start(self.nobody, who, kind, board, count)
        if helps:
            for (kind, board), count in loan.items():
                state.arrive(self.nobody, who, kind, board, count)
            helps = self._allowed(flow) > 0
        state.total[:], state.at_risk[:] = total, at_risk
        return helps

    def _lend(self, servers: list[int], who: int) -> None:
        """Lend servers to a reservation."""
        started = []
        for server in servers:
            kind, board = int(self.p.servers.type[server]), int(self.p.server_switchboard[server])
            self.spare[kind, board].remove(server)
            there = _Flow(self.nobody, who, kind, board, [server], loan=True)
            started.append((there, self.start(there, 1)))
        self.finish(started)
        for flow, (server,) in started:
            self.flows.append(_Flow(who, self.nobody, flow.kind, flow.board, [server], loan=True))


def _mixtures(left: _Loan, count: int) -> Iterator[_Loan]:
    """Choices of so many servers by type and switchboard."""
    cells = list(left)

    def chosen(at: int, missing: int) -> Iterator[_Loan]:
        if not missing:
            yield {}
        elif at < len(cells):
            for number in range(min(left[cells[at]], missing), -1, -1):
                for rest in chosen(at + 1, missing - number):
                    yield {cells[at]: number, **rest} if number else rest

    return chosen(0, count)


def _flows(p: ServerAssignment, plan: Plan) -> list[_Flow]:
    """Everything that has to move, servers that nobody has first."""
    moved = np.flatnonzero(plan.reservation != p.servers.owner)
    keys = np.stack(
        [p.servers.owner[moved], plan.reservation[moved], p.servers.type[moved], p.server_switchboard[moved]], axis=1
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
    """Find reservations that wait for one another: each waits for those that hold servers it is to be given, and the
    pool also for those that hold servers the sharing reservations are to give away."""
    import networkx as nx

    waits = nx.DiGraph()
    for flow, who in zip(blocked, waiting, strict=True):
        if flow.target < len(shares):
            waits.add_edge(flow.target, who)
        if pool is not None and flow.source < len(shares) and shares[flow.source]:
            waits.add_edge(pool, who)
    return tuple(source for source, _ in nx.find_cycle(waits, waiting[0]))


def _or_all(limit: int | None, flow: _Flow) -> int:
    """A limit on a flow of servers, or all of them where there is none."""
    return len(flow.servers) if limit is None else limit


def migration_plan(problem: ServerAssignment, plan: Plan) -> Order:
    """Waves of servers that change hands; a loan is a stopover."""
    p = problem
    found = steps(problem, plan)
    names = (*p.reservations.labels, None)
    columns = (found.wave, found.server, found.source, found.target, found.loan)
    moves = tuple(
        Move(
            wave,
            "take" if target == len(p.reservations) else "give",
            p.servers.labels[server],
            names[source],
            names[target],
            hop=loan,
        )
        for wave, server, source, target, loan in zip(*(column.tolist() for column in columns), strict=True)
    )
    return Order(moves, relief=tuple(_words(p, deadlock) for deadlock in found.deadlocks), proven=not found.deadlocks)


def _words(p: ServerAssignment, deadlock: Deadlock) -> str:
    """A deadlock of server moves in words: who waits for whom, and what is lent."""
    names = [p.reservations.labels[q] for q in deadlock.ring]
    wave = deadlock.wave + 1
    ring = " waits for ".join([*names, names[0]])
    who = p.reservations.labels[deadlock.reservation]
    if deadlock.loan:
        lent = ", ".join(p.servers.labels[server] for server in deadlock.loan)
        return f"wave {wave}: {ring}; {lent} is lent to {who} for a while"
    return f"wave {wave}: {ring}; {who} falls {deadlock.below_mrru / 1000:,g} RRU below its guarantee for a while"
