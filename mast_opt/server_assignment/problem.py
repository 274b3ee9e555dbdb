"""The server-assignment problem (RAS): which servers form which reservation, surviving the loss of a failure domain.

A rack hangs from a switchboard, a switchboard is in a datacenter; the switchboard is the failure domain. Capacity is in
relative resource units (RRU), here in thousandths (mrru); what a server is worth depends on its type and on who has it.
Index letters, here and everywhere: s server, t type, r rack, b switchboard, d datacenter, q reservation, e class.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.errors import Fault, InstanceError
from mast_opt.header import Objective
from mast_opt.server_assignment.classes import Classes, partition

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SHARE = 1000
"""Shares (spread limits, affinities) are integers out of this many."""
BUFFERS = ("embedded", "shared", "none", "pool")
"""How a reservation survives the loss of a switchboard: with servers of its own, with those of the pool, not at all;
or it is the pool."""
EMBEDDED, SHARED, NONE, POOL = range(4)


def weight_faults(place: str, objective: Objective) -> list[Fault]:
    """Counts of equal servers cannot state that idle ones stay and those in use go. ``place`` holds the objective."""
    order, weights = objective.order, objective.weights
    if order:
        wrong = "moves_idle" in order and "moves_in_use" not in order[: order.index("moves_idle")]
        what, found = "order", ", ".join(order)
    else:
        in_use, idle = (weights.get(name, 0.0) for name in ("moves_in_use", "moves_idle"))
        wrong, what, found = in_use < idle, "objective.weights", f"moves_in_use = {in_use:g}"
    expected = "moves_in_use before moves_idle, and at least its weight: idle servers always move first"
    return [Fault(place, expected, None, what, found)] if wrong else []


@dataclass(frozen=True, eq=False)
class ServerAssignment:
    """One instance, validated. Arrays are read-only; S, T, R, B, D, Q count servers, types, racks, switchboards,
    datacenters, reservations.

    Raises:
        InstanceError: the objective would rather move servers in use than idle ones.
    """

    kind: ClassVar[str] = "server-assignment"

    name: str
    datacenters: tuple[str, ...]
    switchboards: tuple[str, ...]
    racks: tuple[str, ...]
    """Unique at each switchboard."""
    types: tuple[str, ...]
    reservations: tuple[str, ...]
    servers: tuple[str, ...]

    switchboard_datacenter: Ints
    """[B]"""
    rack_switchboard: Ints
    """[R]"""

    server_type: Ints
    """[S]"""
    server_rack: Ints
    """[S]"""
    owner: Ints
    """[S] the reservation that has the server today; Q for a server that nobody has."""
    in_use: Bools
    """[S] does work run on the server? It matters only where somebody has it."""

    asked_mrru: Ints
    """[Q] capacity to be guaranteed, whichever switchboard is lost (where there is a buffer)."""
    buffer: Ints
    """[Q] position in ``BUFFERS``; at most one is the pool, and there is one where any is shared."""
    spread_limited: Bools
    """[Q]"""
    spread_limit_milli: Ints
    """[Q] the share of ``asked_mrru`` that one switchboard should hold at most; meaningful where ``spread_limited``."""
    value_mrru: Ints
    """[Q, T] what a server of the type is worth to the reservation; 0 where it is worthless."""

    affinity_reservation: Ints
    """[A] this reservation …"""
    affinity_datacenter: Ints
    """[A] … should hold in this datacenter …"""
    affinity_share_milli: Ints
    """[A] … this share of all it holds,"""
    affinity_tolerance_milli: Ints
    """[A] give or take this share of all it holds."""

    objective: Objective
    provenance: str = ""

    def __post_init__(self) -> None:
        faults = weight_faults(self.name, self.objective)
        if faults:
            raise InstanceError(faults)
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @cached_property
    def server_switchboard(self) -> Ints:
        """[S]"""
        return self.rack_switchboard[self.server_rack]

    @cached_property
    def owned(self) -> Bools:
        """[S] does anybody have the server today?"""
        return self.owner < len(self.reservations)

    @cached_property
    def working(self) -> Bools:
        """[S] in use by a reservation: taking such a server away costs ``moves_in_use``."""
        return self.in_use & self.owned

    @cached_property
    def spread_limit_mrru(self) -> Ints:
        """[Q] what one switchboard should hold at most, rounded down; meaningful where ``spread_limited``."""
        return self.spread_limit_milli * self.asked_mrru // SHARE

    @cached_property
    def buffered(self) -> Bools:
        """[Q] does the reservation keep a buffer among its own servers? The pool does, for itself and for others."""
        return np.asarray((self.buffer == EMBEDDED) | (self.buffer == POOL))

    @cached_property
    def pool(self) -> int | None:
        """The reservation that is the pool of those with a shared buffer, if there is one."""
        found = np.flatnonzero(self.buffer == POOL)
        return int(found[0]) if len(found) else None

    @cached_property
    def stocks(self) -> Classes:
        """Servers of a type at a switchboard, whoever has them: what the exact formulation counts."""
        return partition(self.server_type, self.server_switchboard)

    @cached_property
    def rack_stocks(self) -> Classes:
        """Servers of a type in a rack, whoever has them: what the second phase counts."""
        return partition(self.server_type, self.server_rack)

    @cached_property
    def classes(self) -> Classes:
        """Servers of a type at a switchboard with the same owner, all in use or all not."""
        return partition(self.server_type, self.server_switchboard, self.owner, self.working)

    @cached_property
    def rack_classes(self) -> Classes:
        """Servers of a type in a rack with the same owner, all in use or all not."""
        return partition(self.server_type, self.server_rack, self.owner, self.working)
