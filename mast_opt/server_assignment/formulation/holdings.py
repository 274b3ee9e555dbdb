"""What counts of servers hold, guarantee and lack: the formulation's half of the statement.

``measure`` says the same of named servers for the verifier; the two share nothing.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mast_opt.server_assignment.formulation.index_sets import Pairs
from mast_opt.server_assignment.problem import SHARE, SHARED, Ints, ServerAssignment


class Holdings:
    """Figures of counts of servers, one for each pair; in thousandths of an RRU unless said."""

    def __init__(self, problem: ServerAssignment, pairs: Pairs, count: Ints) -> None:
        self.p = problem
        self.pairs = pairs
        self.count = count

    @cached_property
    def held(self) -> Ints:
        """[Q, B]"""
        shape = (len(self.p.reservations), len(self.p.switchboards))
        cell = self.pairs.reservation * shape[1] + self.pairs.switchboard
        amount = self.pairs.worth_mrru * self.count
        return np.bincount(cell, amount, shape[0] * shape[1]).astype(np.int64).reshape(shape)

    @cached_property
    def at_risk(self) -> Ints:
        """[Q, B] what each reservation loses with each switchboard; the pool also what it must then stand in for."""
        pool = self.p.pool
        if pool is None:
            return self.held
        at_risk = self.held.copy()
        at_risk[pool] += self.held[self.p.buffer == SHARED].sum(axis=0)
        return at_risk

    @cached_property
    def largest(self) -> Ints:
        """[Q] what the loss of one switchboard takes from a reservation with a buffer; 0 without."""
        return np.where(self.p.buffered, self.at_risk.max(axis=1), 0)

    @cached_property
    def short(self) -> Ints:
        """[Q]"""
        return np.asarray(np.maximum(self.p.asked_mrru + self.largest - self.held.sum(axis=1), 0))

    @cached_property
    def excess(self) -> Ints:
        """[Q, B] above the spread limit, 0 where there is none."""
        limited = self.p.spread_limited[:, None]
        return np.where(limited, np.maximum(self.held - self.p.spread_limit_mrru[:, None], 0), 0)

    @cached_property
    def slack_milli(self) -> Ints:
        """[A] thousandths of mrru outside the tolerance."""
        p = self.p
        held = self.held[p.affinity_reservation]
        here = np.where(p.switchboard_datacenter == p.affinity_datacenter[:, None], SHARE, 0)
        off = np.abs(((here - p.affinity_share_milli[:, None]) * held).sum(axis=1))
        return np.asarray(np.maximum(off - p.affinity_tolerance_milli * held.sum(axis=1), 0))
