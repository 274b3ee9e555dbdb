"""Disaggregation of a server assignment: from counts of equal servers to named servers, with the fewest moves."""

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.server_assignment.formulation.index_sets import IndexSets
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import Bools, Ints, ServerAssignment
from mast_opt.problems.server_assignment.server_classes import ServerClasses

FREE, IDLE, IN_USE = range(3)


def expand(problem: ServerAssignment, pairs: IndexSets, count: Ints) -> Plan:
    """The plan in which each pair has so many servers ([N]).

    A reservation keeps what it has, servers in use before idle ones; what it gains comes from free servers before
    idle and used ones of others. Among equals servers are taken from the racks in turn, so that neither what is kept
    nor what is gained crowds in a rack. The same counts always give the same plan.

    Raises:
        ValueError: a stock has fewer servers than its counts add up to.
    """
    nobody = np.full(len(problem.servers), len(problem.reservations), np.int64)
    every = np.ones(len(problem.servers), np.bool_)
    return given_out(problem, problem.stocks, pairs.stock, pairs.reservation, count, nobody, every)


def given_out(
    problem: ServerAssignment,
    classes: ServerClasses,
    at: Ints,
    who: Ints,
    count: Ints,
    before: Ints,
    open_to_all: Bools,
) -> Plan:
    """The plan in which so many servers of class ``at`` go to reservation ``who`` ([·] each, by class, then
    reservation), out of those that are ``open_to_all`` ([S]); the others stay as ``before`` ([S]) has them.

    Raises:
        ValueError: a class has fewer open servers than its counts add up to.
    """
    p, width = problem, len(problem.reservations)
    members = np.bincount(classes.of[open_to_all], minlength=len(classes))
    wanted = np.bincount(at, count, len(classes)).astype(np.int64)
    if (wanted > members).any():
        short = int(np.argmax(wanted - members))
        raise ValueError(f"class {short} has {members[short]} servers, its counts add up to {wanted[short]}")
    reservation = np.where(open_to_all, width, before)
    kept, number = _kept(p, classes, at * width + who, count, open_to_all)
    reservation[kept] = p.servers.owner[kept]

    gained = count - number
    there = np.flatnonzero(open_to_all & (reservation == width))
    state = np.where(~p.owned, FREE, np.where(p.working, IN_USE, IDLE))[there]
    there = there[_in_turn(classes.of[there], state, rack=p.servers.rack[there])]
    needed = np.bincount(at, gained, len(classes)).astype(np.int64)
    taken = there[_rank(classes.of[there]) < needed[classes.of[there]]]
    reservation[taken] = np.repeat(who, gained)
    return Plan(reservation)


def _kept(
    p: ServerAssignment, classes: ServerClasses, pair: Ints, count: Ints, open_to_all: Bools
) -> tuple[Ints, Ints]:
    """The servers that stay with their owners, and how many of each pair (class · Q + reservation) do."""
    owned = np.flatnonzero(p.owned & open_to_all)
    key = classes.of[owned] * len(p.reservations) + p.servers.owner[owned]
    row = np.searchsorted(pair, key)
    known = np.append(pair, -1)[row] == key
    owned, row = owned[known], row[known]
    order = _in_turn(row, np.where(p.servers.in_use[owned], 0, 1), rack=p.servers.rack[owned])
    owned, row = owned[order], row[order]
    stays = _rank(row) < count[row]
    return owned[stays], np.bincount(row[stays], minlength=len(pair))


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
