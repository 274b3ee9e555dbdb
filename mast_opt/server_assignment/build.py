"""The problem that the tables state, with the faults that only the whole can show."""

from __future__ import annotations

from itertools import count

import numpy as np

from mast_opt.errors import Fault, InstanceError
from mast_opt.header import Header
from mast_opt.schema import Tables
from mast_opt.server_assignment.problem import POOL, SHARE, SHARED, Ints, ServerAssignment

LARGEST = 2**53 // SHARE
"""Up to here (in mrru) sums of capacity, also multiplied by a share, are exact as int64 and as float64."""
POOL_NAME = "shared-buffer"


def build(header: Header, tables: Tables) -> ServerAssignment:
    """The problem that the tables state. Raises InstanceError for what only the whole can show.

    Where reservations share a buffer and none is the pool, one is added, called ``shared-buffer``: a server is worth
    to it what it is worth to the one of them that values it least.
    """
    axes = tables.axes
    faults: list[Fault] = []
    rack_switchboard = _parents(tables, "rack", "switchboard", faults)
    switchboard_datacenter = _parents(tables, "switchboard", "datacenter", faults)
    reservations = axes["reservation"]
    value = np.zeros((len(reservations), len(axes["type"])), np.int64)
    value[tables.get("values", "reservation"), tables.get("values", "type")] = tables.get("values", "rru")
    asked, buffer = tables.get("reservations", "rru"), tables.get("reservations", "buffer")
    limited, limit = tables.has("reservations", "spread_limit"), tables.get("reservations", "spread_limit")
    faults += _pool_faults(buffer)
    faults += _size_faults(asked, value, len(axes["server"]))
    if faults:
        raise InstanceError(faults)
    shared = buffer == SHARED
    if shared.any() and not (buffer == POOL).any():
        reservations = (*reservations, _unused(POOL_NAME, reservations))
        value = np.concatenate([value, value[shared].min(axis=0, keepdims=True)])
        asked, buffer = np.append(asked, 0), np.append(buffer, POOL)
        limited, limit = np.append(limited, False), np.append(limit, 0)
    owned = tables.has("servers", "reservation")
    return ServerAssignment(
        name=header.name,
        provenance=header.provenance,
        datacenters=axes["datacenter"],
        switchboards=axes["switchboard"],
        racks=axes["rack"],
        types=axes["type"],
        reservations=reservations,
        servers=axes["server"],
        switchboard_datacenter=switchboard_datacenter,
        rack_switchboard=rack_switchboard,
        server_type=tables.get("servers", "type"),
        server_rack=tables.get("servers", "rack"),
        owner=np.where(owned, tables.get("servers", "reservation"), len(reservations)),
        in_use=tables.get("servers", "in_use"),
        asked_mrru=asked,
        buffer=buffer,
        spread_limited=limited,
        spread_limit_milli=limit,
        value_mrru=value,
        affinity_reservation=tables.get("affinity", "reservation"),
        affinity_datacenter=tables.get("affinity", "datacenter"),
        affinity_share_milli=tables.get("affinity", "share"),
        affinity_tolerance_milli=tables.get("affinity", "tolerance"),
        objective=header.objective,
    )


def _parents(tables: Tables, child: str, parent: str, faults: list[Fault]) -> Ints:
    """Where each child is, by the first server that names it; a fault for each child that is in two places."""
    below, above = tables.get("servers", child), tables.get("servers", parent)
    parents = np.zeros(len(tables.axes[child]), np.int64)
    parents[below[::-1]] = above[::-1]
    strays = np.flatnonzero(parents[below] != above)
    _, first = np.unique(below[strays], return_index=True)
    for row in strays[np.sort(first)].tolist():
        name, known = tables.axes[child][int(below[row])], tables.axes[parent][int(parents[below[row]])]
        words = (
            f"{known}, where {child} {name} is in an earlier row; give {child}s of different {parent}s different names"
        )
        faults.append(Fault("servers", words, row + 1, parent, tables.axes[parent][int(above[row])]))
    return parents


def _pool_faults(buffer: Ints) -> list[Fault]:
    return [
        Fault("reservations", "one pool at most; the others can be embedded, shared or none", row + 1, "buffer", "pool")
        for row in np.flatnonzero(buffer == POOL)[1:].tolist()
    ]


def _size_faults(asked: Ints, value: Ints, servers: int) -> list[Fault]:
    words = "at most 2^53 thousandths of thousandths, so that sums stay exact; use a larger unit"
    checks = (
        ("reservations", sum(asked.tolist()), "capacities that add up to"),
        ("values", int(value.max(initial=0)) * servers, "a largest value whose sum over all servers is"),
    )
    return [
        Fault(table, f"{what} {words}", None, "rru", str(amount // SHARE))
        for table, amount, what in checks
        if amount > LARGEST
    ]


def _unused(name: str, names: tuple[str, ...]) -> str:
    return next(free for free in (name, *(f"{name}-{number}" for number in count(2))) if free not in names)
