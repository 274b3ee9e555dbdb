"""Irreducible infeasible sets (IIS): limits that contradict one another, none of which can be left out.

An elastic filter (Chinneck & Dravnieks, ORSA J. Computing 3, 1991) finds a small infeasible set: let every limit give
way at a price, hold those that do, and again until nothing helps. A deletion filter then tries to leave out each of its
members; what is left is irreducible, since for every member a plan was seen that keeps all others.

Where storage is short everywhere, a conflict has a hundred members. Then the elastic filter would find one at a time:
instead, the lightest limits of each sort are left out together, as many as can be by halving. And a plan that breaks
one member only is changed to break another instead, so that few solves show that all are needed.

If only the columns of those two limits may change, that is a tiny program. It is how one solve shows of many limits
that each of them is needed (model rotation, after Belov & Marques-Silva, FMCAD 2011, for programs instead of clauses).
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.planner.solving.clock import Clock
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.mip import Mip, frozen, unnamed

TOLERANCE = 1e-6
"""Tolerance by which solvers may miss a bound."""


class ModelRotation:
    """Limits of one program next to the columns that they are about."""

    def __init__(self, elastic: Elastic, backend: Backend, params: SolveParams) -> None:
        self._elastic = elastic
        self._backend = backend
        self._params = params

    def without(self, other: int, x: FloatArray, broken: int, kept: BoolArray) -> bool:
        """Whether x, which keeps all ``kept`` limits but ``broken``, can be changed to keep all but ``other``.

        False if not by the columns of these two limits alone.
        """
        free = np.union1d(self._columns(broken), self._columns(other))
        active = kept.copy()
        active[other] = False
        program = _part(self._elastic.held(active), x, free)
        return program is not None and self._backend.solve(program, self._params).status.has_solution

    def weight(self) -> FloatArray:
        """[G] how much the columns of each limit fill of what is limited by amount, each row by its largest entry."""
        mip = self._elastic.relief.mip
        rows = np.repeat(np.arange(len(mip.row_lower)), np.diff(mip.row_start))
        largest = np.zeros(len(mip.row_lower))
        np.maximum.at(largest, rows, np.abs(mip.value))
        share = np.abs(mip.value) / np.where(largest > 0, largest, 1.0)[rows]
        amounts = np.zeros(len(largest), np.bool_)
        for one in self._elastic.relief.limits:
            amounts[one.row] |= one.per_unit is not None and not one.whole
        column = np.bincount(mip.index, weights=share * amounts[rows], minlength=len(mip.cost))
        return np.array([column[self._columns(g)].sum() for g in range(self._elastic.count)])

    @cached_property
    def _places(self) -> list[tuple[list[IntArray], list[IntArray]]]:
        """Rows by member and columns by member, for each sort of limit."""
        return [
            (_by_member(one.row_member, one.row, one.count), _by_member(one.column_member, one.column, one.count))
            for one in self._elastic.relief.limits
        ]

    def _columns(self, g: int) -> IntArray:
        """Columns that belong to a limit."""
        s = int(self._elastic.sort[g])
        rows, columns = (part[g - int(self._elastic.first[s])] for part in self._places[s])
        mip = self._elastic.relief.mip
        return np.concatenate([columns, *(mip.index[mip.row_start[r] : mip.row_start[r + 1]] for r in rows.tolist())])


def _by_member(member: IntArray, where: IntArray, count: int) -> list[IntArray]:
    """Rows or columns of each of so many limits."""
    order = np.argsort(member, kind="stable")
    return np.split(np.asarray(where)[order], np.cumsum(np.bincount(member, minlength=count))[:-1])


def _part(mip: Mip, x: FloatArray, free: IntArray) -> Mip | None:
    """The program of an infeasibility analysis in the free columns, with all others as in x; None where these break a
    bound by themselves.
    """
    from scipy.sparse import csr_array

    x = np.where(mip.integral, np.round(x), x)
    fixed = np.ones(len(x), np.bool_)
    fixed[free] = False
    if ((x < mip.col_lower - TOLERANCE) | (x > mip.col_upper + TOLERANCE))[fixed].any():
        return None
    part = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape)[:, free]
    rest = mip.activity(np.where(fixed, x, 0.0))
    rows = np.flatnonzero(np.diff(part.indptr))
    part = part[rows]
    return unnamed(
        mip.name,
        part,
        0.0,
        col_lower=mip.col_lower[free],
        col_upper=mip.col_upper[free],
        integral=mip.integral[free],
        row_lower=mip.row_lower[rows] - rest[rows],
        row_upper=mip.row_upper[rows] - rest[rows],
    )


TOUCHED = 1e-7
"""Slack above which a limit counts as stretched."""

ONE = 0.1
"""Part of the time that is left for one member at least; many others need none."""
GLANCE_S, PATIENCE_S = 2.0, 20.0
"""Seconds for one member: at first, when others may decide it too, and then if there is no other limit."""
ROUNDS = 12
"""Solves of the elastic filter before a conflict counts as a large one."""


class DeletionFilter:
    """The search for one irreducible infeasible set of limits."""

    def __init__(self, elastic: Elastic, backend: Backend, params: SolveParams, clock: Clock) -> None:
        self._elastic = elastic
        self._backend = backend
        self._params = params
        self._clock = clock
        self._rotation = ModelRotation(elastic, backend, params)
        self.needed: set[int] = set()
        """Members of the irreducible set of which it is proven that they cannot be left out."""
        self.minimal = False
        """True if that is so for all of them."""
        self.solves = 0

    def feasible(self, active: BoolArray, share: float = 1.0) -> bool | None:
        """Whether there is a plan that keeps the active limits; None if the time did not suffice."""
        mip = self._elastic.held(active)
        if _said(self._solved(_continuous(mip), share)) is False:
            return False
        return _said(self._solved(mip, share))

    def infeasible_set(self) -> list[int] | None:
        """Some limits that contradict one another, those last that are to be left out first; None if out of time."""
        every = np.ones(self._elastic.count, np.bool_)
        whole = self._divisible(every) is not False
        mip = self._elastic.stretched(whole=whole)
        width = len(mip.cost) - self._elastic.count
        found: list[int] = []
        for _ in range(ROUNDS) if not whole else itertools.count():
            result = self._solved(mip, 0.5, gap=0.5)
            if _said(result) is False:
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
        return self._heaviest(every)

    def _heaviest(self, active: BoolArray) -> list[int]:
        """Limits that contradict one another even if all is divisible: the fewest heaviest ones of each sort."""
        active = active.copy()
        weight = self._rotation.weight()
        for s in reversed(range(len(self._elastic.relief.limits))):
            of_sort = np.flatnonzero(self._elastic.sort == s)
            order = of_sort[np.argsort(weight[of_sort], kind="stable")]
            low, high, tried = 0, len(order), len(order)
            while low < high:
                trial = active.copy()
                trial[order[:tried]] = False
                if self._divisible(trial) is False:
                    low = tried
                else:
                    high = tried - 1
                tried = (low + high + 1) // 2
            active[order[:low]] = False
        members = np.flatnonzero(active)
        return [int(g) for g in members[np.argsort(-weight[members], kind="stable")]]

    def irreducible(self, members: Sequence[int]) -> list[int] | None:
        """The contradicting limits without every member that can be left out; ``minimal`` says whether that is proven
        of all others.

        None if the set is not proven to be a contradiction.
        """
        if self.feasible(self.only(members), 0.3) is not False:
            return None
        kept = list(members)
        for longest_s in (GLANCE_S, PATIENCE_S if self._clock.budget_s(1.0) is None else None):
            for g in reversed(list(members)):
                if g not in kept or g in self.needed:
                    continue
                rest = [other for other in kept if other != g]
                share = max(ONE, 0.7 / (len(kept) - len(self.needed)))
                result = self._solved(self._elastic.held(self.only(rest)), share, longest_s=longest_s)
                if _said(result) is False:
                    kept = rest
                elif result.x is not None:
                    self.needed |= {g} | self._likewise(g, result.x, kept)
        self.minimal = len(self.needed) == len(kept)
        return sorted(kept)

    def _likewise(self, g: int, x: FloatArray, kept: Sequence[int]) -> set[int]:
        """Further members that are needed, shown by changes of a plan that breaks only g."""
        active = self.only(kept)
        others = [other for other in kept if other != g and other not in self.needed]
        return {other for other in others if self._rotation.without(other, x, g, active)}

    def only(self, members: Sequence[int]) -> BoolArray:
        """Mask [G] of an infeasibility analysis' active limits that leaves these members alone active."""
        active = np.zeros(self._elastic.count, np.bool_)
        active[list(members)] = True
        return active

    def _divisible(self, active: BoolArray) -> bool | None:
        """The answer of an infeasibility analysis if nothing had to be whole: False is one for whole decisions too."""
        return _said(self._solved(_continuous(self._elastic.held(active)), 0.3))

    def _solved(self, mip: Mip, share: float, gap: float | None = None, longest_s: float | None = None) -> SolveResult:
        """Result of a solve of an infeasibility analysis within that share of the time that is left."""
        self.solves += 1
        limits = [limit for limit in (self._clock.budget_s(share), longest_s) if limit is not None]
        params = replace(self._params, time_limit_s=min(limits, default=None))
        return self._backend.solve(mip, params if gap is None else replace(params, gap=gap))


def _said(result: SolveResult) -> bool | None:
    """Whether a program has a plan, by a solver's result; None if the solver does not say."""
    if result.status.has_solution:
        return True
    return False if result.status.is_infeasible else None


def _continuous(mip: Mip) -> Mip:
    """The program of an infeasibility analysis with divisible decisions in place of whole ones."""
    return replace(mip, integral=frozen(np.zeros(len(mip.cost), np.bool_)))
