"""The server-assignment problem (RAS): which servers form which reservation, surviving the loss of a failure domain.

A rack hangs from a switchboard, a switchboard is in a datacenter; the switchboard is the failure domain. Capacity is in
relative resource units (RRU), here in thousandths (mrru); what a server is worth depends on its type and on who has it.
Index letters, here and everywhere: s server, t type, r rack, b switchboard, d datacenter, q reservation, e class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import Arrays, amounts, flags, positions, scalars
from mast_opt.core.errors import Fault, InstanceError
from mast_opt.kind.header import Objective, term_faults
from mast_opt.kind.problem import Problem
from mast_opt.server_assignment.server_classes import ServerClasses, partition

if TYPE_CHECKING:
    from mast_opt.server_assignment.plan import Plan  # noqa: F401 - named in a string below

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TERMS: Mapping[str, float] = {
    "shortfall": 1000.0,
    "moves_in_use": 10.0,
    "moves_idle": 1.0,
    "spread": 1.0,
    "buffer": 1.0,
    "affinity": 1.0,
    "use": 0.1,
    "repair": 100.0,
}
"""Objective term → its default weight. What each measures: ``docs/problems/server-assignment.md``."""
SHARE = 1000
"""Shares (spread limits, affinities) are integers out of this many."""
BUFFERS = ("embedded", "shared", "none", "pool")
"""How a reservation survives the loss of a switchboard: with servers of its own, with those of the pool, not at all;
or it is the pool."""
EMBEDDED, SHARED, NONE, POOL = range(4)
LARGEST = 2**53 // SHARE
"""Up to here (in mrru) sums of capacity, also multiplied by a share, are exact as int64 and as float64."""
SCALARS = {"name": str, "objective": Objective, "provenance": str}
COLUMNS = (
    positions("switchboard_datacenter", "switchboards", "datacenters"),
    positions("rack_switchboard", "racks", "switchboards"),
    positions("server_type", "servers", "types"),
    positions("server_rack", "servers", "racks"),
    positions("owner", "servers", "reservations", beyond=1),
    flags("in_use", "servers"),
    amounts("asked_mrru", "reservations"),
    amounts("buffer", "reservations", most=len(BUFFERS) - 1),
    flags("spread_limited", "reservations"),
    amounts("spread_limit_milli", "reservations", total=False),
    amounts("value_mrru", "reservations", "types", total=False),
    positions("affinity_reservation", "affinities", "reservations"),
    positions("affinity_datacenter", "affinities", "datacenters"),
    amounts("affinity_share_milli", "affinities", most=SHARE),
    amounts("affinity_tolerance_milli", "affinities", most=SHARE),
)


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
class ServerAssignment(Problem["Plan"]):
    """One instance, validated. Arrays are read-only; S, T, R, B, D, Q count servers, types, racks, switchboards,
    datacenters, reservations.

    Raises:
        InstanceError: arrays that do not fit one another or hold values out of range, or an objective that would rather
            move servers in use than idle ones; it lists every fault.
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
        check = Arrays(self)
        check.faults += scalars(self, SCALARS)
        check.faults += term_faults(self.objective, TERMS)
        if isinstance(self.objective, Objective):
            check.faults += weight_faults(self.name, self.objective)
        for name in ("datacenters", "switchboards", "types", "reservations", "servers"):
            check.labels(name)
        check.labels("racks", unique=False)
        check.take(*COLUMNS)
        if not check.faults:
            self._check_rows(check)
        if check.faults:
            raise InstanceError(check.faults)

    def _check_rows(self, check: Arrays) -> None:
        """Faults of sound arrays that only several of them show."""
        check.key("affinity_reservation", "affinity_datacenter")
        pools = np.flatnonzero(self.buffer == POOL)
        if len(pools) > 1:
            check.fault(f"buffer[{pools[1]}]", "one pool at most", str(POOL))
        shared = np.flatnonzero(self.buffer == SHARED)
        if len(shared) and not len(pools):
            check.fault(f"buffer[{shared[0]}]", f"a reservation with buffer {POOL}, the pool, where any is shared", "1")
        share = self.spread_limit_milli.astype(np.float64) * self.asked_mrru
        check.wrong("spread_limit_milli", share > LARGEST * SHARE, "a smaller product with asked_mrru")
        for name, total in (
            ("asked_mrru", self.asked_mrru.sum(dtype=np.float64)),
            ("value_mrru", float(self.value_mrru.max(initial=0)) * len(self.servers)),
        ):
            if total > LARGEST:
                check.fault(name, f"at most {LARGEST} over all servers, so that sums stay exact", f"{total:g}")

    @cached_property
    def server_switchboard(self) -> Ints:
        """Switchboard [S] of each server."""
        return self.rack_switchboard[self.server_rack]

    @cached_property
    def owned(self) -> Bools:
        """Mask [S] of the servers that somebody has today."""
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
    def stocks(self) -> ServerClasses:
        """Servers of a type at a switchboard, whoever has them: what the exact formulation counts."""
        return partition(self.server_type, self.server_switchboard)

    @cached_property
    def rack_stocks(self) -> ServerClasses:
        """Servers of a type in a rack, whoever has them: what the second phase counts."""
        return partition(self.server_type, self.server_rack)

    @cached_property
    def classes(self) -> ServerClasses:
        """Servers of a type at a switchboard with the same owner, all in use or all not."""
        return partition(self.server_type, self.server_switchboard, self.owner, self.working)

    @cached_property
    def rack_classes(self) -> ServerClasses:
        """Servers of a type in a rack with the same owner, all in use or all not."""
        return partition(self.server_type, self.server_rack, self.owner, self.working)
