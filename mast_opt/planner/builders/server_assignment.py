"""Builder of server assignment instances."""

from collections.abc import Mapping
from typing import Any, Self

from mast_opt.planner.builders.base import Cell, Number, ProblemBuilder, Row, pairs
from mast_opt.problems.server_assignment.problem import ServerAssignment


class ServerAssignmentBuilder(ProblemBuilder[ServerAssignment]):
    """A server assignment instance, one reservation and server after another.

    Example::

        from mast_opt import ServerAssignmentBuilder

        builder = ServerAssignmentBuilder("one datacenter")
        builder.add_reservation("web", rru=6, values={"c1": 1})
        for number in range(12):
            builder.add_server(f"s{number}", type="c1", switchboard=f"sb{number % 3}", datacenter="dc1")
        problem = builder.build()

    Args:
        name: of the instance.
        objective: as in ``[objective]`` of ``instance.toml``.
        provenance: where the data come from, in words.

    Raises:
        InstanceError: by each method, for a label or number that cannot be; nothing of the call is then taken.
    """

    def __init__(
        self, name: str = "instance", *, objective: Mapping[str, Any] | None = None, provenance: str = ""
    ) -> None:
        super().__init__(ServerAssignment.kind, name, {}, objective, provenance)

    def add_reservation(
        self,
        reservation: str,
        *,
        rru: Number,
        values: Mapping[str, Number],
        affinity: Mapping[str, tuple[Number, Number]] | None = None,
        **columns: Cell,
    ) -> Self:
        """Add a cluster's claim to capacity.

        Args:
            rru: capacity to be guaranteed, in relative resource units.
            values: server type → what such a server is worth to the reservation; others are worth nothing.
            affinity: datacenter → (share of the reservation that should be there, how far from that it may be).
            columns: further columns of the table ``reservations``, such as ``buffer="shared"``.
        """
        rows: list[Row] = [("reservations", {**columns, "reservation": reservation, "rru": rru})]
        for type_, worth in pairs("values", values):
            rows.append(("values", {"reservation": reservation, "type": type_, "rru": worth}))
        for datacenter, (share, tolerance) in pairs("affinity", affinity):
            row = {"reservation": reservation, "datacenter": datacenter, "share": share, "tolerance": tolerance}
            rows.append(("affinity", row))
        return self._add(rows)

    def add_server(
        self,
        server: str,
        *,
        type: str,
        switchboard: str,
        datacenter: str,
        rack: str = "rack",
        reservation: str | None = None,
        in_use: bool = False,
    ) -> Self:
        """Add a machine that is handed to one reservation or to none.

        Args:
            type: hardware; servers of a type are worth the same to a reservation.
            switchboard: the failure domain; it is in one datacenter.
            rack: of the switchboard.
            reservation: who has it today; nobody unless given.
            in_use: does work run on it?
        """
        cells = {"type": type, "rack": rack, "switchboard": switchboard, "datacenter": datacenter}
        return self._add([("servers", {"server": server, **cells, "reservation": reservation, "in_use": in_use})])
