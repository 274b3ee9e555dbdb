"""Analysis hooks of server assignment, which is never infeasible: changing nothing is a plan.

In scenarios servers and reservations keep their positions, so that a plan of the instance can be checked against what
has become of it: lost servers become those of a new type that is worth nothing to anybody, and belong to nobody.
"""

from collections.abc import Mapping

import numpy as np

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.core.verdict import Violation
from mast_opt.core.wording import counted, unused, unused_labels
from mast_opt.problems.kind.analysis_hooks import PLAUSIBLE_GROWTH, Alternative, AnalysisHooks, Change, Decisions
from mast_opt.problems.kind.scenario_values import factors, grown, positions, records, reweighted, whole
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import Bools, ServerAssignment
from mast_opt.problems.server_assignment.server_classes import partition

LOST = "lost"
"""Type of servers that are gone; with a number where the instance has a type of this name."""


def lose_switchboards(problem: ServerAssignment, value: object) -> ServerAssignment:
    """The instance whose servers behind these switchboards are worth nothing and nobody's."""
    lost = positions("lose_switchboards", "switchboard", problem.switchboards.labels, value)
    return _lose(problem, np.isin(problem.server_switchboard, lost))


def lose_datacenters(problem: ServerAssignment, value: object) -> ServerAssignment:
    """The instance whose servers in these datacenters are worth nothing and nobody's."""
    lost = positions("lose_datacenters", "datacenter", problem.datacenters, value)
    return _lose(problem, np.isin(problem.switchboards.datacenter[problem.server_switchboard], lost))


def _lose(problem: ServerAssignment, lost: Bools) -> ServerAssignment:
    """The server assignment after these servers are lost: they are of a type without value."""
    p = problem
    worthless = np.zeros((len(p.reservations), 1), np.int64)
    return p.with_columns(
        {
            "types": (*p.types, unused(LOST, p.types)),
            "reservations.value_mrru": np.append(p.reservations.value_mrru, worthless, axis=1),
            "servers.type": np.where(lost, len(p.types), p.servers.type),
            "servers.owner": np.where(lost, len(p.reservations), p.servers.owner),
            "servers.in_use": p.servers.in_use & ~lost,
        }
    )


def grow_demand(problem: ServerAssignment, value: object) -> ServerAssignment:
    """Multiply what reservations ask for by a factor, of all or by reservation, rounded up."""
    times = factors("grow_demand", "reservation", problem.reservations.labels, value)
    more = grown("grow_demand", problem.reservations.asked_mrru, times)
    return problem.with_columns({"reservations.asked_mrru": more})


def add_servers(problem: ServerAssignment, value: object) -> ServerAssignment:
    """New servers without a reservation, in a rack of their own."""
    p = problem
    for record in records("add_servers", {"switchboard": p.switchboards.labels, "type": p.types}, "servers", value):
        count = whole("add_servers.servers", record.amount, 1)
        rack = unused("new-rack", p.racks.labels)
        p = p.with_columns(
            {
                "racks": p.racks.appended(labels=(rack,), switchboard=np.array([record.at["switchboard"]])),
                "servers": p.servers.appended(
                    labels=unused_labels("new-server", p.servers.labels, count),
                    type=np.full(count, record.at["type"]),
                    rack=np.full(count, len(p.racks)),
                    owner=np.full(count, len(p.reservations)),
                    in_use=np.zeros(count, np.bool_),
                ),
            }
        )
    return p


def other_weights(problem: ServerAssignment, value: object) -> ServerAssignment:
    """Other weights; moves_in_use stays at least as high as moves_idle, as when an instance is read."""
    try:
        changed: ServerAssignment = reweighted(problem, value)
    except InstanceError as error:
        raise UsageError(
            "weights: moves_in_use needs at least the weight of moves_idle: idle servers always move first"
        ) from error
    return changed


CHANGES = {
    "lose_switchboards": Change(
        lose_switchboards, 'lose_switchboards = ["sb1"]', "switchboards with all servers there"
    ),
    "lose_datacenters": Change(lose_datacenters, 'lose_datacenters = ["dc1"]', "datacenters with all servers there"),
    "grow_demand": Change(
        grow_demand, "grow_demand = { training = 1.2 }", "what is asked, times a factor", plausible=PLAUSIBLE_GROWTH
    ),
    "add_servers": Change(
        add_servers, 'add_servers = [{ switchboard = "sb1", type = "gpu", servers = 8 }]', "new servers, nobody's"
    ),
    "weights": Change(other_weights, "weights = { moves_in_use = 1 }", "other weights of terms of the objective"),
}


def adapted(scenario: ServerAssignment, plan: Plan) -> Plan:
    """The plan with new servers assigned to no reservation."""
    new = len(scenario.servers) - len(plan.reservation)
    return Plan(np.append(plan.reservation, np.full(new, len(scenario.reservations))))


def moved(problem: ServerAssignment, scenario: ServerAssignment, before: Plan, after: Plan) -> Mapping[str, float]:
    """Servers that change hands; new ones count where somebody gets them, lost ones do not count."""
    changed = adapted(scenario, before).reservation != after.reservation
    there = len(problem.servers)
    changed[:there] &= scenario.servers.type[:there] == problem.servers.type
    return {"reassigned_servers": float(changed.sum())}


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
    """Alternative of a server assignment: one server handed to another reservation, or to nobody."""
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
    """Reservations by what they ask for, in RRUs, the most first."""
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
