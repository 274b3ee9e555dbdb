"""The second phase of RAS: racks for the reservations that a rack's loss would hit hardest.

The first phase counts servers at switchboards. Which of them a reservation gets there, so from which racks, costs
nothing in the objective; the second phase decides it for a few reservations and leaves every figure of the first as it
is. It is a formulation of its own, because racks for everybody would be too many columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.kind import Formulation
from mast_opt.mip import FloatArray, IntArray, MipBuilder
from mast_opt.result import SolveParams
from mast_opt.search import MipSolver
from mast_opt.server_assignment.expand import given_out
from mast_opt.server_assignment.measure import Measure
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import Bools, Ints, ServerAssignment


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
    """How many servers of each type in each rack these reservations have, so that the sum of their largest shares in
    one rack is least.

        fixed[t,b,q]         Σ_{r at b} n[t,r,q] = what the plan gives q of the stock
        room[t,r]            Σ_q n[t,r,q] ≤ servers that the plan gives to these reservations or to nobody
        stays[t,r,q]         n[t,r,q] + left_in_use[t,r,q] + left_idle[t,r,q] ≥ those of them that q has today
        no_more[t,b,q]       Σ_{r at b} left_in_use ≤ the plan's; the same of left_idle
        densest[r,q]         Σ_t rru[q,t]·n[t,r,q] ≤ densest[q]                 minimise Σ_q densest[q] / held[q]
    """
    return _Racks(problem, plan, reservations).formulation()


@dataclass(frozen=True, eq=False)
class _Cells:
    """Which reservation may have some of which rack stock (servers of a type in a rack); by rack stock, then
    reservation."""

    stock: Ints
    """[C] rack stock"""
    reservation: Ints
    """[C]"""
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
        have = self._counts(p.stocks.of, plan.reservation, self.chosen[plan.reservation])
        self.fixed_key, self.fixed = have
        self.cells = self._cells()

    def formulation(self) -> Formulation[Plan]:
        p, c = self.p, self.cells
        m = MipBuilder("server_assignment_racks")
        first = self.stocks.first[c.stock]
        at = [p.server_type[first], p.server_rack[first], c.reservation]
        axes = [p.types, p.racks, p.reservations]
        room = np.bincount(self.stocks.of[self.open], minlength=len(self.stocks))
        n = m.columns("n", axes, at, upper=room[c.stock], integral=True)
        works, idles = np.flatnonzero(c.in_use), np.flatnonzero(c.idle)
        left_in_use = m.columns("left_in_use", axes, [position[works] for position in at], upper=c.in_use[works])
        left_idle = m.columns("left_idle", axes, [position[idles] for position in at], upper=c.idle[idles])
        chosen = np.flatnonzero(self.chosen)
        densest = m.columns("densest", [p.reservations], [chosen])

        key = self.board_stock[c.stock] * self.width + c.reservation
        row = np.searchsorted(self.fixed_key, key)
        stock, who = self.fixed_key // self.width, self.fixed_key % self.width
        board_at = [p.server_type[p.stocks.first[stock]], p.server_switchboard[p.stocks.first[stock]], who]
        board_axes = [p.types, p.switchboards, p.reservations]
        m.equals("fixed", board_axes, board_at, value=self.fixed).add(row, n)
        used = np.unique(c.stock)
        room_at = [p.server_type[self.stocks.first[used]], p.server_rack[self.stocks.first[used]]]
        m.rows("room", axes[:2], room_at, upper=room[used]).add(np.searchsorted(used, c.stock), n)
        held = np.flatnonzero(c.in_use + c.idle)
        stays = m.rows("stays", axes, [position[held] for position in at], lower=(c.in_use + c.idle)[held])
        stays.add(np.arange(len(held)), n[held])
        stays.add(np.searchsorted(held, works), left_in_use)
        stays.add(np.searchsorted(held, idles), left_idle)
        gone = zip(
            ("no_more_in_use", "no_more_idle"), (left_in_use, left_idle), (works, idles), self._left(), strict=True
        )
        for name, columns, where, amount in gone:
            m.rows(name, board_axes, board_at, upper=amount).add(row[where], columns)
        self._densest(m, n, densest, chosen)
        mip = m.build({"densest": 1.0})

        def decode(x: FloatArray) -> Plan:
            count = np.rint(x[n]).astype(np.int64)
            return given_out(p, self.stocks, c.stock, c.reservation, count, self.plan.reservation, self.open)

        def encode(plan: Plan) -> FloatArray:
            keys, have = self._counts(self.stocks.of, plan.reservation, self.open & self.chosen[plan.reservation])
            count = np.zeros(len(c.stock), np.int64)
            count[np.searchsorted(c.stock * self.width + c.reservation, keys)] = have
            values = np.zeros(len(mip.cost))
            left = np.maximum(c.in_use + c.idle - count, 0)
            left_of_idle = np.minimum(left, c.idle)
            values[n] = count
            values[left_in_use] = (left - left_of_idle)[works]
            values[left_idle] = left_of_idle[idles]
            values[densest] = Measure(p, plan.reservation).held_in_rack[chosen]
            return values

        return Formulation(mip, decode, encode)

    def _densest(self, m: MipBuilder, n: IntArray, densest: IntArray, chosen: Ints) -> None:
        p, c = self.p, self.cells
        first = self.stocks.first[c.stock]
        key = p.server_rack[first] * self.width + c.reservation
        pair, row = np.unique(key, return_inverse=True)
        rows = m.rows("densest", [p.racks, p.reservations], [pair // self.width, pair % self.width], upper=0)
        rows.add(row.reshape(-1), n, p.value_mrru[c.reservation, p.server_type[first]])
        rows.add(np.arange(len(pair)), densest[np.searchsorted(chosen, pair % self.width)], -1)
        held = Measure(p, self.plan.reservation).total[chosen]
        m.term("densest", densest, 1 / np.maximum(held, 1))

    def _counts(self, group: Ints, reservation: Ints, which: Bools) -> tuple[Ints, Ints]:
        """(group · Q + reservation, number) for the servers in question, ascending."""
        key = np.sort(group[which] * self.width + reservation[which])
        new = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else key
        return key[new], np.diff(np.append(new, len(key)))

    def _cells(self) -> _Cells:
        """Every rack stock with open servers, for every chosen reservation that has some of its switchboard stock."""
        p = self.p
        usable = np.unique(self.stocks.of[self.open])
        board = self.board_stock[usable]
        first = np.searchsorted(self.fixed_key // self.width, board)
        number = np.searchsorted(self.fixed_key // self.width, board, side="right") - first
        stock = np.repeat(usable, number)
        within = np.arange(len(stock)) - np.repeat(np.cumsum(number) - number, number)
        reservation = self.fixed_key[np.repeat(first, number) + within] % self.width
        mine = np.flatnonzero(self.open & p.owned)
        mine = mine[self.chosen[p.owner[mine]]]
        key = self.stocks.of[mine] * self.width + p.owner[mine]
        cell = stock * self.width + reservation
        at = np.searchsorted(cell, key)
        known = np.append(cell, -1)[at] == key
        in_use, idle = (
            np.bincount(at[known & which], minlength=len(cell)) for which in (p.in_use[mine], ~p.in_use[mine])
        )
        return _Cells(stock, reservation, in_use, idle)

    def _left(self) -> tuple[Ints, Ints]:
        """[·] servers that the plan takes from each chosen reservation at each of its stocks and that stay open."""
        p = self.p
        gone = np.flatnonzero(self.open & p.owned & (self.plan.reservation != p.owner))
        key = p.stocks.of[gone] * self.width + p.owner[gone]
        at = np.searchsorted(self.fixed_key, key)
        known = np.append(self.fixed_key, -1)[at] == key
        in_use, idle = (
            np.bincount(at[known & which], minlength=len(self.fixed_key)) for which in (p.in_use[gone], ~p.in_use[gone])
        )
        return in_use, idle
