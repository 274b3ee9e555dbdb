"""Model rotation for IIS enumeration: a plan that breaks a single limit is changed until it breaks another instead.

If only the columns of the two limits may change, that is a tiny program. It is how one solve shows of many limits that
each of them is needed (model rotation, after Belov & Marques-Silva, FMCAD 2011, for programs instead of clauses).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.mip import Mip, unnamed

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
        s = int(self._elastic.sort[g])
        rows, columns = (part[g - int(self._elastic.first[s])] for part in self._places[s])
        mip = self._elastic.relief.mip
        return np.concatenate([columns, *(mip.index[mip.row_start[r] : mip.row_start[r + 1]] for r in rows.tolist())])


def _by_member(member: IntArray, where: IntArray, count: int) -> list[IntArray]:
    order = np.argsort(member, kind="stable")
    return np.split(np.asarray(where)[order], np.cumsum(np.bincount(member, minlength=count))[:-1])


def _part(mip: Mip, x: FloatArray, free: IntArray) -> Mip | None:
    """The program in the free columns, with all others as in x; None where these break a bound by themselves."""
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
