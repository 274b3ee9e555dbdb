"""Migration steps of a server assignment as rows: labels and words."""

from __future__ import annotations

from mast_opt.problems.kind.migration_plan import Move, Order
from mast_opt.problems.server_assignment.migration.planner import Deadlock, steps
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import ServerAssignment


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
    names = [p.reservations.labels[q] for q in deadlock.ring]
    wave = deadlock.wave + 1
    ring = " waits for ".join([*names, names[0]])
    who = p.reservations.labels[deadlock.reservation]
    if deadlock.loan:
        lent = ", ".join(p.servers.labels[server] for server in deadlock.loan)
        return f"wave {wave}: {ring}; {lent} is lent to {who} for a while"
    return f"wave {wave}: {ring}; {who} falls {deadlock.below_mrru / 1000:,g} RRU below its guarantee for a while"
