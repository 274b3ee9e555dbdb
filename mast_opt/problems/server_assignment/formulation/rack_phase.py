"""Rack phase (second phase) of server assignment: racks for the reservations that a rack's loss would hit hardest.

The first phase counts servers at switchboards. Which of them a reservation gets there, so from which racks, costs
nothing in the objective; the second phase decides it for a few reservations and leaves every figure of the first as it
is. It is a formulation of its own, because racks for everybody would be too many columns.
"""

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.mip import MipBuilder
from mast_opt.problems.search.interface import MipSolver
from mast_opt.problems.server_assignment.formulation.disaggregation import given_out
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import Bools, Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure


def worst_in_racks(problem: ServerAssignment, plan: Plan, count: int) -> Ints:
    """Up to ``count`` reservations with the largest share of what they hold in one rack, the worst first.

    Those that are in one rack only because they have one server are left out.
    """
    then = Measure(problem, plan.reservation)
    servers = np.bincount(then.holder, minlength=len(problem.reservations))
    share = np.where(servers > 1, then.held_in_rack / np.maximum(then.total, 1), 0.0)
    order = np.argsort(-share, kind="stable")[:count]
    return order[share[order] > 0]


def refined(problem: ServerAssignment, plan: Plan, reservations: Ints, solver: MipSolver, params: SolveParams) -> Plan:
    """The plan with the servers of these reservations spread over racks, or the plan itself where nothing better was
    found. Objective, terms and what anybody holds at any switchboard stay the same; nobody moves more.

    Args:
        reservations: positions, as ``worst_in_racks`` gives them.
        params: limits of the solve; its start is the plan.
    """
    formulation = at_racks(problem, plan, reservations)
    start = formulation.encode(plan)
    result = solver(formulation.mip, replace(params, start=start))
    if result.x is None or result.objective is None or result.objective >= formulation.mip.objective(start):
        return plan
    return formulation.decode(result.x)


