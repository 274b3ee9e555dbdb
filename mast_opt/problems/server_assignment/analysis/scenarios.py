"""Scenarios of server assignment: what can happen to a fleet and its reservations, as keys of a scenario.

Servers and reservations keep their positions, so that a plan of the instance can be checked against what has become
of it: lost servers become those of a new type that is worth nothing to anybody, and belong to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.core.wording import unused, unused_labels
from mast_opt.problems.kind.analysis_hooks import PLAUSIBLE_GROWTH, Change
from mast_opt.problems.kind.scenario_values import factors, grown, positions, records, reweighted, whole
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import Bools, ServerAssignment

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
    p = problem
    return replace(
        p,
        types=(*p.types, unused(LOST, p.types)),
        reservations=replace(
            p.reservations,
            value_mrru=np.concatenate(
                [p.reservations.value_mrru, np.zeros((len(p.reservations), 1), np.int64)], axis=1
            ),
        ),
        servers=replace(
            p.servers,
            type=np.where(lost, len(p.types), p.servers.type),
            owner=np.where(lost, len(p.reservations), p.servers.owner),
            in_use=p.servers.in_use & ~lost,
        ),
    )


def grow_demand(problem: ServerAssignment, value: object) -> ServerAssignment:
    """Multiply what reservations ask for by a factor, of all or by reservation, rounded up."""
    times = factors("grow_demand", "reservation", problem.reservations.labels, value)
    return replace(
        problem,
        reservations=replace(
            problem.reservations, asked_mrru=grown("grow_demand", problem.reservations.asked_mrru, times)
        ),
    )


def add_servers(problem: ServerAssignment, value: object) -> ServerAssignment:
    """New servers without a reservation, in a rack of their own."""
    p = problem
    for record in records("add_servers", {"switchboard": p.switchboards.labels, "type": p.types}, "servers", value):
        count = whole("add_servers.servers", record.amount, 1)
        rack = unused("new-rack", p.racks.labels)
        p = replace(
            p,
            racks=replace(
                p.racks,
                labels=(*p.racks.labels, rack),
                switchboard=np.append(p.racks.switchboard, record.at["switchboard"]),
            ),
            servers=replace(
                p.servers,
                labels=(*p.servers.labels, *unused_labels("new-server", p.servers.labels, count)),
                type=np.append(p.servers.type, np.full(count, record.at["type"])),
                rack=np.append(p.servers.rack, np.full(count, len(p.racks))),
                owner=np.append(p.servers.owner, np.full(count, len(p.reservations))),
                in_use=np.append(p.servers.in_use, np.zeros(count, np.bool_)),
            ),
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
