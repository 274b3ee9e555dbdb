"""Server-assignment problem from its tables, and its tables from the problem."""

import numpy as np

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.core.wording import unused
from mast_opt.problems.kind.header import Header
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.kind.stated_columns import arrays_of, cells_of, left_out, stated_tables
from mast_opt.problems.server_assignment.entities import Affinities, Racks, Reservations, Servers, Switchboards
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import (
    LARGEST,
    POOL,
    SHARE,
    SHARED,
    Ints,
    ServerAssignment,
    weight_faults,
)
from mast_opt.problems.server_assignment.tables.schema import SCHEMA

POOL_NAME = "shared-buffer"


def problem_from_tables(header: Header, tables: Tables) -> ServerAssignment:
    """The problem that the tables state. Raises InstanceError for what only the whole can show.

    Where reservations share a buffer and none is the pool, one is added, called ``shared-buffer``: a server is worth
    to it what it is worth to the one of them that values it least. The same label of a rack at two switchboards means
    two racks.
    """
    axes = tables.axes
    faults: list[Fault] = []
    switchboard_datacenter = _datacenters(tables, faults)
    switchboard, racks = tables.get("servers", "switchboard"), len(axes["rack"])
    rack, server_rack = np.unique(switchboard * racks + tables.get("servers", "rack"), return_inverse=True)
    reservations = axes["reservation"]
    value = np.zeros((len(reservations), len(axes["type"])), np.int64)
    value[tables.get("values", "reservation"), tables.get("values", "type")] = tables.get("values", "rru")
    claims, limited = arrays_of(Reservations, tables, "reservations"), tables.has("reservations", "spread_limit")
    asked, buffer = claims["asked_mrru"], claims["buffer"]
    faults += weight_faults("instance.toml", header.objective)
    faults += _pool_faults(buffer)
    faults += _size_faults(asked, value, len(axes["server"]))
    faults += _limit_faults(claims["spread_limit_milli"], asked)
    if faults:
        raise InstanceError(faults)
    shared = buffer == SHARED
    if shared.any() and not (buffer == POOL).any():
        reservations = (*reservations, unused(POOL_NAME, reservations))
        value = np.concatenate([value, value[shared].min(axis=0, keepdims=True)])
        limited = np.append(limited, False)
        pool = {one.array.name: one.default(1) for one in Reservations.STATED} | {"buffer": POOL}
        claims = {name: np.append(values, pool[name]) for name, values in claims.items()}
    servers = arrays_of(Servers, tables, "servers")
    servers["owner"] = np.where(tables.has("servers", "reservation"), servers["owner"], len(reservations))
    return ServerAssignment(
        name=header.name,
        provenance=header.provenance,
        datacenters=axes["datacenter"],
        switchboards=Switchboards(labels=axes["switchboard"], datacenter=switchboard_datacenter),
        racks=Racks(labels=tuple(axes["rack"][at] for at in (rack % racks).tolist()), switchboard=rack // racks),
        types=axes["type"],
        reservations=Reservations(labels=reservations, spread_limited=limited, value_mrru=value, **claims),
        servers=Servers(labels=axes["server"], rack=server_rack.reshape(-1), **servers),
        affinities=Affinities(**arrays_of(Affinities, tables, "affinity")),
        objective=header.objective,
    )


def _datacenters(tables: Tables, faults: list[Fault]) -> Ints:
    """[B] by the first server of each switchboard; a fault for each switchboard that is in two."""
    board, center = tables.get("servers", "switchboard"), tables.get("servers", "datacenter")
    names, centers = tables.axes["switchboard"], tables.axes["datacenter"]
    of_board = np.zeros(len(names), np.int64)
    of_board[board[::-1]] = center[::-1]
    strays = np.flatnonzero(of_board[board] != center)
    _, first = np.unique(board[strays], return_index=True)
    for row in strays[np.sort(first)].tolist():
        name, known = names[int(board[row])], centers[int(of_board[board[row]])]
        words = f"{known}, as in an earlier row of switchboard {name}; name switchboards differently in each datacenter"
        faults.append(Fault("servers", words, row + 1, "datacenter", centers[int(center[row])]))
    return of_board


def _pool_faults(buffer: Ints) -> list[Fault]:
    """Faults of reservations that are a second pool."""
    return [
        Fault("reservations", "one pool at most; the others can be embedded, shared or none", row + 1, "buffer", "pool")
        for row in np.flatnonzero(buffer == POOL)[1:].tolist()
    ]


def _size_faults(asked: Ints, value: Ints, servers: int) -> list[Fault]:
    """Faults of reservations and values so large that sums of RRUs are not exact."""
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


def _limit_faults(limit: Ints, asked: Ints) -> list[Fault]:
    """Spread limits of reservations that leave the range of exact integers when they become capacity."""
    words = "a spread limit whose product with rru is smaller; leave the cell empty for no limit"
    shares = zip(limit.tolist(), asked.tolist(), strict=True)
    return [
        Fault("reservations", words, row + 1, "spread_limit", f"{share / SHARE:g}")
        for row, (share, rru) in enumerate(shares)
        if share * rru > LARGEST * SHARE
    ]


def problem_to_tables(problem: ServerAssignment) -> tuple[Header, Tables]:
    """The header and tables that ``build`` turns into this problem."""
    p = problem
    header = Header(p.kind, p.name, p.objective, {}, p.provenance)
    valued = np.nonzero(p.reservations.value_mrru)
    switchboard = p.server_switchboard
    label_at = {label: position for position, label in enumerate(dict.fromkeys(p.racks.labels))}
    rack_label = np.array([label_at[label] for label in p.racks.labels], np.int64)
    axes = p.table_axes(SCHEMA)
    servers, owned = cells_of(p.servers, axes)
    values, present = stated_tables(p, SCHEMA, axes)
    limited = present["reservations"]["spread_limit"] = p.reservations.spread_limited
    values["reservations"]["spread_limit"] = np.where(limited, p.reservations.spread_limit_milli, 0)
    values |= {
        "servers": {
            "server": np.arange(len(p.servers)),
            **servers,
            "rack": rack_label[p.servers.rack],
            "switchboard": switchboard,
            "datacenter": p.switchboards.datacenter[switchboard],
        },
        "values": {"reservation": valued[0], "type": valued[1], "rru": p.reservations.value_mrru[valued]},
    }
    return header, Tables(axes, values, present | {"servers": owned}, left_out(SCHEMA, values))


def plan_from_tables(problem: ServerAssignment, tables: Tables) -> Plan:
    """The plan that the table states; a server without a row belongs to no reservation."""
    reservation = np.full(len(problem.servers), len(problem.reservations), np.int64)
    reservation[tables.get("assignments", "server")] = tables.get("assignments", "reservation")
    return Plan(reservation)


def plan_to_tables(problem: ServerAssignment, plan: Plan) -> Tables:
    """The table that ``plan_from_tables`` turns into this plan."""
    given = np.flatnonzero(plan.reservation < len(problem.reservations))
    values = {"assignments": {"server": given, "reservation": plan.reservation[given]}}
    return Tables(problem.table_axes(SCHEMA), values)
