"""The cheapest ways to make an infeasible instance feasible, each tried out by solving the mended instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mast_opt.analysis.elastic import Elastic
from mast_opt.backends.base import Backend
from mast_opt.errors import UsageError
from mast_opt.mip import FloatArray
from mast_opt.questions import Limits, Relief
from mast_opt.result import SolveParams, Status
from mast_opt.solving import solve
from mast_opt.solving.clock import Clock

TOUCHED = 1e-7
TRIES = 3
ANY_PLAN = 1e9
"""A relative gap that any plan reaches."""


@dataclass(frozen=True)
class Repair:
    """Changes that together leave a plan."""

    changes: tuple[str, ...]
    """Advice in words: "raise storage of R2 by 5 TB"."""
    price: float
    """Σ amount · price; see ``explain`` for the prices."""
    cheapest: bool
    """Is it proven that no other repair without the limits of earlier repairs is cheaper?"""
    problem: Any
    """The mended instance."""
    plan: Any
    """A verified plan of it, not a good one: what shows that the repair works."""


def price_list(relief: Relief, factors: Mapping[str, float]) -> FloatArray:
    """[G] the price of a unit of every limit.

    Raises:
        UsageError: a factor is not above 0, or there is no such limit.
    """
    known = {one.name for one in relief.limits}
    for name, factor in factors.items():
        if not factor > 0:
            raise UsageError(f"the price of {name} is {factor}; expected a number above 0, or inf for never")
        if name not in known:
            names = ", ".join(sorted(known))
            raise UsageError(f"this instance has no limit called {name!r} to put a price on; expected one of: {names}")
    prices = [np.where(one.relax is None, np.inf, one.price) * factors.get(one.name, 1.0) for one in relief.limits]
    return np.concatenate([np.where(np.isnan(price), np.inf, price) for price in prices])


@dataclass(frozen=True, eq=False)
class Workshop:
    """Looks for repairs of one instance with one MIP solver under one clock."""

    problem: Any
    elastic: Elastic
    backend: Backend
    params: SolveParams
    clock: Clock

    def repairs(self, price: FloatArray, count: int) -> tuple[Repair, ...]:
        """The cheapest repair, then the cheapest that uses no limit of those before, and so on."""
        found: list[Repair] = []
        price = price.copy()
        for left in range(count, 0, -1):
            mip = self.elastic.stretched(price)
            width = len(mip.cost) - self.elastic.count
            params = replace(self.params, time_limit_s=self.clock.budget_s(0.7 / left))
            result = self.backend.solve(mip, params)
            used = [] if result.x is None else np.flatnonzero(result.x[width:] > TOUCHED).tolist()
            if result.x is None or not used:
                break
            start = self.elastic.relief.decode(result.x[:width])
            slack = {g: float(result.x[width + g]) for g in used}
            repair = self._tried(slack, price, start, result.status is Status.OPTIMAL)
            if repair is None:
                break
            found.append(repair)
            price[used] = np.inf
        return tuple(found)

    def _tried(self, slack: Mapping[int, float], price: FloatArray, start: Any, cheapest: bool) -> Repair | None:
        """The repair if the mended instance has a plan; amounts that fall short by rounding are raised a little."""
        for attempt in range(TRIES):
            mended, words, fits = self._mended(slack, attempt)
            total = sum(self._amount(g, size, attempt) * float(price[g]) for g, size in slack.items())
            solution = solve(
                mended,
                self.backend.name,
                time_limit_s=self.clock.budget_s(0.5),
                gap=ANY_PLAN,
                threads=self.params.threads,
                start=start if fits else None,
                cancel=self.params.cancel,
            )
            if solution.plan is not None:
                return Repair(words, total, cheapest, mended, solution.plan)
        return None

    def _mended(self, slack: Mapping[int, float], attempt: int) -> tuple[Any, tuple[str, ...], bool]:
        """The instance with the limits moved, the changes in words, and whether plans still fit it."""
        relief = self.elastic.relief
        chosen: dict[int, dict[int, float]] = {}
        for g, size in slack.items():
            s = int(self.elastic.sort[g])
            chosen.setdefault(s, {})[g - int(self.elastic.first[s])] = self._amount(g, size, attempt)
        mended, words = self.problem, []
        for s in sorted(chosen, key=lambda s: relief.limits[s].reshapes):
            one = relief.limits[s]
            assert one.relax is not None
            mended = one.relax(mended, chosen[s])
            words += [one.mend(member, amount) for member, amount in chosen[s].items()]
        return mended, tuple(words), not any(relief.limits[s].reshapes for s in chosen)

    def _amount(self, g: int, slack: float, attempt: int) -> float:
        return _amount(self.elastic.relief.limits[int(self.elastic.sort[g])], slack, attempt)


def _amount(one: Limits, slack: float, attempt: int) -> float:
    """What the limit is moved by, without a solver's rounding; more at each further attempt."""
    if one.per_unit is None:
        return 1.0
    if one.whole:
        return float(max(round(slack), 1))
    tidy = float(np.format_float_positional(slack, precision=9, fractional=False))
    near = round(tidy, 6)
    amount = near if abs(near - slack) <= 1e-6 * max(1.0, abs(slack)) else tidy
    return amount + attempt * 1e-6 * max(1.0, amount)
