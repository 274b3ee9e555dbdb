"""Between a plan and the columns of the formulation, exactly in both directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.mip import FloatArray, IntArray
from mast_opt.server_assignment.formulation.disaggregation import expand
from mast_opt.server_assignment.formulation.holdings import Holdings
from mast_opt.server_assignment.formulation.index_sets import Pairs, counted
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import SHARE, ServerAssignment


@dataclass(frozen=True, eq=False)
class Codec:
    """Column ids of the formulation and what they stand for."""

    problem: ServerAssignment
    pairs: Pairs
    width: int
    n: IntArray
    """[N]"""
    left_in_use: IntArray
    """[·] for the pairs with servers in use today."""
    left_idle: IntArray
    """[·] for the pairs with idle servers today."""
    short: IntArray
    """[Q]"""
    largest: IntArray
    """[·] for the reservations with a buffer among their own servers."""
    excess: IntArray
    """[·, B] for the reservations with a spread limit."""
    slack: IntArray
    """[A]"""

    def decode(self, x: FloatArray) -> Plan:
        """Named servers for the rounded counts."""
        return expand(self.problem, self.pairs, np.rint(x[self.n]).astype(np.int64))

    def encode(self, plan: Plan) -> FloatArray:
        """A value for every column. Counts do not tell equal servers apart: where reservations only exchange servers
        of a stock, nobody moves."""
        p, pairs = self.problem, self.pairs
        count = counted(p, pairs, plan.reservation)
        then = Holdings(p, pairs, count)
        left = np.maximum(pairs.today - count, 0)
        left_idle = np.minimum(left, pairs.idle)
        values = np.zeros(self.width)
        values[self.n] = count
        values[self.left_in_use] = (left - left_idle)[pairs.in_use > 0]
        values[self.left_idle] = left_idle[pairs.idle > 0]
        values[self.short] = then.short
        values[self.largest] = then.largest[p.buffered]
        values[self.excess] = then.excess[p.spread_limited]
        values[self.slack] = then.slack_milli / SHARE
        return values
