"""The server-assignment problem (RAS): which servers form which reservation, surviving the loss of a failure domain.

A rack hangs from a switchboard, a switchboard is in a datacenter; the switchboard is the failure domain. Capacity is in
relative resource units (RRU), here in thousandths (mrru); what a server is worth depends on its type and on who has it.
Index letters, here and everywhere: s server, t type, r rack, b switchboard, d datacenter, q reservation, e class.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mast_opt.core.arrays import Arrays
from mast_opt.core.errors import Fault
from mast_opt.problems.kind.header import Objective, Term
from mast_opt.problems.kind.problem_data import Bools, GroupedProblem, Ints
from mast_opt.problems.server_assignment import entities
from mast_opt.problems.server_assignment.entities import BUFFERS, EMBEDDED, LARGEST, NONE, POOL, SHARE, SHARED
from mast_opt.problems.server_assignment.server_classes import ServerClasses, partition

if TYPE_CHECKING:
    from mast_opt.problems.server_assignment.plan import Plan  # noqa: F401 - named in a string below

__all__ = [
    "BUFFERS",
    "EMBEDDED",
    "LARGEST",
    "NONE",
    "OBJECTIVE",
    "POOL",
    "SHARE",
    "SHARED",
    "TERMS",
    "Bools",
    "Ints",
    "ServerAssignment",
    "weight_faults",
]

OBJECTIVE: Mapping[str, Term] = {
    "shortfall": Term(1000.0, "share of RRU"),
    "moves_in_use": Term(10.0, "share of servers"),
    "moves_idle": Term(1.0, "share of servers"),
    "spread": Term(1.0, "share of RRU"),
    "buffer": Term(1.0, "share of RRU"),
    "affinity": Term(1.0, "share of RRU"),
    "use": Term(0.1, "share of servers"),
    "repair": Term(100.0, "share of RRU"),
}
"""Terms of the objective. What each measures: ``docs/problems/server-assignment.md``. RRU are those of all reservations
together."""
TERMS = {name: term.weight for name, term in OBJECTIVE.items()}
"""Objective term → its default weight."""


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


@dataclass(frozen=True, eq=False, repr=False)
class ServerAssignment(GroupedProblem["Plan"]):
    """One instance, validated and read-only. S, T, R, B, D, Q count servers, types, racks, switchboards, datacenters,
    reservations.

    Raises:
        InstanceError: groups that do not fit one another, or an objective that would rather move servers in use than
            idle ones; it lists every fault.
    """

    kind: ClassVar[str] = "server-assignment"
    WEIGHTS = TERMS
    LABELS: ClassVar[Mapping[str, bool]] = {"datacenters": False, "types": False}

    name: str
    datacenters: tuple[str, ...]
    switchboards: entities.Switchboards
    racks: entities.Racks
    types: tuple[str, ...]
    servers: entities.Servers
    reservations: entities.Reservations
    affinities: entities.Affinities
    objective: Objective
    provenance: str = ""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a server assignment: weights, and values whose sums are not exact."""
        check.faults += weight_faults(self.name, self.objective)
        most = float(self.reservations.value_mrru.max(initial=0)) * len(self.servers)
        entities.check_total(check, "reservations.value_mrru", most)

    @cached_property
    def server_switchboard(self) -> Ints:
        """Switchboard [S] of each server."""
        return self.racks.switchboard[self.servers.rack]

    @cached_property
    def owned(self) -> Bools:
        """Mask [S] of the servers that a reservation has today."""
        return self.servers.owner < len(self.reservations)

    @cached_property
    def working(self) -> Bools:
        """[S] in use by a reservation: taking such a server away costs ``moves_in_use``."""
        return self.servers.in_use & self.owned

    @cached_property
    def spread_limit_mrru(self) -> Ints:
        """[Q] what one switchboard should hold at most, rounded down; meaningful where ``spread_limited``."""
        return self.reservations.spread_limit_milli * self.reservations.asked_mrru // SHARE

    @cached_property
    def buffered(self) -> Bools:
        """[Q] does the reservation keep a buffer among its own servers? The pool does, for itself and for others."""
        return np.asarray((self.reservations.buffer == EMBEDDED) | (self.reservations.buffer == POOL))

    @cached_property
    def pool(self) -> int | None:
        """The reservation that is the pool of those with a shared buffer, if there is one."""
        found = np.flatnonzero(self.reservations.buffer == POOL)
        return int(found[0]) if len(found) else None

    @cached_property
    def stocks(self) -> ServerClasses:
        """Servers of a type at a switchboard, whichever reservation has them; the exact formulation counts these."""
        return partition(self.servers.type, self.server_switchboard)

    @cached_property
    def rack_stocks(self) -> ServerClasses:
        """Servers of a type in a rack, whichever reservation has them; the second phase counts these."""
        return partition(self.servers.type, self.servers.rack)

    @cached_property
    def classes(self) -> ServerClasses:
        """Servers of a type at a switchboard with the same owner, all in use or all not."""
        return partition(self.servers.type, self.server_switchboard, self.servers.owner, self.working)
