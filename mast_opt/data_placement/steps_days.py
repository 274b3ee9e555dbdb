"""From an order of moves to days: as much at once as storage, ingress and links allow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from mast_opt.data_placement.moving import Moving
from mast_opt.data_placement.problem import SHARE
from mast_opt.data_placement.steps_search import Move


@dataclass(frozen=True)
class Step:
    """A copy, the part of one that a day takes, or a deletion. Steps of the same wave may run at the same time."""

    day: int
    """0, 1, …"""
    days: int
    """How many days on end this volume is copied, from ``day`` on."""
    wave: int
    """0, 1, …; a deletion makes room for the waves after it, a copy holds its whole room from its first step on."""
    dataset: int
    region: int
    """Where the replica arrives or goes."""
    source: int | None
    """None for a deletion, and for an upload from outside."""
    kb: int
    """Copied on each of the days, in thousandths of a MB; 0 for a deletion."""
    deletes: bool = False
    hop: bool = False
    """Of a replica in between that the plan does not have."""


def in_days(moving: Moving, moves: tuple[Move, ...]) -> tuple[Step, ...]:
    """The steps of an order.

    In each region and for each dataset the order is kept, so every region holds at every moment what it holds at some
    moment of the order; moves that share neither run at the same time.
    """
    calendar = _Calendar(moving, moves)
    while calendar.open:
        calendar.spend_day()
    return tuple(calendar.steps)


class _Calendar:
    def __init__(self, moving: Moving, moves: tuple[Move, ...]) -> None:
        self.m = moving
        self.moves = moves
        self.open = list(range(len(moves)))
        self.left_kb: dict[int, dict[int | None, int]] = {}
        """Move under way → what is still to come from each source."""
        self.steps: list[Step] = []
        self.day = 0
        self.wave = 0

    def spend_day(self) -> None:
        """Waves until nothing more can happen today."""
        self.ingress = list(self.m.ingress_kb)
        self.links = None if self.m.link_kb is None else dict(self.m.link_kb)
        only_transfers = True
        first = len(self.steps)
        while True:
            before = len(self.steps)
            settled = self._spend_wave()
            if len(self.steps) == before and not settled:
                break
            only_transfers &= not settled
            self.wave += len(self.steps) > before
        if only_transfers and len(self.steps) > first:
            self._repeat(first)
        elif len(self.steps) == first and self.open and not settled:
            raise ValueError("a copy of the plan has no way to its region: a link or an ingress of capacity 0")
        self.day += 1

    def _spend_wave(self) -> bool:
        """One step of every move that can make one; did any begin or end?"""
        begun: list[int] = []
        for at in self.open:
            if at not in self.left_kb and self._may_begin(at, begun):
                begun.append(at)
        ended = []
        for at in begun:
            move = self.moves[at]
            if move.arrives:
                self.left_kb[at] = self._volumes(move)
            else:
                self.steps.append(Step(self.day, 1, self.wave, move.dataset, move.region, None, 0, True, move.hop))
                ended.append(at)
        for at in [at for at in self.open if at in self.left_kb]:
            self._transfer(at)
            if not any(self.left_kb[at].values()):
                ended.append(at)
        self.open = [at for at in self.open if at not in ended]
        return bool(begun or ended)

    def _may_begin(self, at: int, begun: Collection[int]) -> bool:
        """Has every earlier move that this one waits for ended or, where that is enough, begun?"""
        move = self.moves[at]
        for earlier in self.open:
            if earlier >= at:
                return True
            other = self.moves[earlier]
            if other.arrives and other.dataset == move.dataset:
                needed = not move.arrives or other.region in {q for q, _ in move.sources}
                if needed:
                    return False
            if move.arrives and other.region == move.region:
                under_way = other.arrives and (earlier in self.left_kb or earlier in begun)
                if not under_way:
                    return False
        return True

    def _volumes(self, move: Move) -> dict[int | None, int]:
        size = self.m.size_mb[move.dataset]
        return {q: size * share for q, share in move.sources} if move.sources else {None: size * SHARE}

    def _transfer(self, at: int) -> None:
        """Copy what the day still allows."""
        move, left = self.moves[at], self.left_kb[at]
        for source, wanted in left.items():
            amount = wanted
            room = self.ingress[move.region]
            if room is not None:
                amount = min(amount, room)
            if self.links is not None and source is not None:
                amount = min(amount, self.links.get((source, move.region), 0))
            if amount > 0 or not self.m.size_mb[move.dataset]:
                if room is not None:
                    self.ingress[move.region] = room - amount
                if self.links is not None and source is not None:
                    self.links[source, move.region] -= amount
                left[source] = wanted - amount
                step = Step(self.day, 1, self.wave, move.dataset, move.region, source, amount, False, move.hop)
                self.steps.append(step)

    def _repeat(self, first: int) -> None:
        """A day that only went on with copies is like those after it, until one of them ends."""
        under_way = {
            (self.moves[at].dataset, self.moves[at].region): self.left_kb[at] for at in self.open if at in self.left_kb
        }
        today = self.steps[first:]
        more = min((under_way[step.dataset, step.region][step.source] - 1) // step.kb for step in today)
        if more > 0:
            self.steps[first:] = [replace(step, days=1 + more) for step in today]
            for step in today:
                under_way[step.dataset, step.region][step.source] -= more * step.kb
            self.day += more
