"""Solves of a method: programs handed to a MIP backend under one clock, and what comes back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status
from mast_opt.mip import Mip
from mast_opt.mip.duality import row_prices
from mast_opt.search.interface import SearchContext

LINEAR_GAP = 1e-9
"""Gap asked for in linear programs, for backends that stop by gap there too."""


class Stopped(Exception):
    """A program had no solution, or a limit came first."""

    def __init__(self, result: SolveResult) -> None:
        super().__init__(result.message)
        self.result = result


@dataclass(frozen=True, eq=False)
class Solved:
    """The solution of one program."""

    mip: Mip
    x: FloatArray
    bound: float | None
    """Of a program with whole columns; what is proven, in its own (minimised) objective."""
    prices: FloatArray | None
    """[rows] of a linear program, where they were asked for."""
    limit: Limit | None
    message: str


class Solves:
    """Programs of one method, one after another."""

    def __init__(self, tools: SearchContext) -> None:
        assert tools.mip_solver is not None
        self._tools, self._mip_solver = tools, tools.mip_solver
        self.count = 0

    def __call__(self, mip: Mip, *, prices: bool = False, start: FloatArray | None = None) -> Solved:
        """The solution of a program.

        Raises:
            Stopped: there is none, or none was found within the limits.
        """
        result = self._result(mip, self._params(mip, start))
        if result.x is None:
            raise Stopped(result)
        found = row_prices(self._result, mip, result, self._params(mip, None)) if prices else None
        return Solved(mip, result.x, result.bound, found, result.limit, result.message)

    def _params(self, mip: Mip, start: FloatArray | None) -> SolveParams:
        stop, left = self._tools.watch.stop, self._tools.watch.remaining_s
        return SolveParams(
            time_limit_s=None if math.isinf(left) else max(left, 0.01),
            gap=stop.gap if mip.integral.any() else LINEAR_GAP,
            start=start if mip.integral.any() else None,
            cancel=stop.cancel,
        )

    def _result(self, mip: Mip, params: SolveParams) -> SolveResult:
        self.count += 1
        result = self._mip_solver(mip, params)
        if not mip.integral.any() and result.status is Status.FEASIBLE:
            limit = result.limit or Limit.OTHER
            return SolveResult(Status.NO_SOLUTION, None, None, result.bound, limit, result.message)
        return result
