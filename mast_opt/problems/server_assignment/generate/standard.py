"""Instance family ``standard`` of server assignment: re-assigned twice an hour, demand has drifted a little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.server_assignment.entities import Affinities, Racks, Reservations, Servers, Switchboards
from mast_opt.problems.server_assignment.generate import reservations as claims
from mast_opt.problems.server_assignment.generate.fleets import TYPES, fleet, labels
from mast_opt.problems.server_assignment.problem import POOL, SHARE, TERMS, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure

FREE = 0.12
"""Share of servers without a reservation today."""
WORKING = 0.8
"""Share of servers in use among those that somebody has."""
DRIFT = 0.04
"""Spread of demand around what today guarantees (standard deviation of its logarithm)."""
SHIFT = 20
"""Spread of an affinity around the share that a claim has today in its largest datacenter, thousandths."""
TOLERANCE = 50
"""Tolerance of an affinity, in thousandths."""


def standard(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """Reservations ask what today's assignment guarantees them, up to a few percent."""
    return drifted(rng, servers, reservations, datacenters, name="standard")


def drifted(
    rng: np.random.Generator,
    servers: int,
    reservations: int,
    datacenters: int,
    *,
    name: str,
    growth: float = 1.0,
    scattered: bool = True,
) -> ServerAssignment:
    """The standard fleet; ``growth`` multiplies what is asked, ``scattered`` is for ``claims.owners``."""
    place = fleet(rng, servers, datacenters)
    value = claims.values(rng, reservations)
    buffer = claims.buffers(rng, reservations)
    size = claims.sizes(rng, reservations)
    if (buffer == POOL).any():
        value[-1] = np.where((value[:-1] > 0).any(axis=0), 1000, 0)
        size[-1] = size.sum() / 100
    owner = claims.owners(rng, place, value, size, free=FREE, scattered=scattered)
    in_use = (rng.random(servers) < WORKING) & (owner < reservations)
    nothing = np.zeros(0, np.int64)
    problem = ServerAssignment(
        name=f"{name}-{servers}x{reservations}x{datacenters}",
        provenance=f"generated: family {name}",
        datacenters=labels("dc", datacenters),
        switchboards=Switchboards(
            labels=labels("sb", len(place.switchboard_datacenter)), datacenter=place.switchboard_datacenter
        ),
        racks=Racks(labels=labels("rack", len(place.rack_switchboard)), switchboard=place.rack_switchboard),
        types=TYPES,
        reservations=Reservations(
            labels=labels("q", reservations),
            asked_mrru=np.zeros(reservations, np.int64),
            buffer=buffer,
            spread_limited=np.zeros(reservations, np.bool_),
            spread_limit_milli=np.zeros(reservations, np.int64),
            value_mrru=value,
        ),
        servers=Servers(
            labels=labels("s", servers), type=place.server_type, rack=place.server_rack, owner=owner, in_use=in_use
        ),
        affinities=Affinities(
            reservation=nothing, datacenter=nothing.copy(), share_milli=nothing.copy(), tolerance_milli=nothing.copy()
        ),
        objective=Objective(dict(TERMS)),
    )
    return _asking(rng, problem, growth)


def _asking(rng: np.random.Generator, problem: ServerAssignment, growth: float) -> ServerAssignment:
    """The problem with requests, spread limits and affinities, made from what today guarantees and holds: a reservation
    with an affinity wants about its present share of its largest datacenter."""
    now = Measure(problem, problem.servers.owner)
    drift = growth * np.exp(rng.normal(0.0, DRIFT, len(problem.reservations)))
    asked = np.floor(np.maximum(now.guaranteed, 0) * drift).astype(np.int64)
    asked[problem.reservations.buffer == POOL] = 0
    limited, limit = claims.limits(rng, asked, problem.reservations.buffer, len(problem.switchboards))
    chosen = np.flatnonzero((rng.random(len(asked)) < 0.3) & (asked > 0) & (problem.reservations.buffer != POOL))
    there = np.zeros((len(chosen), len(problem.datacenters)), np.int64)
    np.add.at(there.T, problem.switchboards.datacenter, now.held[chosen].T)
    share = SHARE * there.max(axis=1, initial=0) / np.maximum(now.total[chosen], 1)
    share = np.round(share + rng.normal(0, SHIFT, len(chosen)))
    return replace(
        problem,
        reservations=replace(problem.reservations, asked_mrru=asked, spread_limited=limited, spread_limit_milli=limit),
        affinities=replace(
            problem.affinities,
            reservation=chosen,
            datacenter=there.argmax(axis=1).astype(np.int64),
            share_milli=np.clip(share, 0, SHARE).astype(np.int64),
            tolerance_milli=np.full(len(chosen), TOLERANCE),
        ),
    )
