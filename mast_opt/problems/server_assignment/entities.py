"""Entities of server assignment: groups of arrays, one class for each entity or relation.

S, T, R, B, D, Q count servers, types, racks, switchboards, datacenters, reservations. Capacity is in thousandths of a
relative resource unit (mrru).
"""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import Arrays, amounts, flags, positions
from mast_opt.core.units import MILLI
from mast_opt.problems.kind.problem_data import Bools, Entities, Ints, Relation
from mast_opt.problems.kind.schema import boolean, choice, label, need, supply
from mast_opt.problems.kind.stated_columns import array, stated

SHARE = 1000
"""Shares (spread limits, affinities) are integers out of this many."""
BUFFERS = ("embedded", "shared", "none", "pool")
"""Ways in which a reservation survives the loss of a switchboard, with servers of its own, with those of the pool, not
at all; or it is the pool."""
EMBEDDED, SHARED, NONE, POOL = range(4)
LARGEST = 2**53 // SHARE
"""Up to here (in mrru) sums of capacity, also multiplied by a share, are exact as int64 and as float64."""


@dataclass(frozen=True, eq=False, repr=False)
class Switchboards(Entities):
    """Failure domains."""

    AXIS = "switchboards"

    datacenter: Ints = array(positions, "datacenters")
    """[B] datacenter of each switchboard."""


@dataclass(frozen=True, eq=False, repr=False)
class Racks(Entities):
    """Racks; labels are unique at each switchboard."""

    AXIS = "racks"
    MAY_REPEAT = True

    switchboard: Ints = array(positions, "switchboards")
    """[R] switchboard of each rack."""


@dataclass(frozen=True, eq=False, repr=False)
class Servers(Entities):
    """Servers, and who has them today."""

    AXIS = "servers"

    rack: Ints = array(positions, "racks")
    """[S] rack of each server."""
    type: Ints = stated(label("type", "type", help="hardware; servers of a type are worth the same to a reservation"))
    """[S] position in ``types``."""
    owner: Ints = stated(label("reservation", "reservation", required=False, help="who has it today; empty = nobody"))
    """[S] the reservation that has the server today; Q for a server that nobody has."""
    in_use: Bools = stated(boolean("in_use", help="does work run on it?"))
    """[S] does work run on the server? It matters only where somebody has it."""


@dataclass(frozen=True, eq=False, repr=False)
class Reservations(Entities):
    """Claims to capacity.

    Raises:
        InstanceError: besides what is wrong with an array, two pools, a shared buffer without a pool, or sums that
            floating point cannot hold.
    """

    AXIS = "reservations"

    spread_limited: Bools = array(flags)
    """[Q] whether there is a limit on what one switchboard should hold."""
    value_mrru: Ints = array(amounts, "types", total=False)
    """[Q, T] what a server of the type is worth to the reservation; 0 where it is worthless."""
    asked_mrru: Ints = stated(need("rru", MILLI, help="capacity to be guaranteed, relative resource units"))
    """[Q] capacity to be guaranteed, whichever switchboard is lost (where there is a buffer)."""
    buffer: Ints = stated(
        choice(
            "buffer",
            *BUFFERS,
            required=False,
            default=EMBEDDED,
            help="what stands in for a lost switchboard: servers of its own, those of the pool, or nothing; "
            "pool: this reservation is the pool",
        )
    )
    """[Q] position in ``BUFFERS``; at most one is the pool, and there is one where any is shared."""
    spread_limit_milli: Ints = stated(
        supply("spread_limit", SHARE, required=False, help="share of rru at one switchboard; empty = any"), total=False
    )
    """[Q] the share of ``asked_mrru`` that one switchboard should hold at most; meaningful where ``spread_limited``."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of reservations: two pools, or a shared buffer without a pool."""
        pools = np.flatnonzero(self.buffer == POOL)
        if len(pools) > 1:
            check.fault(f"buffer[{self.labels[pools[1]]}]", "one pool at most", str(POOL))
        shared = np.flatnonzero(self.buffer == SHARED)
        if len(shared) and not len(pools):
            words = f"a reservation with buffer {POOL}, the pool, where any is shared"
            check.fault(f"buffer[{self.labels[shared[0]]}]", words, "1")
        share = self.spread_limit_milli.astype(np.float64) * self.asked_mrru
        check.wrong("spread_limit_milli", share > LARGEST * SHARE, "a smaller product with asked_mrru")
        check_total(check, "asked_mrru", self.asked_mrru.sum(dtype=np.float64))


@dataclass(frozen=True, eq=False, repr=False)
class Affinities(Relation):
    """Shares of a reservation that a datacenter should hold."""

    AXIS = "affinities"
    KEY = ("reservation", "datacenter")

    reservation: Ints = stated(label("reservation", "reservation"))
    """[A] this reservation …"""
    datacenter: Ints = stated(label("datacenter", "datacenter"))
    """[A] … should hold in this datacenter …"""
    share_milli: Ints = stated(
        need("share", SHARE, maximum=SHARE, help="share of the reservation that should be there, 0–1")
    )
    """[A] … this share of all it holds,"""
    tolerance_milli: Ints = stated(
        supply("tolerance", SHARE, maximum=SHARE, help="how far from that share it may be, 0–1")
    )
    """[A] give or take this share of all it holds."""


def check_total(check: Arrays, name: str, total: float) -> None:
    """A fault where capacities add up to more than ``LARGEST``."""
    if total > LARGEST:
        check.fault(name, f"at most {LARGEST} over all servers, so that sums stay exact", f"{total:g}")
