"""A server-assignment plan: a reservation, or none, for every server."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.server_assignment.problem import Ints


@dataclass(frozen=True, eq=False)
class Plan:
    """The decisions."""

    reservation: Ints
    """[S] the reservation that has each server after the plan; Q for a server that nobody has."""

    def __post_init__(self) -> None:
        self.reservation.setflags(write=False)
