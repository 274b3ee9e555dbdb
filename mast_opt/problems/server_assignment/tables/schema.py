"""Table schemas of server-assignment instances and plans: column by column, and an example instance."""

from mast_opt.core.units import MILLI
from mast_opt.problems.kind.schema import Axis, Schema, Table, label, supply
from mast_opt.problems.server_assignment.entities import Affinities, Reservations, Servers

_TYPE, *_FURTHER = Servers.columns()

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
                _TYPE,
                label("rack", "rack", help="of a switchboard; two may name theirs alike"),
                label("switchboard", "switchboard", help="the failure domain; it is in one datacenter"),
                label("datacenter", "datacenter"),
                *_FURTHER,
            ),
            key=("server",),
            rows_required=True,
            help="a machine that is handed to one reservation or to none",
        ),
        Reservations.table("reservation", help="a cluster's claim to capacity"),
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
        Affinities.table("affinity", required=False, help="where a reservation should be, near its data for example"),
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


EXAMPLE = {
    "servers": (
        ("s1", "compute", "rack-1", "board-1", "dc-1", "web", True),
        ("s2", "compute", "rack-1", "board-1", "dc-1", "web", False),
        ("s3", "gpu", "rack-2", "board-2", "dc-1", "training", True),
        ("s4", "compute", "rack-2", "board-2", "dc-1", None, False),
        ("s5", "gpu", "rack-3", "board-3", "dc-2", None, False),
        ("s6", "compute", "rack-3", "board-3", "dc-2", "web", True),
        ("s7", "gpu", "rack-4", "board-4", "dc-2", None, False),
        ("s8", "compute", "rack-4", "board-4", "dc-2", None, False),
    ),
    "reservations": (("web", 2, "embedded", 0.5), ("training", 4, "embedded", None), ("batch", 1, "none", None)),
    "values": (
        ("web", "compute", 1),
        ("training", "gpu", 2),
        ("training", "compute", 0.5),
        ("batch", "compute", 1),
        ("batch", "gpu", 0.5),
    ),
    "affinity": (("web", "dc-1", 0.6, 0.2),),
}
