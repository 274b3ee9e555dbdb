"""Sub-MIPs of ras (server assignment): a few reservations re-optimised exactly, by their rows and columns."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.mip import Mip, unnamed
from mast_opt.problems.search.interface import MipSolver
from mast_opt.problems.server_assignment.problem import Ints, ServerAssignment


class ReservationSubMip:
    """Sub-MIPs of one program: the columns of a few reservations are free, all others fixed."""

    def __init__(self, problem: ServerAssignment, mip: Mip) -> None:
        self._mip = mip
        rows = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape)
        self._by_column = rows.tocsc()
        owner = np.concatenate(
            [
                (
                    np.arange(block.size)
                    if block.cells is None
                    else block.cells[block.axes.index(problem.reservations.labels)]
                )
                for block in mip.columns
                if block.size
            ]
        )
        self._columns = np.argsort(owner, kind="stable")
        self._start = np.searchsorted(owner[self._columns], np.arange(len(problem.reservations) + 1))

    def solve(self, x: FloatArray, who: Ints, solver: MipSolver, params: SolveParams) -> FloatArray | None:
        """A better x in which only columns of these reservations differ; None where none was found."""
        mip = self._mip
        mine = np.sort(np.concatenate([self._columns[self._start[q] : self._start[q + 1]] for q in who.tolist()]))
        part = self._by_column[:, mine].tocsr()
        rows = np.flatnonzero(np.diff(part.indptr))
        part = part[rows]
        here = part @ x[mine]
        elsewhere = self._activity(x, rows) - here
        start = x[mine]
        piece = unnamed(
            "slice",
            part,
            mip.cost[mine],
            col_lower=mip.col_lower[mine],
            col_upper=mip.col_upper[mine],
            integral=mip.integral[mine],
            row_lower=mip.row_lower[rows] - elsewhere,
            row_upper=mip.row_upper[rows] - elsewhere,
        )
        result = solver(piece, replace(params, start=start))
        if result.x is None or result.objective is None or result.objective >= piece.objective(start) - 1e-12:
            return None
        better = x.copy()
        better[mine] = result.x
        return better

    def _activity(self, x: FloatArray, rows: Ints) -> FloatArray:
        """Activity of some rows of ras' sub-MIP."""
        mip = self._mip
        number = np.diff(mip.row_start)[rows]
        first = np.repeat(mip.row_start[rows] - np.concatenate([[0], np.cumsum(number)[:-1]]), number)
        at = first + np.arange(int(number.sum()))
        return np.asarray(
            np.bincount(np.repeat(np.arange(len(rows)), number), mip.value[at] * x[mip.index[at]], len(rows)),
            np.float64,
        )