def at_racks(problem: ServerAssignment, plan: Plan, reservations: Ints) -> Formulation[Plan]:
    """Program for how many servers of each type in each rack these reservations have, so that the sum of their largest
    shares in one rack is least.

        fixed[t,b,q]         Σ_{r at b} n[t,r,q] = what the plan gives q of the stock
        room[t,r]            Σ_q n[t,r,q] ≤ servers that the plan gives to these reservations or to nobody
        stays[t,r,q]         n[t,r,q] + left_in_use[t,r,q] + left_idle[t,r,q] ≥ those of them that q has today
        no_more_in_use[t,b,q], no_more_idle[t,b,q]           Σ_{r at b} left ≤ the plan's
        densest[r,q]         Σ_t rru[q,t]·n[t,r,q] ≤ densest[q]                 minimise Σ_q densest[q] / held[q]
    """
    statement = _Racks(problem, plan, reservations)
    statement.counts()
    statement.moves()
    statement.largest()
    mip = statement.m.build({"densest": 1.0})
    return Formulation(mip, statement.decode, lambda encoded: statement.encode(encoded, len(mip.cost)))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Pairs of a rack stock (servers of a type in a rack) and a reservation that may have some of it; sorted by rack
    stock, then reservation."""

    stock: Ints
    """[C] rack stock"""
    reservation: Ints
    """Reservation of each cell, [C]."""
    in_use: Ints
    """[C] open servers that the reservation has today"""
    idle: Ints


class _Racks:
    """Columns and rows; ``open`` servers are those that the plan gives to the chosen reservations or to nobody."""

    def __init__(self, problem: ServerAssignment, plan: Plan, reservations: Ints) -> None:
        p = self.p = problem
        self.plan = plan
        self.width = len(p.reservations)
        self.chosen = np.zeros(self.width + 1, np.bool_)
        self.chosen[reservations] = True
        self.open = self.chosen[plan.reservation] | (plan.reservation == self.width)
        self.stocks = p.rack_stocks
        self.board_stock = p.stocks.of[self.stocks.first]
        """[·] the stock that each rack stock is part of."""
        self.fixed_key, self.fixed = self._counts(p.stocks.of, plan.reservation, self.chosen[plan.reservation])
        """[·] stock · Q + reservation, and how many of the stock the plan gives to it."""
        c = self.cells = self._cells()
        m = self.m = MipBuilder("server_assignment_racks")
        self.first = self.stocks.first[c.stock]
        self.axes = [p.types, p.racks.labels, p.reservations.labels]
        self.at = np.stack([p.servers.type[self.first], p.servers.rack[self.first], c.reservation])
        self.works, self.idles = np.flatnonzero(c.in_use), np.flatnonzero(c.idle)
        self.room = np.bincount(self.stocks.of[self.open], minlength=len(self.stocks))
        self.n = m.columns("n", self.axes, list(self.at), upper=self.room[c.stock], integral=True)
        self.left_in_use, self.left_idle = (
            m.columns(name, self.axes, list(self.at[:, some]), upper=today[some])
            for name, some, today in (("left_in_use", self.works, c.in_use), ("left_idle", self.idles, c.idle))
        )
        self.who = np.flatnonzero(self.chosen)
        self.densest = m.columns("densest", [p.reservations.labels], [self.who])
        stock, who = self.fixed_key // self.width, self.fixed_key % self.width
        first = p.stocks.first[stock]
        self.per_board = [p.types, p.switchboards.labels, p.reservations.labels]
        self.at_board = [p.servers.type[first], p.server_switchboard[first], who]
        self.board_row = np.searchsorted(self.fixed_key, self.board_stock[c.stock] * self.width + c.reservation)

    def counts(self) -> None:
        """Add the rows ``fixed`` and ``room`` to the program of racks in server assignment."""
        p, m, c = self.p, self.m, self.cells
        m.equals("fixed", self.per_board, self.at_board, value=self.fixed).add(self.board_row, self.n)
        used = np.unique(c.stock)
        first = self.stocks.first[used]
        room = m.rows("room", self.axes[:2], [p.servers.type[first], p.servers.rack[first]], upper=self.room[used])
        room.add(np.searchsorted(used, c.stock), self.n)

    def moves(self) -> None:
        """Add the rows ``stays`` and ``no_more`` to the program of racks in server assignment."""
        m, c = self.m, self.cells
        held = np.flatnonzero(c.in_use + c.idle)
        stays = m.rows("stays", self.axes, list(self.at[:, held]), lower=(c.in_use + c.idle)[held])
        stays.add(np.arange(len(held)), self.n[held])
        stays.add(np.searchsorted(held, self.works), self.left_in_use)
        stays.add(np.searchsorted(held, self.idles), self.left_idle)
        in_use, idle = self._left()
        no_more = m.rows("no_more_in_use", self.per_board, self.at_board, upper=in_use)
        no_more.add(self.board_row[self.works], self.left_in_use)
        no_more = m.rows("no_more_idle", self.per_board, self.at_board, upper=idle)
        no_more.add(self.board_row[self.idles], self.left_idle)

    def largest(self) -> None:
        """Add the rows ``densest``, and the objective, to the program of racks."""
        p, m, c = self.p, self.m, self.cells
        key = p.servers.rack[self.first] * self.width + c.reservation
        pair, row = np.unique(key, return_inverse=True)
        rack, who = pair // self.width, pair % self.width
        rows = m.rows("densest", [p.racks.labels, p.reservations.labels], [rack, who], upper=0)
        rows.add(row.reshape(-1), self.n, p.reservations.value_mrru[c.reservation, p.servers.type[self.first]])
        rows.add(np.arange(len(pair)), self.densest[np.searchsorted(self.who, who)], -1)
        held = Measure(p, self.plan.reservation).total[self.who]
        m.term("densest", self.densest, 1 / np.maximum(held, 1))

    def decode(self, x: FloatArray) -> Plan:
        """Server assignment with the counts of servers in racks that a solution states."""
        c, count = self.cells, np.rint(x[self.n]).astype(np.int64)
        return given_out(self.p, self.stocks, c.stock, c.reservation, count, self.plan.reservation, self.open)

    def encode(self, plan: Plan, width: int) -> FloatArray:
        """Column values of a server assignment."""
        c = self.cells
        keys, have = self._counts(self.stocks.of, plan.reservation, self.open & self.chosen[plan.reservation])
        count = np.zeros(len(c.stock), np.int64)
        count[np.searchsorted(c.stock * self.width + c.reservation, keys)] = have
        left = np.maximum(c.in_use + c.idle - count, 0)
        left_idle = np.minimum(left, c.idle)
        values = np.zeros(width)
        values[self.n] = count
        values[self.left_in_use] = (left - left_idle)[self.works]
        values[self.left_idle] = left_idle[self.idles]
        values[self.densest] = Measure(self.p, plan.reservation).held_in_rack[self.who]
        return values

    def _counts(self, group: Ints, reservation: Ints, which: Bools) -> tuple[Ints, Ints]:
        """(group · Q + reservation, number) for the servers in question, ascending."""
        key = np.sort(group[which] * self.width + reservation[which])
        new = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else key
        return key[new], np.diff(np.append(new, len(key)))

    def _cells(self) -> _Cells:
        """Every rack stock with open servers, for every chosen reservation that has some of its switchboard stock."""
        p = self.p
        usable = np.flatnonzero(np.bincount(self.stocks.of[self.open], minlength=len(self.stocks)))
        board = self.board_stock[usable]
        first = np.searchsorted(self.fixed_key // self.width, board)
        number = np.searchsorted(self.fixed_key // self.width, board, side="right") - first
        stock = np.repeat(usable, number)
        within = np.arange(len(stock)) - np.repeat(np.cumsum(number) - number, number)
        reservation = self.fixed_key[np.repeat(first, number) + within] % self.width
        mine = np.flatnonzero(self.open & p.owned)
        mine = mine[self.chosen[p.servers.owner[mine]]]
        key = self.stocks.of[mine] * self.width + p.servers.owner[mine]
        cell = stock * self.width + reservation
        at = np.searchsorted(cell, key)
        known = np.append(cell, -1)[at] == key
        in_use, idle = (
            np.bincount(at[known & which], minlength=len(cell))
            for which in (p.servers.in_use[mine], ~p.servers.in_use[mine])
        )
        return _Cells(stock, reservation, in_use, idle)

    def _left(self) -> tuple[Ints, Ints]:
        """[·] servers that the plan takes from each chosen reservation at each of its stocks and that stay open."""
        p = self.p
        gone = np.flatnonzero(self.open & p.owned & (self.plan.reservation != p.servers.owner))
        key = p.stocks.of[gone] * self.width + p.servers.owner[gone]
        at = np.searchsorted(self.fixed_key, key)
        known = np.append(self.fixed_key, -1)[at] == key
        in_use, idle = (
            np.bincount(at[known & which], minlength=len(self.fixed_key))
            for which in (p.servers.in_use[gone], ~p.servers.in_use[gone])
        )
        return in_use, idle
