"""What can be asked of server assignment beyond a plan. It is never infeasible: changing nothing is a plan."""

from __future__ import annotations

import numpy as np

from mast_opt.questions import Alternative, Choices, Questions
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import Ints, ServerAssignment
from mast_opt.server_assignment.scenarios import CHANGES, adapted, moved
from mast_opt.verdict import Violation
from mast_opt.words import counted


def now(problem: ServerAssignment, plan: Plan, q: int) -> str:
    """``12 servers at 3 switchboards``."""
    held = np.flatnonzero(plan.reservation == q)
    boards = len(np.unique(problem.server_switchboard[held]))
    return f"{counted(len(held), 'server')} at {counted(boards, 'switchboard')}"


def alternatives(problem: ServerAssignment, plan: Plan, q: int) -> tuple[Alternative, ...]:
    """One server more or less of each type at each switchboard. A further one comes from nobody or, where all are
    taken, from the reservation with most of them there; of several the idle one moves."""
    p, found = problem, []
    kinds, boards = len(p.types), len(p.switchboards)
    stock = p.server_switchboard * kinds + p.server_type
    order = np.lexsort((p.in_use, stock))
    start = np.searchsorted(stock[order], np.arange(kinds * boards + 1))
    for cell in np.unique(stock).tolist():
        servers = order[start[cell] : start[cell + 1]]
        kind, board = p.types[cell % kinds], p.switchboards[cell // kinds]
        ours, others = servers[plan.reservation[servers] == q], servers[plan.reservation[servers] != q]
        if len(ours):
            found.append(_handed(plan, int(ours[0]), len(p.reservations), f"without one {kind} at {board}", board))
        if len(others) and p.value_mrru[q, cell % kinds] > 0:
            giver = _giver(p, plan, others)
            source = "nobody" if giver == len(p.reservations) else p.reservations[giver]
            server = int(others[plan.reservation[others] == giver][0])
            found.append(_handed(plan, server, q, f"with one {kind} more at {board}, from {source}", board))
    return tuple(found)


def _giver(problem: ServerAssignment, plan: Plan, servers: Ints) -> int:
    """Nobody if there is a free one, else who has most."""
    counts = np.bincount(plan.reservation[servers], minlength=len(problem.reservations) + 1)
    return len(problem.reservations) if counts[-1] else int(counts.argmax())


def _handed(plan: Plan, server: int, to: int, words: str, place: str) -> Alternative:
    reservation = plan.reservation.copy()
    reservation[server] = to
    return Alternative(words, place, Plan(reservation))


def phrase(problem: ServerAssignment, violation: Violation) -> str:
    """A broken limit in words."""
    index, over = violation.index, violation.amount / 1000
    if violation.constraint == "no_shorter":
        return f"{index[0]} lacks capacity today and would lack {over:g} RRU more"
    if violation.constraint == "no_denser":
        return f"{index[0]} is over its spread limit at {index[1]} today and would hold {over:g} RRU more there"
    if violation.constraint == "no_farther":
        return f"{index[0]} is off its share in {index[1]} today and would be off by {over:g} RRU more"
    if violation.constraint == "n":
        return f"{index[0]} at {index[1]} is worth nothing to {index[2]}"
    return str(violation)


def _largest(problem: ServerAssignment) -> list[int]:
    order: list[int] = np.argsort(-problem.asked_mrru, kind="stable").tolist()
    return order


QUESTIONS = Questions(
    choices=Choices("reservation", lambda problem: problem.reservations, _largest, now, alternatives, phrase, "holds"),
    changes=CHANGES,
    moved=moved,
    adapted=adapted,
    guards=lambda problem: ("shortfall",),
    ahead={"moves_idle": "moves_in_use"},
)
