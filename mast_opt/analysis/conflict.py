"""Why no plan exists: a set of limits that contradict one another and of which none can be left out.

An elastic filter (Chinneck & Dravnieks, ORSA J. Computing 3, 1991) finds a small infeasible set: let every limit give
way at a price, hold those that do, and again until nothing helps. A deletion filter then tries to leave out each of its
members; what is left is irreducible, since every member was seen to be needed by a solve that found a plan without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mast_opt.analysis.elastic import Elastic
from mast_opt.backends.base import Backend
from mast_opt.mip import BoolArray, Mip, frozen
from mast_opt.result import SolveParams, Status
from mast_opt.solving.clock import Clock

TOUCHED = 1e-7
"""Slack above which a limit counts as stretched."""


class Filter:
    """The search for one irreducible infeasible set of limits."""

    def __init__(self, elastic: Elastic, backend: Backend, params: SolveParams, clock: Clock) -> None:
        self._elastic = elastic
        self._backend = backend
        self._params = params
        self._clock = clock
        self.minimal = True
        """False once a solve ended without an answer."""
        self.solves = 0

    def feasible(self, active: BoolArray, share: float = 1.0) -> bool | None:
        """Is there a plan that keeps the active limits? None if the time did not suffice to tell."""
        mip = self._elastic.held(active)
        if self._answer(_continuous(mip), share) is False:
            return False
        return self._answer(mip, share)

    def infeasible_set(self) -> list[int] | None:
        """Some limits that contradict one another, the last found to stretch last; None if out of time."""
        every = np.ones(self._elastic.count, np.bool_)
        whole = self._answer(_continuous(self._elastic.held(every))) is not False
        mip = self._elastic.stretched(whole=whole)
        width = len(mip.cost) - self._elastic.count
        found: list[int] = []
        while True:
            self.solves += 1
            params = replace(self._params, time_limit_s=self._clock.budget_s(0.5), gap=0.5)
            result = self._backend.solve(mip, params)
            if result.status is Status.INFEASIBLE or result.status is Status.INFEASIBLE_OR_UNBOUNDED:
                return found
            if result.x is None:
                return None
            stretched = np.flatnonzero(result.x[width:] > TOUCHED)
            if not len(stretched):
                return None
            found += stretched.tolist()
            upper = mip.col_upper.copy()
            upper[width + stretched] = 0.0
            mip = replace(mip, col_upper=frozen(upper))

    def irreducible(self, members: Sequence[int]) -> list[int] | None:
        """The set without every member that can be left out; ``minimal`` says whether that is proven of all others.

        None if the set is not proven to be a contradiction.
        """
        if self.feasible(self.only(members), 0.3) is not False:
            return None
        kept = list(members)
        for position, g in enumerate(reversed(list(members))):
            rest = [other for other in kept if other != g]
            answer = self.feasible(self.only(rest), 0.7 / (len(members) - position))
            if answer is False:
                kept = rest
            elif answer is None:
                self.minimal = False
        return sorted(kept)

    def only(self, members: Sequence[int]) -> BoolArray:
        active = np.zeros(self._elastic.count, np.bool_)
        active[list(members)] = True
        return active

    def _answer(self, mip: Mip, share: float = 1.0) -> bool | None:
        self.solves += 1
        params = replace(self._params, time_limit_s=self._clock.budget_s(share))
        status = self._backend.solve(mip, params).status
        if status.has_solution:
            return True
        return False if status in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED) else None


def _continuous(mip: Mip) -> Mip:
    return replace(mip, integral=frozen(np.zeros(len(mip.cost), np.bool_)))
