"""Guarantees during a server-assignment migration: what each reservation holds, and its slack above its floor."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.server_assignment.problem import SHARED, Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure


class Guarantees:
    """Amounts in mrru. A server that leaves is gone at once; one that comes counts from the end of its wave."""

    def __init__(self, problem: ServerAssignment, after: Ints) -> None:
        """``after``: [S] the plan's assignment."""
        self.p = problem
        now, then = Measure(problem, problem.servers.owner), Measure(problem, after)
        self.floor: Ints = np.minimum(problem.reservations.asked_mrru, np.minimum(now.guaranteed, then.guaranteed))
        """[Q] what is asked, or less where today or the plan guarantees less."""
        self.shares = (problem.reservations.buffer == SHARED) & (problem.pool is not None)
        self.total: Ints = now.total.copy()
        self.at_risk: Ints = now.held.copy()
        """[Q, B] what a switchboard's loss takes; from the pool also what it must then stand in for."""
        if problem.pool is not None:
            self.at_risk[problem.pool] += now.held[problem.reservations.buffer == SHARED].sum(axis=0)

    def may_leave(self, q: int, kind: int, board: int) -> int | None:
        """Number of servers of a type that can leave q from a switchboard; None: any number."""
        worth = int(self.p.reservations.value_mrru[q, kind])
        if worth == 0:
            return None
        return max(int(self.total[q] - self._worst_elsewhere(q, board) - self.floor[q]) // worth, 0)

    def may_come(self, q: int, source: int, kind: int, board: int) -> int | None:
        """Number of servers that can come to q from ``source`` without putting more at risk than the pool bears; None:
        any number."""
        pool, more = self.p.pool, self._more_at_risk(q, source, kind)
        if pool is None or more <= 0:
            return None
        return max(int(self.total[pool] - self.at_risk[pool, board] - self.floor[pool]) // more, 0)

    def below(self, q: int, kind: int, board: int) -> int:
        """Amount by which q falls below its floor if one such server leaves."""
        worth = int(self.p.reservations.value_mrru[q, kind])
        return int(self.floor[q] - self.total[q] + worth + self._worst_elsewhere(q, board))

    def pool_below(self, q: int, source: int, kind: int, board: int) -> int:
        """Amount by which the pool falls below its floor if one such server comes to q from ``source``."""
        pool = self.p.pool
        assert pool is not None
        at_risk = self.at_risk[pool, board] + self._more_at_risk(q, source, kind)
        return int(self.floor[pool] - self.total[pool] + at_risk)

    def start(self, source: int, target: int, kind: int, board: int, count: int) -> None:
        """Servers leave ``source`` (Q: nobody). What they put at risk for a pool counts from now on; what they no
        longer do, only when they have arrived: in a wave, whatever comes first must do no harm."""
        if source < len(self.shares):
            worth = count * self.p.reservations.value_mrru[source, kind]
            self.total[source] -= worth
            self.at_risk[source, board] -= worth
        if self.p.pool is not None:
            self.at_risk[self.p.pool, board] += count * max(self._more_at_risk(target, source, kind), 0)

    def arrive(self, source: int, target: int, kind: int, board: int, count: int) -> None:
        """Servers from ``source`` are at ``target`` (Q: nobody)."""
        if target < len(self.shares):
            worth = count * self.p.reservations.value_mrru[target, kind]
            self.total[target] += worth
            self.at_risk[target, board] += worth
        if self.p.pool is not None:
            self.at_risk[self.p.pool, board] += count * min(self._more_at_risk(target, source, kind), 0)

    def _more_at_risk(self, q: int, source: int, kind: int) -> int:
        """Amount that the pool must stand in for in addition when one server of a type goes from ``source`` to q."""
        coming, going = (
            int(self.p.reservations.value_mrru[who, kind]) if who < len(self.shares) and self.shares[who] else 0
            for who in (q, source)
        )
        return coming - going

    def _worst_elsewhere(self, q: int, board: int) -> int:
        """Largest loss by another switchboard: servers that leave the worst one cost nothing until then."""
        if not self.p.buffered[q]:
            return 0
        row = self.at_risk[q]
        return int(max(row[:board].max(initial=0), row[board + 1 :].max(initial=0)))
