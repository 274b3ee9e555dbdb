"""Measures of a server assignment: what it holds, guarantees and lacks, in exact integers, from the servers alone.

The verifier's half of the statement: nothing here is shared with the formulation or with a heuristic.
"""

from functools import cached_property

import numpy as np

from mast_opt.problems.server_assignment.problem import SHARE, SHARED, Ints, ServerAssignment


class Measure:
    """Figures of one assignment; everything is in thousandths of an RRU unless said."""

    def __init__(self, problem: ServerAssignment, reservation: Ints) -> None:
        """``reservation``: [S] positions, Q for nobody."""
        self.p = problem
        self.reservation = reservation
        self.given: Ints = np.flatnonzero(reservation < len(problem.reservations))
        self.holder: Ints = reservation[self.given]
        self.worth: Ints = problem.reservations.value_mrru[self.holder, problem.servers.type[self.given]]

    @cached_property
    def held(self) -> Ints:
        """[Q, B] what each reservation holds at each switchboard."""
        held = np.zeros((len(self.p.reservations), len(self.p.switchboards)), np.int64)
        np.add.at(held, (self.holder, self.p.server_switchboard[self.given]), self.worth)
        return held

    @cached_property
    def held_in_rack(self) -> Ints:
        """[Q] what each reservation holds in its fullest rack."""
        key = self.holder * len(self.p.racks) + self.p.servers.rack[self.given]
        pair, at = np.unique(key, return_inverse=True)
        amount = np.zeros(len(pair), np.int64)
        np.add.at(amount, at, self.worth)
        most = np.zeros(len(self.p.reservations), np.int64)
        np.maximum.at(most, pair // len(self.p.racks), amount)
        return most

    @cached_property
    def total(self) -> Ints:
        """RRUs [Q] that each reservation holds, in mrru."""
        return np.asarray(self.held.sum(axis=1))

    @cached_property
    def lost(self) -> Ints:
        """[Q] what the loss of one switchboard takes at most: 0 without a buffer of one's own; from the pool it also
        takes what it must then stand in for."""
        at_risk = self.held.copy()
        if self.p.pool is not None:
            at_risk[self.p.pool] += self.held[self.p.reservations.buffer == SHARED].sum(axis=0)
        return np.where(self.p.buffered, at_risk.max(axis=1), 0)

    @cached_property
    def guaranteed(self) -> Ints:
        """[Q] what is left whichever switchboard is lost; below 0 where a pool is too small for what it backs."""
        return np.asarray(self.total - self.lost)

    @cached_property
    def short(self) -> Ints:
        """RRUs [Q] that are missing to what is asked, in mrru."""
        return np.asarray(np.maximum(self.p.reservations.asked_mrru - self.guaranteed, 0))

    @cached_property
    def excess(self) -> Ints:
        """[Q, B] above the spread limit; 0 where there is none."""
        over = np.maximum(self.held - self.p.spread_limit_mrru[:, None], 0)
        return np.where(self.p.reservations.spread_limited[:, None], over, 0)

    @cached_property
    def slack_milli(self) -> Ints:
        """[A] outside the tolerance of each affinity, in thousandths of mrru."""
        p = self.p
        q = p.affinities.reservation
        there = p.switchboards.datacenter == p.affinities.datacenter[:, None]
        held = (self.held[q] * there).sum(axis=1)
        off = np.abs(SHARE * held - p.affinities.share_milli * self.total[q])
        return np.asarray(np.maximum(off - p.affinities.tolerance_milli * self.total[q], 0))

    @cached_property
    def taken(self) -> Ints:
        """[·] servers that somebody has today and that this assignment takes from them."""
        return np.flatnonzero(self.p.owned & (self.reservation != self.p.servers.owner))
