"""Codec of the server-assignment MIP: between a plan and the columns, both ways; columns fixed to a plan's values."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.kind.formulation import FixedParts
from mast_opt.problems.server_assignment.formulation.disaggregation import expand
from mast_opt.problems.server_assignment.formulation.index_sets import IndexSets, counted
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import SHARE, SHARED, Ints, ServerAssignment


@dataclass(frozen=True, eq=False)
class Codec:
    """Column ids of the formulation and what they stand for."""

    problem: ServerAssignment
    pairs: IndexSets
    width: int
    n: IntArray
    """Columns of the counts of servers, [N]."""
    left_in_use: IntArray
    """[·] for the pairs with servers in use today."""
    left_idle: IntArray
    """[·] for the pairs with idle servers today."""
    short: IntArray
    """Columns of what is lacking, [Q]."""
    largest: IntArray
    """[·] for the reservations with a buffer among their own servers."""
    excess: IntArray
    """[·, B] for the reservations with a spread limit."""
    slack: IntArray
    """Columns of the slack of affinities, [A]."""

    def decode(self, x: FloatArray) -> Plan:
        """Named servers for the rounded counts."""
        return expand(self.problem, self.pairs, np.rint(x[self.n]).astype(np.int64))

    def encode(self, plan: Plan) -> FloatArray:
        """A value for every column. Counts do not distinguish equal servers: where reservations only exchange servers
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
        values[self.excess] = then.excess[p.reservations.spread_limited]
        values[self.slack] = then.slack_milli / SHARE
        return values


class Holdings:
    """Figures of counts of servers, one for each pair; in thousandths of an RRU unless said."""

    def __init__(self, problem: ServerAssignment, pairs: IndexSets, count: Ints) -> None:
        self.p = problem
        self.pairs = pairs
        self.count = count

    @cached_property
    def held(self) -> Ints:
        """RRUs [Q, B] of each reservation behind each switchboard."""
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
        at_risk[pool] += self.held[self.p.reservations.buffer == SHARED].sum(axis=0)
        return at_risk

    @cached_property
    def largest(self) -> Ints:
        """[Q] what the loss of one switchboard takes from a reservation with a buffer; 0 without."""
        return np.where(self.p.buffered, self.at_risk.max(axis=1), 0)

    @cached_property
    def short(self) -> Ints:
        """RRUs [Q] that are missing once the worst switchboard is lost."""
        return np.asarray(np.maximum(self.p.reservations.asked_mrru + self.largest - self.held.sum(axis=1), 0))

    @cached_property
    def excess(self) -> Ints:
        """[Q, B] above the spread limit, 0 where there is none."""
        limited = self.p.reservations.spread_limited[:, None]
        return np.where(limited, np.maximum(self.held - self.p.spread_limit_mrru[:, None], 0), 0)

    @cached_property
    def slack_milli(self) -> Ints:
        """[A] thousandths of mrru outside the tolerance."""
        p = self.p
        held = self.held[p.affinities.reservation]
        here = np.where(p.switchboards.datacenter == p.affinities.datacenter[:, None], SHARE, 0)
        off = np.abs(((here - p.affinities.share_milli[:, None]) * held).sum(axis=1))
        return np.asarray(np.maximum(off - p.affinities.tolerance_milli * held.sum(axis=1), 0))


FREEZING: FixedParts[ServerAssignment, Plan] = FixedParts(
    tables=("assignments",),
    blocks={"n": (None, "switchboard", "reservation")},
    groups={"switchboard": lambda p: ("server", p.switchboards.labels, p.server_switchboard)},
)
