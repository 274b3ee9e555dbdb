"""The cheapest ways to make an infeasible instance feasible, each tried out by solving the mended instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mast_opt.analysis.elastic import Elastic
from mast_opt.backends.base import Backend
from mast_opt.errors import UsageError
from mast_opt.mip import FloatArray, IntArray
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


def repairs(
    problem: Any,
    elastic: Elastic,
    price: FloatArray,
    count: int,
    backend: Backend,
    params: SolveParams,
    clock: Clock,
) -> tuple[Repair, ...]:
    """The cheapest repair, then the cheapest that uses no limit of those before, and so on."""
    found: list[Repair] = []
    price = price.copy()
    for left in range(count, 0, -1):
        mip = elastic.stretched(price)
        width = len(mip.cost) - elastic.count
        result = backend.solve(mip, replace(params, time_limit_s=clock.budget_s(0.7 / left)))
        if result.x is None:
            break
        slack = result.x[width:]
        used = np.flatnonzero(slack > TOUCHED)
        if not len(used):
            break
        start = elastic.relief.decode(result.x[:width])
        repair = _tried(problem, elastic, used, slack, price, start, result.status, backend.name, clock)
        if repair is None:
            break
        found.append(repair)
        price[used] = np.inf
    return tuple(found)


def _tried(
    problem: Any,
    elastic: Elastic,
    used: IntArray,
    slack: FloatArray,
    price: FloatArray,
    start: Any,
    status: Status,
    solver: str,
    clock: Clock,
) -> Repair | None:
    """The repair if the mended instance has a plan; amounts that fall short by rounding are raised a little."""
    relief = elastic.relief
    for attempt in range(TRIES):
        mended, words, total, reshaped = problem, [], 0.0, False
        chosen: dict[int, dict[int, float]] = {}
        for g in used.tolist():
            s = int(elastic.sort[g])
            amount = _amount(relief.limits[s], float(slack[g]), attempt)
            chosen.setdefault(s, {})[g - int(elastic.first[s])] = amount
            total += amount * float(price[g])
        for s, amounts in sorted(chosen.items(), key=lambda pair: relief.limits[pair[0]].reshapes):
            one = relief.limits[s]
            assert one.relax is not None
            mended = one.relax(mended, amounts)
            words += [one.mend(member, amount) for member, amount in amounts.items()]
            reshaped |= one.reshapes
        solution = solve(
            mended,
            solver,
            time_limit_s=clock.budget_s(0.5),
            gap=ANY_PLAN,
            threads=1,
            start=None if reshaped else start,
        )
        if solution.plan is not None:
            return Repair(tuple(words), total, status is Status.OPTIMAL, mended, solution.plan)
    return None


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
