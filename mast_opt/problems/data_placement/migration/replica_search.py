"""Search for a migration order of replicas (data placement): copies and deletions within every region's storage.

A state is what every region holds. First a dive makes whatever move is possible, the likeliest to help first. Where
that ends before its goal, a best-first search over states looks for a cheapest order: where it ends without one, and
not because of ``MOST_STATES``, there is none.
"""

import enum
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mast_opt.problems.data_placement.migration.replica_moves import Moving, Pair, Sources

MOST_STATES = 20_000
"""States that are put aside for later before the search gives up."""

Key = tuple[object, ...]


class Assistance(enum.Enum):
    """Assistance that an order may use beyond what the plan says."""

    NOTHING = "nothing"
    HOPS = "replicas in between, which cost their volume"
    ROOM = "temporary room, which costs its volume"


@dataclass(frozen=True)
class Move:
    """A replica that arrives or goes."""

    dataset: int
    region: int
    arrives: bool
    hop: bool = False
    """True for a replica that the plan does not have."""
    sources: Sources = ()


@dataclass(frozen=True)
class ReplicaState:
    """Progress of an order: arrived and removed replicas, and the free room."""

    arrived: frozenset[Pair]
    gone: frozenset[Pair]
    hops: frozenset[Pair]
    free_mb: tuple[int, ...]
    """[R] below 0 where a region holds too much from the beginning, or on borrowed room."""
    lent_mb: tuple[int, ...]
    """[R] the most that was borrowed."""

    @property
    def key(self) -> Key:
        """Key that distinguishes this state of replicas from others; the free room follows from it."""
        return self.arrived, self.gone, self.hops, self.lent_mb


@dataclass(frozen=True)
class Order:
    """The moves in order, as far as they get."""

    moves: tuple[Move, ...]
    complete: bool
    end: ReplicaState
    exhaustive: bool
    """True: a complete order is a cheapest one, and an incomplete one proves that there is none."""


def search(moving: Moving, help: Assistance, after: Order | None = None) -> Order:
    """A cheapest order of the moves of replicas; without one, the order that gets furthest.

    ``after``: an order to go on from, instead of from today; the result is then not exhaustive.
    """
    return _Search(moving, help, after).run()


