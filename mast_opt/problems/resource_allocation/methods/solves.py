"""Solves of a method: programs handed to a MIP backend under one clock, and what comes back."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Basis, Limit, SolveParams, SolveResult, Status
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.basis import carried
from mast_opt.problems.mip.duality import row_prices
from mast_opt.problems.search.interface import SearchContext

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
    """Proven bound of a program with whole columns, in its own (minimised) objective."""
    prices: FloatArray | None
    """[rows] of a linear program, where they were asked for."""
    limit: Limit | None
    message: str


class Solves:
    """Programs of one method, one after another; linear ones begin where the last one ended.

    Args:
        first: program → the basis from which the first one begins; None for none.
    """

    def __init__(self, tools: SearchContext, first: Callable[[Mip], Basis | None] = lambda _: None) -> None:
        assert tools.mip_solver is not None
        self._tools, self._mip_solver, self._first = tools, tools.mip_solver, first
        self._last: tuple[Mip, Basis] | None = None
        self.count = 0

    def __call__(
        self, mip: Mip, *, prices: bool = False, start: FloatArray | None = None, gap: float | None = None
    ) -> Solved:
        """The solution of a program.

        Args:
            mip: the program.
            prices: are those of its rows needed?
            start: a value for every column, for a program with whole ones.
            gap: at which such a program may stop; that of the solve unless given.

        Raises:
            Stopped: there is none, or none was found within the limits.
        """
        linear = not mip.integral.any()
        begin = self._begin(mip) if linear else None
        result = self._result(mip, replace(self._params(mip, start, gap), basis=begin))
        if result.x is None:
            raise Stopped(result)
        if result.basis is not None:
            self._last = mip, result.basis
        found = row_prices(self._dual, mip, result, self._params(mip)) if prices else None
        return Solved(mip, result.x, result.bound, found, result.limit, result.message)

    def _begin(self, mip: Mip) -> Basis | None:
        """The basis from which a linear program begins: that of the last one, or of an earlier allocation."""
        if self._last is not None:
            return carried(self._last[1], self._last[0], mip)
        return self._first(mip)

    def _params(self, mip: Mip, start: FloatArray | None = None, gap: float | None = None) -> SolveParams:
        """Parameters of the next allocation program, within the time that is left."""
        stop, left = self._tools.watch.stop, self._tools.watch.remaining_s
        whole = bool(mip.integral.any())
        return SolveParams(
            time_limit_s=None if math.isinf(left) else max(left, 0.01),
            gap=LINEAR_GAP if not whole else stop.gap if gap is None else gap,
            start=start if whole else None,
            cancel=stop.cancel,
        )

    def _dual(self, mip: Mip, params: SolveParams) -> SolveResult:
        """The result of an allocation program's dual. Raises Stopped where a limit came first."""
        result = self._result(mip, params)
        if result.x is None and result.limit is not None:
            raise Stopped(result)
        return result

    def _result(self, mip: Mip, params: SolveParams) -> SolveResult:
        """Result of one allocation program, solved to its optimum or to the limit."""
        self.count += 1
        result = self._mip_solver(mip, params)
        if not mip.integral.any() and result.status is Status.FEASIBLE:
            limit = result.limit or Limit.OTHER
            return SolveResult(Status.NO_SOLUTION, None, None, result.bound, limit, result.message)
        return result
