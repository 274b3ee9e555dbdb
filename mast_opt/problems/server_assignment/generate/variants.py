"""Instance families of server assignment: variants of ``standard``, each with one feature more."""

from dataclasses import replace

import numpy as np

from mast_opt.problems.server_assignment.generate.standard import drifted
from mast_opt.problems.server_assignment.problem import POOL, ServerAssignment


def features(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """Every buffer, limits and affinities that today breaks, servers held by those that have no use for them, and
    servers in use that nobody has."""
    problem = drifted(rng, servers, reservations, datacenters, name="features", growth=1.1)
    buffer = np.zeros(reservations, np.int64)
    if reservations > 2:
        buffer = np.append(np.arange(reservations - 1) % 3, POOL)
    limited = rng.random(reservations) < 0.7
    swapped = rng.random(servers) < 0.1
    count = min(reservations, 2 + reservations // 3)
    affinity = rng.permutation(reservations)[:count]
    mixed = replace(
        problem.servers,
        owner=np.where(swapped, rng.integers(0, reservations + 1, servers), problem.servers.owner),
        in_use=problem.servers.in_use | (rng.random(servers) < 0.1),
    )
    return replace(
        problem,
        reservations=replace(
            problem.reservations,
            buffer=buffer,
            spread_limited=limited,
            spread_limit_milli=np.where(limited, rng.integers(50, 700, reservations), 0),
        ),
        servers=mixed,
        affinities=replace(
            problem.affinities,
            reservation=affinity,
            datacenter=rng.integers(0, datacenters, count),
            share_milli=rng.integers(0, 1001, count),
            tolerance_milli=rng.integers(0, 300, count),
        ),
    )


def fresh(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """Nobody has a server yet; what is asked could be met as in standard."""
    problem = drifted(rng, servers, reservations, datacenters, name="fresh")
    return replace(
        problem,
        servers=replace(problem.servers, owner=np.full(servers, reservations), in_use=np.zeros(servers, np.bool_)),
    )


def scarce(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """A quarter more is asked than today's assignment guarantees; the free servers are not enough."""
    return drifted(rng, servers, reservations, datacenters, name="scarce", growth=1.25)


def crowded(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """Servers were handed out one switchboard after another: that breaks spread limits and guarantees little."""
    return drifted(rng, servers, reservations, datacenters, name="crowded", growth=1.1, scattered=False)
