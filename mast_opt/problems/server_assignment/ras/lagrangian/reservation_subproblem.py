"""Fractional reservation subproblem of ras's Lagrangian relaxation: its least cost at given prices, compiled.

A reservation buys servers at each switchboard, the best value for its price first, up to an amount L that no
switchboard exceeds and that has a price of its own. For a given L each switchboard is a fractional knapsack, so the
cost is convex in L, piecewise linear, and its minimum is found by one sweep over the amounts where its slope changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.server_assignment.problem import Ints


class PricedItems(NamedTuple):
    """Items of the fractional knapsacks: pairs of stock and reservation, by reservation, then switchboard."""

    start: Ints
    """[Q + 1]"""
    board: Ints
    """Switchboard of each item, [N]."""
    worth: Ints
    """Worth of each item, [N]."""
    in_use: Ints
    idle: Ints
    most: Ints


class ServerPrices(NamedTuple):
    """Costs of servers at some prices."""

    each: FloatArray
    """[N] of a server of each pair"""
    in_use: float
    """Part of it that is saved where the server is in use by the reservation today."""
    idle: float
    """Part of it that is saved where the reservation has the server today, idle."""


class Limits(NamedTuple):
    """Limits on what each reservation holds at one switchboard, and the price of excess; amounts in mrru."""

    embedded: Ints
    """[Q] 1 where it has a buffer of its own"""
    least: Ints
    """[Q] least L that is allowed"""
    limit: FloatArray
    """[Q] above which excess has a price"""
    low: FloatArray
    """[Q] where the price of excess begins: the most that whole servers add up to below the limit"""
    high: FloatArray
    """[Q] the least that they add up to above it; from here on the price is whole"""
    share: FloatArray
    """[Q] of the price, between the two"""
    steep: FloatArray
    """[Q, B] price of excess per mrru"""
    cap: FloatArray
    """[Q, B] what it may hold"""


@kernel
def _items(
    o: PricedItems,
    first: int,
    last: int,
    prices: ServerPrices,
    width: FloatArray,
    ratio: FloatArray,
) -> tuple[int, float]:
    """Pieces of the switchboard's pairs that are worth their price, best first; returns (pieces, what worthless
    servers cost)."""
    count, worthless = 0, 0.0
    for n in range(first, last):
        for piece in range(3):
            if piece == 0:
                amount, price = o.in_use[n], prices.each[n] - prices.in_use
            elif piece == 1:
                amount, price = o.idle[n], prices.each[n] - prices.idle
            else:
                amount, price = o.most[n] - o.in_use[n] - o.idle[n], prices.each[n]
            if amount <= 0 or price >= 0.0:
                continue
            if o.worth[n] == 0:
                worthless += amount * price
                continue
            slope = price / o.worth[n]
            at = count
            while at > 0 and ratio[at - 1] > slope:
                ratio[at], width[at] = ratio[at - 1], width[at - 1]
                at -= 1
            ratio[at], width[at] = slope, float(amount * o.worth[n])
            count += 1
    return count, worthless


@kernel
def _events(
    count: int,
    width: FloatArray,
    ratio: FloatArray,
    border: FloatArray,
    price: FloatArray,
    at: FloatArray,
    jump: FloatArray,
    events: int,
) -> tuple[int, float, float]:
    """Adds where the slope of a switchboard's cost changes; returns (events, slope at 0, cost at the end)."""
    if count == 0:
        return events, 0.0, 0.0
    position, item, zone = 0.0, 0, 0
    while border[zone] <= 0.0:
        zone += 1
    end = width[0]
    slope, begin, cost = 0.0, 0.0, 0.0
    started = False
    while True:
        new = min(ratio[item] + price[zone], 0.0)
        if not started:
            begin, started = new, True
        elif new != slope:
            at[events], jump[events] = position, new - slope
            events += 1
        slope = new
        if new == 0.0:
            break
        reach = min(end, border[zone])
        cost += slope * (reach - position)
        position = reach
        while border[zone] <= reach:
            zone += 1
        if reach >= end:
            item += 1
            if item == count:
                at[events], jump[events] = position, -slope
                events += 1
                break
            end = position + width[item]
    return events, begin, cost


@kernel
def _sweep(
    order: Ints, at: FloatArray, jump: FloatArray, events: int, slope: float, first: float
) -> tuple[float, float]:
    """(least, level): the minimum over L from ``first`` on, with the slope at 0 and its changes."""
    value, position, lowest, level = 0.0, 0.0, np.inf, first
    for k in range(events + 1):
        reach = at[order[k]] if k < events else max(position, first)
        if position <= first <= reach:
            lowest = min(lowest, value + slope * (first - position))
        value += slope * (reach - position)
        position = reach
        if position >= first and value < lowest:
            lowest, level = value, position
        if k < events:
            slope += jump[order[k]]
    return lowest, level


