"""Table schemas of server-assignment instances and plans: what they mean, column by column."""

from __future__ import annotations

from mast_opt.core.units import MILLI
from mast_opt.kind.schema import Axis, Schema, Table, boolean, choice, label, need, supply
from mast_opt.server_assignment.problem import BUFFERS, EMBEDDED, SHARE

SCHEMA = Schema(
    axes=(
        Axis("server", "servers"),
        Axis("reservation", "reservations"),
        Axis("type", offered="servers"),
        Axis("rack"),
        Axis("switchboard"),
        Axis("datacenter"),
    ),
    tables=(
        Table(
            "servers",
            (
                label("server", "server"),
                label("type", "type", help="hardware; servers of a type are worth the same to a reservation"),
                label("rack", "rack", help="of a switchboard; two may name theirs alike"),
                label("switchboard", "switchboard", help="the failure domain; it is in one datacenter"),
                label("datacenter", "datacenter"),
                label("reservation", "reservation", required=False, help="who has it today; empty = nobody"),
                boolean("in_use", help="does work run on it?"),
            ),
            key=("server",),
            rows_required=True,
            help="a machine that is handed to one reservation or to none",
        ),
        Table(
            "reservations",
            (
                label("reservation", "reservation"),
                need("rru", MILLI, help="capacity to be guaranteed, relative resource units"),
                choice(
                    "buffer",
                    *BUFFERS,
                    required=False,
                    default=EMBEDDED,
                    help="what stands in for a lost switchboard: servers of its own, those of the pool, or nothing; "
                    "pool: this reservation is the pool",
                ),
                supply("spread_limit", SHARE, required=False, help="share of rru at one switchboard; empty = any"),
            ),
            key=("reservation",),
            rows_required=True,
            help="a cluster's claim to capacity",
        ),
        Table(
            "values",
            (
                label("reservation", "reservation"),
                label("type", "type"),
                supply("rru", MILLI, help="what such a server is worth to the reservation; no row = nothing"),
            ),
            key=("reservation", "type"),
            help="what a server of each type is worth to each reservation",
        ),
        Table(
            "affinity",
            (
                label("reservation", "reservation"),
                label("datacenter", "datacenter"),
                need("share", SHARE, maximum=SHARE, help="share of the reservation that should be there, 0–1"),
                supply("tolerance", SHARE, maximum=SHARE, help="how far from that share it may be, 0–1"),
            ),
            key=("reservation", "datacenter"),
            required=False,
            help="where a reservation should be, near its data for example",
        ),
    ),
)

PLAN_SCHEMA = Schema(
    axes=SCHEMA.axes,
    tables=(
        Table(
            "assignments",
            (label("server", "server"), label("reservation", "reservation")),
            key=("server",),
            help="the reservation of each server; a server without a row is in none",
        ),
    ),
)
