"""From today's replicas to the plan's: copies and deletions, day by day, within storage, ingress and links."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.data_placement.moving import Moving
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.steps_days import Step, in_days
from mast_opt.data_placement.steps_search import Help, search


@dataclass(frozen=True)
class Blocked:
    """A replica that cannot arrive, and the room that is missing for it when nothing else moves any more."""

    dataset: int
    region: int
    missing_mb: int
    """0 where no region that holds the dataset reaches this one."""


@dataclass(frozen=True)
class Room:
    """Room that a region would have to be lent."""

    region: int
    mb: int


@dataclass(frozen=True)
class Steps:
    """The steps in order, and what stands in the way where the plan's own moves alone have no order."""

    steps: tuple[Step, ...]
    blocked: tuple[Blocked, ...]
    """What does not arrive; empty where the steps lead to the plan."""
    deadlock: tuple[Blocked, ...]
    """What could not arrive without replicas in between; empty where the plan's own moves have an order."""
    room: tuple[Room, ...]
    """The least temporary room, added over the regions, with which the plan's own moves have an order."""
    proven: bool
    """True: the deadlock, the least volume in between and the least room come from exhaustive searches."""

    @property
    def days(self) -> int:
        return max((step.day + step.days for step in self.steps), default=0)

    @property
    def waves(self) -> int:
        return max((step.wave + 1 for step in self.steps), default=0)


def steps(problem: DataPlacement, plan: Plan) -> Steps:
    """An order of copies and deletions from today's replicas to those of a plan without violations.

    A replica takes its whole room from the moment that its copy begins until it is deleted, so that both are there
    while a dataset moves. No dataset ever has fewer whole replicas than it must have (or than it has today or in the
    plan, if that is less). Each day, copies into a region stay within its ingress, and copies over a link within what
    the plan's remote reads leave of it. A region that holds too much today takes in nothing until it has room.

    Where that has no order, the smallest volume of replicas in between that gives one is used; where none does, the
    steps go as far as they get.
    """
    moving = Moving(problem, plan)
    plain = search(moving, Help.NOTHING)
    if plain.complete:
        return Steps(in_days(moving, plain.moves), (), (), (), True)
    stuck = tuple(
        Blocked(i, r, max(moving.size_mb[i] - plain.end.free_mb[r], 0))
        for i, r in moving.incoming
        if (i, r) not in plain.end.arrived
    )
    lent = search(moving, Help.ROOM)
    room = tuple(Room(r, mb) for r, mb in enumerate(lent.end.lent_mb) if mb) if lent.complete else ()
    detour = search(moving, Help.HOPS)
    if not detour.complete and not detour.exhaustive:
        detour = search(moving, Help.HOPS, after=plain)
    proven = plain.exhaustive and lent.exhaustive and detour.exhaustive
    if detour.complete:
        return Steps(in_days(moving, detour.moves), (), stuck, room, proven)
    return Steps(in_days(moving, plain.moves), stuck, stuck, room, proven)