@compiled
def cheapest(
    o: PricedItems,
    bounds: Limits,
    begin_q: int,
    end_q: int,
    prices: ServerPrices,
    level_price: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """(least, level) of the reservations from ``begin_q`` to ``end_q``: what servers cost at least, and at which L.

    ``level_price`` [Q]: of L, per mrru.
    """
    every_least, every_level = np.zeros(end_q - begin_q), np.zeros(end_q - begin_q)
    widest = 1
    for q in range(begin_q, end_q):
        widest = max(widest, o.start[q + 1] - o.start[q])
    at, jump = np.empty(5 * widest + 5), np.empty(5 * widest + 5)
    width, ratio = np.empty(3 * widest), np.empty(3 * widest)
    border, price = np.array([0.0, 0.0, 0.0, np.inf]), np.array([0.0, 0.0, 0.0, np.inf])
    for q in range(begin_q, end_q):
        first, events, slope, free = o.start[q], 0, level_price[q], 0.0
        while first < o.start[q + 1]:
            last, b = first, o.board[first]
            while last < o.start[q + 1] and o.board[last] == b:
                last += 1
            count, worthless = _items(o, first, last, prices, width, ratio)
            border[0], border[1], border[2] = bounds.low[q], bounds.high[q], bounds.cap[q, b]
            price[1], price[2] = bounds.share[q] * bounds.steep[q, b], bounds.steep[q, b]
            events, begin, whole = _events(count, width, ratio, border, price, at, jump, events)
            free += worthless
            slope += begin
            if not bounds.embedded[q]:
                free += whole
            first = last
        if not bounds.embedded[q]:
            every_least[q - begin_q] = free
            continue
        order = np.argsort(at[:events])
        own, every_level[q - begin_q] = _sweep(order, at, jump, events, slope, float(bounds.least[q]))
        every_least[q - begin_q] = free + own
    return every_least, every_level


@compiled
def bought(
    o: PricedItems,
    bounds: Limits,
    begin_q: int,
    end_q: int,
    prices: ServerPrices,
    level: FloatArray,
    amount: FloatArray,
) -> None:
    """``amount`` [N], 0 before: of the reservations from ``begin_q`` to ``end_q`` the servers of each pair at which
    ``cheapest`` is reached, with L as ``level`` [Q] says; fractional at the margin."""
    border, price = np.array([0.0, 0.0, 0.0, np.inf]), np.array([0.0, 0.0, 0.0, np.inf])
    for q in range(begin_q, end_q):
        first = o.start[q]
        while first < o.start[q + 1]:
            last, b = first, o.board[first]
            while last < o.start[q + 1] and o.board[last] == b:
                last += 1
            border[0], border[1], border[2] = bounds.low[q], bounds.high[q], bounds.cap[q, b]
            price[1], price[2] = bounds.share[q] * bounds.steep[q, b], bounds.steep[q, b]
            _buy(o, first, last, prices, border, price, level[q], bounds.embedded[q], amount)
            first = last


@kernel
def _next_piece(o: PricedItems, n: int, have: float, prices: ServerPrices) -> tuple[float, float]:
    """(servers, price of each) of a pair that come after those that are bought: in use, then idle, then others."""
    if have < o.in_use[n]:
        return o.in_use[n] - have, prices.each[n] - prices.in_use
    if have < o.in_use[n] + o.idle[n]:
        return o.in_use[n] + o.idle[n] - have, prices.each[n] - prices.idle
    return o.most[n] - have, prices.each[n]


@kernel
def _buy(
    o: PricedItems,
    first: int,
    last: int,
    prices: ServerPrices,
    border: FloatArray,
    price: FloatArray,
    level: float,
    embedded: bool,
    amount: FloatArray,
) -> None:
    """The best pieces of a switchboard's pairs, one after another, until its limits or no piece is worth its price."""
    position, zone = 0.0, 0
    end = level if embedded else np.inf
    while True:
        best, slope, room = -1, 0.0, 0.0
        for n in range(first, last):
            piece, own = _next_piece(o, n, amount[n], prices)
            if piece <= 0.0 or own >= 0.0:
                continue
            if o.worth[n] == 0:
                amount[n] += piece
                best = -2
                break
            if own / o.worth[n] < slope:
                best, slope, room = n, own / o.worth[n], piece
        if best == -2:
            continue
        while border[zone] <= position:
            zone += 1
        if best < 0 or slope + price[zone] >= 0.0 or position >= end:
            return
        take = min(room, (min(border[zone], end) - position) / o.worth[best])
        if take <= 1e-9 and take < room:  # only what rounding left below a border or the level; a whole piece is taken
            position = min(border[zone], end)
            continue
        amount[best] += take
        position += take * o.worth[best]
