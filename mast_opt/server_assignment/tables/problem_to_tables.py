"""The tables that state a problem."""

from __future__ import annotations

import numpy as np

from mast_opt.kind.header import Header
from mast_opt.kind.schema import Tables
from mast_opt.server_assignment.problem import ServerAssignment


def unbuild(problem: ServerAssignment) -> tuple[Header, Tables]:
    """The header and tables that ``build`` turns into this problem."""
    p = problem
    header = Header(p.kind, p.name, p.objective, {}, p.provenance)
    valued = np.nonzero(p.value_mrru)
    switchboard = p.server_switchboard
    label_at = {label: position for position, label in enumerate(dict.fromkeys(p.racks))}
    rack_label = np.array([label_at[label] for label in p.racks], np.int64)
    values = {
        "servers": {
            "server": np.arange(len(p.servers)),
            "type": p.server_type,
            "rack": rack_label[p.server_rack],
            "switchboard": switchboard,
            "datacenter": p.switchboard_datacenter[switchboard],
            "reservation": np.where(p.owned, p.owner, 0),
            "in_use": p.in_use,
        },
        "reservations": {
            "reservation": np.arange(len(p.reservations)),
            "rru": p.asked_mrru,
            "buffer": p.buffer,
            "spread_limit": np.where(p.spread_limited, p.spread_limit_milli, 0),
        },
        "values": {"reservation": valued[0], "type": valued[1], "rru": p.value_mrru[valued]},
        "affinity": {
            "reservation": p.affinity_reservation,
            "datacenter": p.affinity_datacenter,
            "share": p.affinity_share_milli,
            "tolerance": p.affinity_tolerance_milli,
        },
    }
    present = {"servers": {"reservation": p.owned}, "reservations": {"spread_limit": p.spread_limited}}
    missing = frozenset() if len(p.affinity_reservation) else frozenset({"affinity"})
    return header, Tables(problem_axes(p), values, present, missing)


def problem_axes(problem: ServerAssignment) -> dict[str, tuple[str, ...]]:
    """The labels of every axis of the schema."""
    return {
        "server": problem.servers,
        "reservation": problem.reservations,
        "type": problem.types,
        "rack": tuple(dict.fromkeys(problem.racks)),
        "switchboard": problem.switchboards,
        "datacenter": problem.datacenters,
    }
