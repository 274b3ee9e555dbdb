"""Analysis hooks of server assignment, which is never infeasible: changing nothing is a plan."""

from __future__ import annotations

import numpy as np

from mast_opt.core.verdict import Violation
from mast_opt.core.wording import counted
from mast_opt.problems.kind.analysis_hooks import Alternative, AnalysisHooks, Decisions
from mast_opt.problems.server_assignment.analysis.scenarios import CHANGES, adapted, moved
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import ServerAssignment
from mast_opt.problems.server_assignment.server_classes import partition


def now(problem: ServerAssignment, plan: Plan, q: int) -> str:
    """``12 servers at 3 switchboards``."""
    held = np.flatnonzero(plan.reservation == q)
    boards = len(np.unique(problem.server_switchboard[held]))
    return f"{counted(len(held), 'server')} at {counted(boards, 'switchboard')}"


def alternatives(problem: ServerAssignment, plan: Plan, q: int) -> tuple[Alternative, ...]:
    """Every change of one server that the reservation gives away or receives, one for each group of servers that no
    limit and no cost distinguishes. It receives only what is worth something to it or what it has today."""
    p = problem
    nobody = len(p.reservations)
    groups = partition(p.classes.of, plan.reservation)
    found = []
    for server in groups.first.tolist():
        holder, kind = int(plan.reservation[server]), int(p.servers.type[server])
        board = p.switchboards.labels[int(p.server_switchboard[server])]
        which = _which(p, plan, server)
        if holder != q:
            if p.reservations.value_mrru[q, kind] or p.servers.owner[server] == q:
                source = "nobody" if holder == nobody else p.reservations.labels[holder]
                found.append(_handed(plan, server, q, f"with one {which} more at {board}, from {source}", board))
            continue
        found.append(_handed(plan, server, nobody, f"without one {which} at {board}", board))
        for r in np.flatnonzero(
            (p.reservations.value_mrru[:, kind] > 0) | (np.arange(nobody) == p.servers.owner[server])
        ).tolist():
            if r != q:
                words = f"without one {which} at {board}, given to {p.reservations.labels[r]}"
                found.append(_handed(plan, server, r, words, board))
    return tuple(found)


def _which(problem: ServerAssignment, plan: Plan, server: int) -> str:
    """The server's type, and what sets it apart: who else has it today, and whether work runs on it."""
    kind, owner = problem.types[int(problem.servers.type[server])], int(problem.servers.owner[server])
    marks = []
    if owner != plan.reservation[server]:
        marks.append(f"{problem.reservations.labels[owner] if problem.owned[server] else 'nobody'} has it today")
    if problem.working[server]:
        marks.append("in use")
    return f"{kind} ({', '.join(marks)})" if marks else kind


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
    order: list[int] = np.argsort(-problem.reservations.asked_mrru, kind="stable").tolist()
    return order


QUESTIONS = AnalysisHooks(
    choices=(
        Decisions(
            "reservation", lambda problem: problem.reservations.labels, _largest, now, alternatives, phrase, "holds"
        ),
    ),
    changes=CHANGES,
    moved=moved,
    adapted=adapted,
    guards=lambda problem: ("shortfall",),
    ahead={"moves_idle": "moves_in_use"},
)
