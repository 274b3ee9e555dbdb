"""Sparse index sets of the server-assignment MIP: which stock may go to which reservation, and what each has today."""

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.server_assignment.problem import Ints, ServerAssignment


@dataclass(frozen=True, eq=False)
class IndexSets:
    """A row for each stock and reservation that go together: the server is worth something to it, or it has it today.

    N rows, by stock, then by reservation. Arrays are read-only.
    """

    stock: Ints
    """[N] position in ``problem.stocks``."""
    type: Ints
    """Server type of each pair, [N]."""
    switchboard: Ints
    """Switchboard of each pair, [N]."""
    reservation: Ints
    """Reservation of each pair, [N]."""
    worth_mrru: Ints
    """[N] of one server; 0 where the reservation has such servers today although it has no use for them."""
    in_use: Ints
    """[N] servers that the reservation has today and that do work."""
    idle: Ints
    """[N] servers that it has today and that do none."""
    most: Ints
    """[N] servers that it may have: all of the stock, or what it has today where they are worthless."""

    def __post_init__(self) -> None:
        for array in vars(self).values():
            array.setflags(write=False)

    @property
    def today(self) -> Ints:
        """[N] servers that the reservation has today."""
        return self.in_use + self.idle


def pairs_of(problem: ServerAssignment) -> IndexSets:
    """All pairs of an instance."""
    p, stocks = problem, problem.stocks
    width = len(p.reservations)
    kind = p.servers.type[stocks.first]
    owned = np.flatnonzero(p.owned)
    together = (p.reservations.value_mrru > 0).T[kind]
    together[stocks.of[owned], p.servers.owner[owned]] = True
    pair = np.flatnonzero(together)
    key = stocks.of[owned] * width + p.servers.owner[owned]
    works = p.servers.in_use[owned]
    in_use, idle = (np.bincount(np.searchsorted(pair, key[chosen]), minlength=len(pair)) for chosen in (works, ~works))
    stock, reservation = pair // width, pair % width
    worth = p.reservations.value_mrru[reservation, kind[stock]]
    return IndexSets(
        stock=stock,
        type=kind[stock],
        switchboard=p.server_switchboard[stocks.first][stock],
        reservation=reservation,
        worth_mrru=worth,
        in_use=in_use,
        idle=idle,
        most=np.where(worth > 0, stocks.size[stock], in_use + idle),
    )


def counted(problem: ServerAssignment, pairs: IndexSets, reservation: Ints) -> Ints:
    """[N] servers of each pair under an assignment ([S] positions, Q for nobody).

    A server whose reservation has no use for it and does not have it today is in no pair and counts nowhere.
    """
    width = len(problem.reservations)
    given = np.flatnonzero(reservation < width)
    key = problem.stocks.of[given] * width + reservation[given]
    pair = pairs.stock * width + pairs.reservation
    at = np.searchsorted(pair, key)
    known = np.append(pair, -1)[at] == key
    return np.bincount(at[known], minlength=len(pair))
