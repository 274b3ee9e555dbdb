"""The standard fleet in other states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.server_assignment.generate.standard import drifted
from mast_opt.server_assignment.problem import ServerAssignment


def fresh(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """Nobody has a server yet; what is asked could be met as in standard."""
    problem = drifted(rng, servers, reservations, datacenters, name="fresh")
    return replace(problem, owner=np.full(servers, reservations), in_use=np.zeros(servers, np.bool_))


def scarce(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """A quarter more is asked than today's assignment guarantees; the free servers are not enough."""
    return drifted(rng, servers, reservations, datacenters, name="scarce", growth=1.25)


def crowded(rng: np.random.Generator, *, servers: int, reservations: int, datacenters: int) -> ServerAssignment:
    """Servers were handed out one switchboard after another: that breaks spread limits and guarantees little."""
    return drifted(rng, servers, reservations, datacenters, name="crowded", growth=1.1, scattered=False)
