"""Instance family ``standard`` of server assignment: re-assigned twice an hour, demand has drifted a little.

Reservations come with what they are worth, have today and ask.

Generated fleets of server assignment: several generations in racks, at switchboards, in datacenters.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.server_assignment.entities import Affinities, Racks, Reservations, Servers, Switchboards
from mast_opt.problems.server_assignment.problem import (
    EMBEDDED,
    NONE,
    POOL,
    SHARE,
    SHARED,
    TERMS,
    Bools,
    Ints,
    ServerAssignment,
)
from mast_opt.problems.server_assignment.verification.measures import Measure

RACK = 24
"""Servers in a rack."""
MOST_BOARDS = 36
"""Switchboards in a datacenter of full size, so that each is under 3% of it."""
TYPES = ("compute-1", "compute-2", "compute-3", "gpu-1", "gpu-2")
"""Generations; a rack holds servers of one."""
SPEED = np.array([1.0, 1.4, 1.9, 1.0, 2.2])
"""Work done, as compared with the first of the kind."""
GPU = np.array([False, False, False, True, True])
MIX = np.array([0.25, 0.3, 0.25, 0.1, 0.1])
"""Usual share of racks."""


@dataclass(frozen=True)
class GeneratedFleet:
    """Place and type of each server."""

    switchboard_datacenter: Ints
    rack_switchboard: Ints
    server_rack: Ints
    server_type: Ints


def fleet(rng: np.random.Generator, servers: int, datacenters: int) -> GeneratedFleet:
    """Racks of one type each, with another mix of types in every datacenter; small fleets have fewer switchboards."""
    boards = datacenters * int(np.clip(servers // (4 * datacenters), 1, MOST_BOARDS))
    size = int(np.clip(servers // (4 * boards), 1, RACK))
    racks = -(-servers // size)
    rack_switchboard = np.arange(racks) * boards // racks
    switchboard_datacenter = np.arange(boards) * datacenters // boards
    mix = rng.dirichlet(20 * MIX, datacenters)
    place = switchboard_datacenter[rack_switchboard]
    rack_type = _drawn(rng, mix[place])
    server_rack = np.arange(servers) // size
    return GeneratedFleet(switchboard_datacenter, rack_switchboard, server_rack, rack_type[server_rack])


def labels(letter: str, count: int) -> tuple[str, ...]:
    """Names of generated servers and reservations that sort in the order of their numbers, as in s001, s002."""
    width = len(str(count))
    return tuple(f"{letter}{number:0{width}}" for number in range(1, count + 1))


def _drawn(rng: np.random.Generator, chance: NDArray[np.float64]) -> Ints:
    """A random position for each generated server's row, with the row's chances."""
    level = rng.random(len(chance))
    drawn = (np.cumsum(chance, axis=1) < level[:, None]).sum(axis=1)
    return np.asarray(np.minimum(drawn, chance.shape[1] - 1), np.int64)


Floats = NDArray[np.float64]
GPU_CLAIMS = 0.25
"""Share of reservations that need GPUs."""
FUSSY = 0.25
"""Share of the others that take only the newer generations."""


def values(rng: np.random.Generator, reservations: int) -> Ints:
    """[Q, T] mrru of a server of each type: newer generations are worth more, to some claims much more."""
    on_gpus = rng.random(reservations) < GPU_CLAIMS
    on_gpus[0] = False
    fussy = rng.random(reservations) < FUSSY
    gain = rng.uniform(0.3, 1.2, reservations)
    worth = np.round(100 * SPEED ** gain[:, None]).astype(np.int64) * 10
    usable = on_gpus[:, None] == GPU
    usable[:, 0] &= ~fussy
    return np.where(usable, worth, 0)


def sizes(rng: np.random.Generator, reservations: int) -> Floats:
    """[Q] relative sizes: a few claims take most of the fleet."""
    return np.minimum(rng.pareto(1.2, reservations) + 0.2, 12.0)


def owners(
    rng: np.random.Generator, fleet: GeneratedFleet, value: Ints, size: Floats, *, free: float, scattered: bool = True
) -> Ints:
    """[S] which reservation has each generated server, in proportion to the sizes of those that can use it; Q for the
    free ones.

    ``scattered``: servers are handed out all over the fleet, not one switchboard after another.
    """
    nobody = len(value)
    owner = np.full(len(fleet.server_type), nobody, np.int64)
    for kind in range(value.shape[1]):
        mine = np.flatnonzero(fleet.server_type == kind)
        weight = np.where(value[:, kind] > 0, size, 0.0)
        if not weight.any():
            continue
        edge = np.round(np.cumsum(weight) / weight.sum() * (1 - free) * len(mine)).astype(np.int64)
        spots = rng.permutation(mine) if scattered else mine
        handed = np.repeat(np.arange(nobody), np.diff(edge, prepend=0))
        owner[spots[: len(handed)]] = handed
    return owner


def buffers(rng: np.random.Generator, reservations: int) -> Ints:
    """[Q] most are embedded; where there are five claims or more, the last is a pool for those that share."""
    if reservations < 5:
        return np.full(reservations, EMBEDDED)
    buffer = rng.choice([EMBEDDED, SHARED, NONE], reservations, p=[0.75, 0.15, 0.1])
    buffer[-1] = POOL
    return buffer.astype(np.int64)


def limits(rng: np.random.Generator, asked: Ints, buffer: Ints, boards: int) -> tuple[Bools, Ints]:
    """Mask of the claims that have a spread limit, and the limits in thousandths: three times an even share, and never
    less than two good servers."""
    limited = (rng.random(len(asked)) < 0.5) & (buffer == EMBEDDED) & (asked > 0)
    few = 2 * 1000 * SPEED.max() / np.maximum(asked, 1)
    limit = np.ceil(1000 * np.clip(np.maximum(3 / boards, few), 0, 1)).astype(np.int64)
    return limited, np.where(limited, limit, 0)


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
    """The standard fleet; ``growth`` multiplies what is asked, ``scattered`` is for ``owners``."""
    place = fleet(rng, servers, datacenters)
    value = values(rng, reservations)
    buffer = buffers(rng, reservations)
    size = sizes(rng, reservations)
    if (buffer == POOL).any():
        value[-1] = np.where((value[:-1] > 0).any(axis=0), 1000, 0)
        size[-1] = size.sum() / 100
    owner = owners(rng, place, value, size, free=FREE, scattered=scattered)
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
    limited, limit = limits(rng, asked, problem.reservations.buffer, len(problem.switchboards))
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
