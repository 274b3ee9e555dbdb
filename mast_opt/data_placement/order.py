"""The steps of a data-placement plan in labels and words."""

from __future__ import annotations

from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.steps import Steps, steps
from mast_opt.order import Move, Order, Stuck

TB = 1e6


def order(problem: DataPlacement, plan: Plan) -> Order:
    """Copies and deletions from today's replicas to the plan's, in TB and days."""
    p = problem
    found = steps(problem, plan)
    moves = tuple(
        Move(
            wave=step.wave,
            action="delete" if step.deletes else "copy" if step.source is not None else "upload",
            what=p.datasets[step.dataset],
            source=p.regions[step.region] if step.deletes else _name(p, step.source),
            target=None if step.deletes else p.regions[step.region],
            amount=None if step.deletes else step.kb / 1000 / TB,
            day=step.day,
            days=step.days,
            hop=step.hop,
        )
        for step in found.steps
    )
    stuck = tuple(
        Stuck(
            p.datasets[blocked.dataset],
            p.regions[blocked.region],
            f"{_tb(blocked.missing_mb)} of storage are missing there"
            if blocked.missing_mb
            else "it waits for another dataset, or no region that holds it reaches this one",
        )
        for blocked in found.blocked
    )
    return Order(moves, stuck, _relief(problem, found), "TB", found.proven)


def _relief(problem: DataPlacement, found: Steps) -> tuple[str, ...]:
    """What breaks the deadlock, if there is one: the stopovers that were used, and the room that would do instead."""
    p = problem
    words = []
    stopovers = {(step.dataset, step.region) for step in found.steps if step.hop and not step.deletes}
    if stopovers:
        names = ", ".join(f"{p.datasets[i]} in {p.regions[r]}" for i, r in sorted(stopovers))
        volume = sum(int(p.size_mb[i]) for i, _ in stopovers)
        words.append(f"the plan's own moves block one another; stopovers resolve that: {names} ({_tb(volume)})")
    if found.room:
        rooms = " and ".join(f"{_tb(room.mb)} more in {p.regions[room.region]}" for room in found.room)
        words.append(f"temporary room would do {'instead' if stopovers else 'it'}: {rooms}")
    return tuple(words)


def _name(problem: DataPlacement, region: int | None) -> str | None:
    return None if region is None else problem.regions[region]


def _tb(mb: int) -> str:
    return f"{mb / TB:,.6g} TB"
