"""Generated fleets of server assignment: several generations in racks, at switchboards, in datacenters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.server_assignment.problem import Ints

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
    """Names that sort in the order of their numbers, as in s001, s002."""
    width = len(str(count))
    return tuple(f"{letter}{number:0{width}}" for number in range(1, count + 1))


def _drawn(rng: np.random.Generator, chance: NDArray[np.float64]) -> Ints:
    """A position for each row, with the row's chances."""
    level = rng.random(len(chance))
    drawn = (np.cumsum(chance, axis=1) < level[:, None]).sum(axis=1)
    return np.asarray(np.minimum(drawn, chance.shape[1] - 1), np.int64)
