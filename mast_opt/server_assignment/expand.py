"""From counts of equal servers to named servers, with the fewest moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.server_assignment.pairs import Pairs
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import Ints, ServerAssignment

FREE, IDLE, IN_USE = range(3)


def expand(problem: ServerAssignment, pairs: Pairs, count: Ints) -> Plan:
    """The plan in which each pair has so many servers ([N]).

    A reservation keeps what it has, servers in use before idle ones; what it gains comes from free servers before
    idle and used ones of others. Among equals servers are taken from the racks in turn, so that neither what is kept
    nor what is gained crowds in a rack. The same counts always give the same plan.

    Raises:
        ValueError: a stock has fewer servers than its counts add up to.
    """
    p, width = problem, len(problem.reservations)
    wanted = np.bincount(pairs.stock, count, len(p.stocks)).astype(np.int64)
    if (wanted > p.stocks.size).any():
        short = int(np.argmax(wanted - p.stocks.size))
        raise ValueError(f"stock {short} has {p.stocks.size[short]} servers, its counts add up to {wanted[short]}")
    reservation = np.full(len(p.servers), width, np.int64)
    kept = _kept(p, pairs, count)
    reservation[kept] = p.owner[kept]

    gained = np.maximum(count - pairs.today, 0)
    there = np.flatnonzero(reservation == width)
    state = np.where(~p.owned, FREE, np.where(p.working, IN_USE, IDLE))[there]
    order = _in_turn(p.stocks.of[there], state, rack=p.server_rack[there])
    there, stock = there[order], p.stocks.of[there[order]]
    place = _rank(stock)
    needed = np.bincount(pairs.stock, gained, len(p.stocks)).astype(np.int64)
    taken = there[place < needed[stock]]
    reservation[taken] = np.repeat(pairs.reservation, gained)
    return Plan(reservation)


def _kept(p: ServerAssignment, pairs: Pairs, count: Ints) -> Ints:
    """The servers that stay where they are."""
    owned = np.flatnonzero(p.owned)
    key = p.stocks.of[owned] * len(p.reservations) + p.owner[owned]
    pair = np.searchsorted(pairs.stock * len(p.reservations) + pairs.reservation, key)
    order = _in_turn(pair, np.where(p.in_use[owned], 0, 1), rack=p.server_rack[owned])
    owned, pair = owned[order], pair[order]
    return owned[_rank(pair) < count[pair]]


def _in_turn(group: Ints, state: NDArray[np.integer], *, rack: Ints) -> Ints:
    """The order by group and state in which each rack comes once before any comes twice."""
    by_rack = np.lexsort((rack, state, group))
    turn = np.empty(len(rack), np.int64)
    turn[by_rack] = _rank(group[by_rack], state[by_rack], rack[by_rack])
    return np.lexsort((rack, turn, state, group))


def _rank(*keys: NDArray[np.integer]) -> Ints:
    """[·] the place of each row in its run of equal rows, from 0; equal rows are neighbours."""
    rows = np.arange(len(keys[0]))
    new = np.ones(len(rows), np.bool_)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return rows - np.maximum.accumulate(np.where(new, rows, 0))