class _Search:
    def __init__(self, moving: Moving, help: Assistance, after: Order | None) -> None:
        self.m = moving
        self.help = help
        self.prefix = () if after is None else after.moves
        none: frozenset[Pair] = frozenset()
        today = ReplicaState(none, none, none, moving.free_mb, (0,) * len(moving.free_mb))
        self.start = today if after is None else after.end
        self.cost: dict[Key, int] = {self.start.key: 0}
        self.came: dict[Key, tuple[Key, Move]] = {}

    def run(self) -> Order:
        """Search for an order of copies and deletions of replicas."""
        dive = None if self.help is Assistance.HOPS else self._dive()
        if dive is not None and dive.complete and not self.cost[dive.end.key]:
            return dive
        self.cost, self.came = {self.start.key: 0}, {}
        found = self._best_first()
        if dive is None or found.complete or found.exhaustive or self._left(found.end) < self._left(dive.end):
            return found
        return dive

    def _dive(self) -> Order:
        """One way down the search for an order of replicas, without a turn: every move that costs nothing as long as
        there is one, then the cheapest.
        """
        state = self._run_ahead(self.start)
        while True:
            before = state
            for move in sorted(self._moves(state), key=lambda move: self._rank(before, move)):
                again = self._again(state, move)
                if again is not None and not self._price(state, again, self._after(state, again)):
                    state = self._go(state, again)
            if state is before:
                ways = [(self._price(state, move, self._after(state, move)), move) for move in self._moves(state)]
                if not ways:
                    break
                state = self._go(state, min(ways, key=lambda way: (way[0], self._rank(before, way[1])))[1])
            state = self._run_ahead(state)
        complete = not self._left(state)
        return self._order(state, complete, exhaustive=complete and not self.cost[state.key])

    def _best_first(self) -> Order:
        """Best-first search for an order of a migration's replicas."""
        best = self.start
        queue: list[tuple[int, int, tuple[int, int], int, ReplicaState]] = [(0, self._left(best), (0, 0), 0, best)]
        opened: set[Key] = set()
        while queue:
            *_, state = heapq.heappop(queue)
            if state.key in opened:
                continue
            opened.add(state.key)
            state = self._run_ahead(state)
            if self._left(state) < self._left(best):
                best = state
            if not self._left(state):
                return self._order(state, complete=True, exhaustive=not self.prefix)
            for move in self._moves(state):
                following = self._after(state, move)
                if self._cheaper(state, move, following):
                    if len(self.cost) > MOST_STATES:
                        return self._order(best, complete=False, exhaustive=False)
                    cost = self.cost[following.key]
                    entry = (cost, self._left(following), self._rank(state, move), len(self.cost), following)
                    heapq.heappush(queue, entry)
        return self._order(best, complete=False, exhaustive=not self.prefix)

    def _order(self, state: ReplicaState, complete: bool, exhaustive: bool) -> Order:
        """Order of a migration's moves of replicas that leads to a state."""
        moves = []
        key = state.key
        while key in self.came:
            key, move = self.came[key]
            moves.append(move)
        return Order((*self.prefix, *reversed(moves)), complete, state, exhaustive)

    def _go(self, state: ReplicaState, move: Move) -> ReplicaState:
        """Make a move of a replica, and remember how the state was reached if that was never cheaper."""
        following = self._after(state, move)
        self._cheaper(state, move, following)
        return following

    def _cheaper(self, state: ReplicaState, move: Move, following: ReplicaState) -> bool:
        """Whether this order of replicas is the cheapest way to the state so far, which is then the one that is
        remembered.
        """
        cost = self.cost[state.key] + self._price(state, move, following)
        if following.key in self.cost and self.cost[following.key] <= cost:
            return False
        self.cost[following.key] = cost
        self.came[following.key] = (state.key, move)
        return True

    def _left(self, state: ReplicaState) -> int:
        """Number of moves of replicas that are left in a state."""
        done = len(state.arrived) + len(state.gone)
        return len(self.m.incoming) + len(self.m.outgoing) + len(state.hops) - done

    def _price(self, state: ReplicaState, move: Move, following: ReplicaState) -> int:
        """Cost of moving a replica: volume of stopovers, or storage lent."""
        if self.help is Assistance.HOPS:
            return self.m.size_mb[move.dataset] if move.hop and move.arrives else 0
        return sum(following.lent_mb) - sum(state.lent_mb)

    def _rank(self, state: ReplicaState, move: Move) -> tuple[int, int]:
        """Rank among moves of equal cost: deletions, then copies that let an old replica go, large ones first."""
        if not move.arrives:
            return 0, 0
        releases = any(pair not in state.gone for pair in self.m.outgoing_of[move.dataset])
        return 1 if releases else 2, -self.m.size_mb[move.dataset]

    def _run_ahead(self, state: ReplicaState) -> ReplicaState:
        """Make every move that can do no harm, whatever comes later. Room and replicas may be what a detour needs, so
        with hops there is no such move."""
        before = None
        while self.help is not Assistance.HOPS and state is not before:
            before = state
            state = self._fill_roomy(state)
            state = self._drop_due(state)
        return state

    def _fill_roomy(self, state: ReplicaState) -> ReplicaState:
        """Copies of replicas to regions with room for all that is still to come there."""
        m = self.m
        for r, datasets in enumerate(m.incoming_at):
            waits = [i for i in datasets if (i, r) not in state.arrived]
            if sum(m.size_mb[i] for i in waits) <= state.free_mb[r]:
                for i in waits:
                    sources = m.sources(i, r, self._holders(state, i))
                    if sources is not None:
                        state = self._go(state, Move(i, r, arrives=True, sources=sources))
        return state

    def _drop_due(self, state: ReplicaState) -> ReplicaState:
        """Deletions of replicas that are due in any case."""
        m = self.m
        for i, r in m.outgoing:
            if (i, r) not in state.gone:
                waiting = any(pair not in state.arrived for pair in m.incoming_of[i])
                going = sum(pair not in state.gone for pair in m.outgoing_of[i])
                if len(self._holders(state, i)) - going >= m.floor[i] and not (waiting and m.link_kb is not None):
                    state = self._go(state, Move(i, r, arrives=False))
        return state

    def _moves(self, state: ReplicaState) -> Iterator[Move]:
        """Every move of a replica that is possible in a state."""
        m = self.m
        wanted = [Move(i, r, arrives=False) for i, r in m.outgoing if (i, r) not in state.gone]
        wanted += [Move(i, r, arrives=False, hop=True) for i, r in sorted(state.hops)]
        wanted += [Move(i, r, arrives=True) for i, r in m.incoming if (i, r) not in state.arrived]
        for move in wanted:
            possible = self._again(state, move)
            if possible is not None:
                yield possible
        if self.help is Assistance.HOPS:
            yield from self._hops(state)

    def _again(self, state: ReplicaState, move: Move) -> Move | None:
        """The move of a replica as it can be made in this state; None where it cannot."""
        i, r = move.dataset, move.region
        if not move.arrives:
            return move if self._may_go(state, i, r) else None
        if self.help is not Assistance.ROOM and self.m.size_mb[i] > state.free_mb[r]:
            return None
        sources = self.m.sources(i, r, self._holders(state, i))
        return None if sources is None else replace(move, sources=sources)

    def _hops(self, state: ReplicaState) -> Iterator[Move]:
        """Replicas in between, of datasets whose old replica is in the way."""
        m = self.m
        for i in m.datasets:
            if any(pair not in state.gone for pair in m.outgoing_of[i]):
                holders = self._holders(state, i)
                for r in m.hop_regions(i):
                    if (i, r) not in state.hops and m.size_mb[i] <= state.free_mb[r]:
                        sources = m.sources(i, r, holders)
                        if sources:
                            yield Move(i, r, arrives=True, hop=True, sources=sources)

    def _holders(self, state: ReplicaState, i: int) -> frozenset[int]:
        """Regions that hold a dataset in a state."""
        m = self.m
        held = {r for r in m.stored_at[i] if (i, r) not in state.gone}
        held.update(r for _, r in m.incoming_of[i] if (i, r) in state.arrived)
        held.update(r for j, r in state.hops if j == i)
        return frozenset(held)

    def _may_go(self, state: ReplicaState, i: int, r: int) -> bool:
        """Enough replicas stay, and every copy still to come that has a source now has one then."""
        m, holders = self.m, self._holders(state, i)
        stay = holders - {r}
        if len(stay) < m.floor[i]:
            return False
        waits = [to for _, to in m.incoming_of[i] if (i, to) not in state.arrived]
        return all(m.sources(i, to, stay) is not None for to in waits if m.sources(i, to, holders) is not None)

    def _after(self, state: ReplicaState, move: Move) -> ReplicaState:
        """State of a migration after the move of a replica."""
        pair, r, size = (move.dataset, move.region), move.region, self.m.size_mb[move.dataset]
        free = _changed(state.free_mb, r, state.free_mb[r] + (-size if move.arrives else size))
        lent = state.lent_mb
        if move.arrives and -free[r] > lent[r]:
            lent = _changed(lent, r, -free[r])
        state = replace(state, free_mb=free, lent_mb=lent)
        if move.hop:
            return replace(state, hops=state.hops | {pair} if move.arrives else state.hops - {pair})
        if move.arrives:
            return replace(state, arrived=state.arrived | {pair})
        return replace(state, gone=state.gone | {pair})


def _changed(amounts: tuple[int, ...], at: int, amount: int) -> tuple[int, ...]:
    """Amounts of a migration's regions with another one in one place."""
    return (*amounts[:at], amount, *amounts[at + 1 :])
