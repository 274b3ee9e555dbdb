"""What each reservation holds while servers change hands, and how far it is above what it must not fall below."""

from __future__ import annotations

import numpy as np

from mast_opt.server_assignment.measure import Measure
from mast_opt.server_assignment.problem import SHARED, Ints, ServerAssignment


class Guarantees:
    """Amounts in mrru. A server that leaves is gone at once; one that comes counts from the end of its wave."""

    def __init__(self, problem: ServerAssignment, after: Ints) -> None:
        """``after``: [S] the plan's assignment."""
        self.p = problem
        now, then = Measure(problem, problem.owner), Measure(problem, after)
        self.floor: Ints = np.minimum(problem.asked_mrru, np.minimum(now.guaranteed, then.guaranteed))
        """[Q] what is asked, or less where today or the plan guarantees less."""
        self.shares = (problem.buffer == SHARED) & (problem.pool is not None)
        self.total: Ints = now.total.copy()
        self.at_risk: Ints = now.held.copy()
        """[Q, B] what a switchboard's loss takes; from the pool also what it must then stand in for."""
        if problem.pool is not None:
            self.at_risk[problem.pool] += now.held[problem.buffer == SHARED].sum(axis=0)

    def guaranteed(self, q: int) -> int:
        lost = self.at_risk[q].max() if self.p.buffered[q] else 0
        return int(self.total[q] - lost)

    def may_leave(self, q: int, kind: int, board: int) -> int | None:
        """How many servers of a type can leave q from a switchboard; None: any number."""
        worth = int(self.p.value_mrru[q, kind])
        if worth == 0:
            return None
        return max(int(self.total[q] - self._worst_elsewhere(q, board) - self.floor[q]) // worth, 0)

    def may_come(self, q: int, source: int, kind: int, board: int) -> int | None:
        """How many can come to q from ``source`` without putting more at risk than the pool bears; None: any number."""
        pool, more = self.p.pool, self._more_at_risk(q, source, kind)
        if pool is None or more <= 0:
            return None
        return max(int(self.total[pool] - self.at_risk[pool, board] - self.floor[pool]) // more, 0)

    def below(self, q: int, kind: int, board: int) -> int:
        """By how much q falls below its floor if one such server leaves."""
        worth = int(self.p.value_mrru[q, kind])
        return int(self.floor[q] - self.total[q] + worth + self._worst_elsewhere(q, board))

    def pool_below(self, q: int, source: int, kind: int, board: int) -> int:
        """By how much the pool falls below its floor if one such server comes to q from ``source``."""
        pool = self.p.pool
        assert pool is not None
        at_risk = self.at_risk[pool, board] + self._more_at_risk(q, source, kind)
        return int(self.floor[pool] - self.total[pool] + at_risk)

    def leave(self, q: int, kind: int, board: int, count: int) -> None:
        self._change(q, kind, board, -count)
        self.total[q] -= count * self.p.value_mrru[q, kind]

    def start(self, q: int, kind: int, board: int, count: int) -> None:
        """Servers are on their way to q: what they put at risk counts for the pool from now on."""
        if self.shares[q]:
            assert self.p.pool is not None
            self.at_risk[self.p.pool, board] += count * self.p.value_mrru[q, kind]

    def arrive(self, q: int, kind: int, board: int, count: int) -> None:
        """Those servers are there."""
        worth = count * self.p.value_mrru[q, kind]
        self.total[q] += worth
        self.at_risk[q, board] += worth

    def _more_at_risk(self, q: int, source: int, kind: int) -> int:
        """What the pool must stand in for in addition when one server of a type goes from ``source`` to q."""
        coming = self.p.value_mrru[q, kind] if self.shares[q] else 0
        going = self.p.value_mrru[source, kind] if source < len(self.shares) and self.shares[source] else 0
        return int(coming - going)

    def _change(self, q: int, kind: int, board: int, count: int) -> None:
        worth = count * self.p.value_mrru[q, kind]
        self.at_risk[q, board] += worth
        if self.shares[q]:
            assert self.p.pool is not None
            self.at_risk[self.p.pool, board] += worth

    def _worst_elsewhere(self, q: int, board: int) -> int:
        """What another switchboard's loss takes at most: servers that leave the worst one cost nothing until then."""
        if not self.p.buffered[q]:
            return 0
        row = self.at_risk[q]
        return int(max(row[:board].max(initial=0), row[board + 1 :].max(initial=0)))
