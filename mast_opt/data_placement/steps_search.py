"""The search for an order of copies and deletions in which no region ever holds more than it can.

A state is what every region holds. The search opens the state that costs least and, of those, the one with fewest moves
left, so that it runs through like a greedy one where nothing is in the way, and turns back where something is. Where it
ends without an order, and not because of ``MOST_STATES``, there is none.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mast_opt.data_placement.moving import Moving, Pair, Sources

MOST_STATES = 20_000
"""States that are put aside for later before the search gives up."""

Key = tuple[object, ...]


class Help(enum.Enum):
    """What an order may use beyond what the plan says."""

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
    """Of a replica that the plan does not have."""
    sources: Sources = ()


@dataclass(frozen=True)
class State:
    """What is done so far."""

    arrived: frozenset[Pair]
    gone: frozenset[Pair]
    hops: frozenset[Pair]
    free_mb: tuple[int, ...]
    """[R] below 0 where a region holds too much from the beginning, or on borrowed room."""
    lent_mb: tuple[int, ...]
    """[R] the most that was borrowed."""

    @property
    def key(self) -> Key:
        return self.arrived, self.gone, self.hops, self.lent_mb


@dataclass(frozen=True)
class Order:
    """The moves in order, as far as they get."""

    moves: tuple[Move, ...]
    complete: bool
    end: State
    exhaustive: bool
    """True: a complete order is a cheapest one, and an incomplete one proves that there is none."""


def search(moving: Moving, help: Help) -> Order:
    """A cheapest order of the moves; without one, the order that gets furthest."""
    return _Search(moving, help).run()


class _Search:
    def __init__(self, moving: Moving, help: Help) -> None:
        self.m = moving
        self.help = help
        self.cost: dict[Key, int] = {}
        self.came: dict[Key, tuple[Key, Move]] = {}

    def run(self) -> Order:
        none: frozenset[Pair] = frozenset()
        best = start = State(none, none, none, self.m.free_mb, (0,) * len(self.m.free_mb))
        self.cost[start.key] = 0
        queue: list[tuple[int, int, tuple[int, int], int, State]] = [(0, self._left(start), (0, 0), 0, start)]
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
                return Order(self._path(state), True, state, True)
            for move in self._moves(state):
                following = self._after(state, move)
                if self._cheaper(state, move, following):
                    if len(self.cost) > MOST_STATES:
                        return Order(self._path(best), False, best, False)
                    cost = self.cost[following.key]
                    entry = (cost, self._left(following), self._rank(state, move), len(self.cost), following)
                    heapq.heappush(queue, entry)
        return Order(self._path(best), False, best, True)

    def _cheaper(self, state: State, move: Move, following: State) -> bool:
        """Is this the cheapest way to the state so far? It is then the one that is remembered."""
        cost = self.cost[state.key] + self._price(state, move, following)
        if following.key in self.cost and self.cost[following.key] <= cost:
            return False
        self.cost[following.key] = cost
        self.came[following.key] = (state.key, move)
        return True

    def _path(self, state: State) -> tuple[Move, ...]:
        moves = []
        key = state.key
        while key in self.came:
            key, move = self.came[key]
            moves.append(move)
        return tuple(reversed(moves))

    def _left(self, state: State) -> int:
        done = len(state.arrived) + len(state.gone)
        return len(self.m.incoming) + len(self.m.outgoing) + len(state.hops) - done

    def _price(self, state: State, move: Move, following: State) -> int:
        if self.help is Help.HOPS:
            return self.m.size_mb[move.dataset] if move.hop and move.arrives else 0
        return sum(following.lent_mb) - sum(state.lent_mb)

    def _rank(self, state: State, move: Move) -> tuple[int, int]:
        """Among moves of equal cost: deletions, then copies that let an old replica go, large ones first."""
        if not move.arrives:
            return 0, 0
        releases = any(pair not in state.gone for pair in self.m.outgoing_of[move.dataset])
        return 1 if releases else 2, -self.m.size_mb[move.dataset]

    def _run_ahead(self, state: State) -> State:
        """Make every move that can do no harm, whatever comes later. Room and replicas may be what a detour needs, so
        with hops there is no such move."""
        move = None if self.help is Help.HOPS else self._harmless(state)
        while move is not None:
            following = self._after(state, move)
            self._cheaper(state, move, following)
            state = following
            move = self._harmless(state)
        return state

    def _harmless(self, state: State) -> Move | None:
        """A copy to a region with room for all that is still to come, or a deletion that is due in any case."""
        m = self.m
        for r, datasets in enumerate(m.incoming_at):
            waits = [i for i in datasets if (i, r) not in state.arrived]
            if sum(m.size_mb[i] for i in waits) <= state.free_mb[r]:
                for i in waits:
                    sources = m.sources(i, r, self._holders(state, i))
                    if sources is not None:
                        return Move(i, r, arrives=True, sources=sources)
        for i, r in m.outgoing:
            if (i, r) not in state.gone:
                waiting = any(pair not in state.arrived for pair in m.incoming_of[i])
                going = sum(pair not in state.gone for pair in m.outgoing_of[i])
                if len(self._holders(state, i)) - going >= m.floor[i] and not (waiting and m.link_kb is not None):
                    return Move(i, r, arrives=False)
        return None

    def _moves(self, state: State) -> Iterator[Move]:
        """Every move that is possible in a state."""
        m = self.m
        for i, r in m.outgoing:
            if (i, r) not in state.gone and self._may_go(state, i, r):
                yield Move(i, r, arrives=False)
        for i, r in sorted(state.hops):
            if self._may_go(state, i, r):
                yield Move(i, r, arrives=False, hop=True)
        for i, r in m.incoming:
            if (i, r) not in state.arrived and (self.help is Help.ROOM or m.size_mb[i] <= state.free_mb[r]):
                sources = m.sources(i, r, self._holders(state, i))
                if sources is not None:
                    yield Move(i, r, arrives=True, sources=sources)
        if self.help is Help.HOPS:
            yield from self._hops(state)

    def _hops(self, state: State) -> Iterator[Move]:
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

    def _holders(self, state: State, i: int) -> frozenset[int]:
        m = self.m
        held = {r for r in m.stored_at[i] if (i, r) not in state.gone}
        held.update(r for _, r in m.incoming_of[i] if (i, r) in state.arrived)
        held.update(r for j, r in state.hops if j == i)
        return frozenset(held)

    def _may_go(self, state: State, i: int, r: int) -> bool:
        """Enough replicas stay, and every copy still to come that has a source now has one then."""
        m, holders = self.m, self._holders(state, i)
        stay = holders - {r}
        if len(stay) < m.floor[i]:
            return False
        waits = [to for _, to in m.incoming_of[i] if (i, to) not in state.arrived]
        return all(m.sources(i, to, stay) is not None for to in waits if m.sources(i, to, holders) is not None)

    def _after(self, state: State, move: Move) -> State:
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
    return (*amounts[:at], amount, *amounts[at + 1 :])
