"""Elastic program of infeasibility analysis: any limit of an instance held, given up, or moved at a price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.problems.kind.analysis_hooks import ElasticLimits, ElasticProgram
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.transforms import Extension, extended


@dataclass(frozen=True, eq=False)
class Elastic:
    """Every limit of a Relief as one of G numbered members, sort after sort."""

    relief: ElasticProgram

    @cached_property
    def sort(self) -> NDArray[np.int64]:
        """[G] position of the elastic limit's sort in ``relief.limits``."""
        return np.repeat(np.arange(len(self.relief.limits)), [one.count for one in self.relief.limits])

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """[sorts] number of the first elastic limit of each sort."""
        counts = np.array([one.count for one in self.relief.limits], np.int64)
        return np.cumsum(counts) - counts

    @cached_property
    def count(self) -> int:
        """Number of elastic limits of all sorts together."""
        return sum(one.count for one in self.relief.limits)

    def held(self, active: BoolArray) -> Mip:
        """The program with exactly the active limits, and nothing to minimise."""
        mip = self.relief.mip
        row_lower, row_upper = mip.row_lower.copy(), mip.row_upper.copy()
        col_lower, col_upper = mip.col_lower.copy(), mip.col_upper.copy()
        for start, one in zip(self.first.tolist(), self.relief.limits, strict=True):
            on = active[start : start + one.count]
            rows, columns = one.row[~on[one.row_member]], one.column[on[one.column_member]]
            if one.side == "upper":
                row_upper[rows], col_upper[columns] = np.inf, 0.0
            else:
                row_lower[rows], col_lower[columns] = -np.inf, 1.0
        return replace(
            mip,
            cost=frozen(np.zeros(len(mip.cost))),
            offset=0.0,
            row_lower=frozen(row_lower),
            row_upper=frozen(row_upper),
            col_lower=frozen(col_lower),
            col_upper=frozen(col_upper),
        )

    def stretched(self, price: FloatArray | None = None, *, whole: bool = True) -> Mip:
        """The program in which limits can be moved or given up, at a price for each of the G slack columns.

        Args:
            price: [G] of a unit; where it is infinite the limit stays as it is, and nothing moves further than a
                repair may move it. None: every limit gives way without end, at 1 a unit.
            whole: whether what is given up as a whole, or in whole units, is so, and the program's integers are.
        """
        endless = price is None
        price = np.ones(self.count) if price is None else price
        mip, width = self.relief.mip, len(self.relief.mip.cost)
        entries, closing, upper, integral = [], [], [], []
        for start, one in zip(self.first.tolist(), self.relief.limits, strict=True):
            slack = width + start
            sign = -1.0 if one.side == "upper" else 1.0
            size = np.abs(mip.row_lower[one.row]) if one.per_unit is None else np.full(len(one.row), one.per_unit)
            if one.side == "upper" and one.per_unit is None:
                size = _most_activity(mip, one.row) - mip.row_upper[one.row]
            entries.append((one.row, slack + one.row_member, sign * size))
            closing.append((one.column, slack + one.column_member, sign, 0.0 if one.side == "upper" else 1.0))
            upper.append(_bounds(one, endless))
            integral.append(np.full(one.count, one.per_unit is None or one.whole))
        rows = sum(len(columns) for columns, *_ in closing)
        at = np.arange(len(mip.row_lower), len(mip.row_lower) + rows)
        columns, slacks = (np.concatenate([np.asarray(part[k]) for part in closing]) for k in (0, 1))
        signs, limit = (np.repeat([part[k] for part in closing], [len(part[0]) for part in closing]) for k in (2, 3))
        more = Extension(
            "give",
            columns=self.count,
            col_upper=np.where(np.isinf(price), 0.0, np.concatenate(upper)),
            integral=np.concatenate(integral) & whole,
            rows=rows,
            row_lower=np.where(signs > 0, limit, -np.inf),
            row_upper=np.where(signs < 0, limit, np.inf),
            entries=[*entries, (at, columns, 1.0), (at, slacks, signs)],
        )
        program = extended(mip, more)
        cost = np.zeros(len(program.cost))
        cost[width:] = np.where(np.isinf(price), 0.0, price)
        integral_columns = program.integral if whole else np.zeros(len(cost), np.bool_)
        return replace(program, cost=frozen(cost), offset=0.0, integral=frozen(integral_columns))

    def by_name(self, members: Sequence[int]) -> Mapping[str, list[int]]:
        """The elastic limits of each sort, by the sort's name."""
        found: dict[str, list[int]] = {}
        for g in sorted(members):
            s = int(self.sort[g])
            found.setdefault(self.relief.limits[s].name, []).append(g - int(self.first[s]))
        return found


def _bounds(one: ElasticLimits, endless: bool) -> FloatArray:
    """Upper bounds of the slack columns of an elastic limit."""
    if one.per_unit is None:
        return np.ones(one.count)
    return np.full(one.count, np.inf) if one.most is None or endless else one.most


def _most_activity(mip: Mip, rows: IntArray) -> FloatArray:
    """The largest value that each of the elastic program's rows can take within the columns' bounds."""
    if not len(rows):
        return np.zeros(0)
    bound = np.where(mip.value > 0, mip.col_upper[mip.index], mip.col_lower[mip.index])
    total = np.add.reduceat(np.append(mip.value * bound, 0.0), mip.row_start[:-1])
    return np.where(np.diff(mip.row_start) > 0, total, 0.0)[rows]
