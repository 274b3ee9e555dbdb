"""Minimum-cost repairs of an infeasible instance, each tried out by solving the repaired instance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.planner.solving import solve
from mast_opt.planner.solving.clock import Clock
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.kind.analysis_hooks import ElasticLimits, ElasticProgram

TOUCHED = 1e-7
RAISES = (0.0, 1e-6, 2e-6, 0.01, 0.1, 1.0, 3.0)
"""Shares of itself by which an amount is raised, one try after another: a little for what a solver rounds, then more
for shares of work, which are whole thousandths in a plan and any number to the solver."""
ROUNDING = 1e-5
"""A raise up to here is no more than rounding."""
SLIVER = 1e-6
"""Part of a step, and of an amount, that is a solver's rounding and orders no further step."""
SHOWN = 1e-3
"""Precision of a least amount that is proven and not known to be enough."""
ANY_PLAN = 1e9
"""A relative gap that any plan reaches."""


@dataclass(frozen=True)
class Repair:
    """Changes that together leave a plan."""

    changes: tuple[str, ...]
    """Advice in words, with amounts rounded up to what can be ordered: "raise storage of R2 by 5 TB"."""
    exact: tuple[str, ...]
    """The repairs with the amounts that the program needs, not rounded up: "raise storage of R2 by 4.25 TB"."""
    price: float
    """Σ exact amount · price; see ``explain`` for the prices."""
    cheapest: bool
    """True if it is proven that no other repair without the limits of earlier repairs is cheaper."""
    problem: Any
    """The repaired instance, with the rounded amounts."""
    plan: Any
    """A verified plan of it, not a good one: what shows that the repair works."""


def price_list(relief: ElasticProgram, factors: Mapping[str, float]) -> FloatArray:
    """[G] the price of moving each limit by a unit in a repair.

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
class RepairSearch:
    """Looks for repairs of one instance with one MIP solver under one clock."""

    problem: Any
    elastic: Elastic
    backend: Backend
    params: SolveParams
    clock: Clock

    def repairs(self, price: FloatArray, count: int) -> tuple[Repair, ...]:
        """The cheapest repair, then the cheapest that uses no limit of those before, and so on; by what they cost once
        their amounts are those of files."""
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
            overtakes = any(one.price > repair.price for one in found)
            found.append(replace(repair, cheapest=repair.cheapest and not overtakes))
            price[used] = np.inf
        return tuple(sorted(found, key=lambda repair: repair.price))

    def alone(self, g: int, price: FloatArray, share: float) -> tuple[Repair | None, str]:
        """The repair that moves one limit alone by the least, and the least that is proven, in words; empty where that
        is what the repair does, or nothing is proven.

        Args:
            g: the limit.
            price: [G] of moving each limit by a unit.
            share: part of the time that is left for the program.
        """
        only = np.full(len(price), np.inf)
        only[g] = price[g]
        mip = self.elastic.stretched(only)
        result = self.backend.solve(mip, replace(self.params, time_limit_s=self.clock.budget_s(share)))
        width, optimal = len(mip.cost) - self.elastic.count, result.status is Status.OPTIMAL
        slack = 0.0 if result.x is None else float(result.x[width + g])
        found = None
        if result.x is not None and slack > TOUCHED:
            found = self._tried({g: slack}, only, self.elastic.relief.decode(result.x[:width]), optimal)
        least = math.floor((result.bound or 0.0) / float(price[g]) / SHOWN) * SHOWN
        if (found is not None and found.cheapest) or least <= 0 or result.status.is_infeasible:
            return found, ""
        return found, f"{self._repaired({g: round(least, 3)})[1][0]} at least (proven)"

    def _tried(self, slack: Mapping[int, float], price: FloatArray, start: object, cheapest: bool) -> Repair | None:
        """The repair if the instance has a plan once it is repaired by whole steps; amounts that fall short are
        raised."""
        before: dict[int, float] | None = None
        for more in RAISES:
            exact = {g: self._amount(g, size, more) for g, size in slack.items()}
            amounts = {g: self._ordered(g, amount) for g, amount in exact.items()}
            if amounts == before:
                continue
            before = amounts
            repaired, words, fits = self._repaired(amounts)
            total = sum(amount * float(price[g]) for g, amount in exact.items())
            solution = solve(
                repaired,
                self.backend.name,
                time_limit_s=self.clock.budget_s(0.5),
                gap=ANY_PLAN,
                threads=self.params.threads,
                start=start if fits else None,
                cancel=self.params.cancel,
            )
            if solution.plan is not None:
                proven = cheapest and more <= ROUNDING
                return Repair(words, self._repaired(exact)[1], total, proven, repaired, solution.plan)
            if solution.status is not Status.INFEASIBLE:
                break
        return None

    def _repaired(self, amounts: Mapping[int, float]) -> tuple[Any, tuple[str, ...], bool]:
        """The instance with the limits moved, the changes in words, and whether plans still fit it."""
        relief = self.elastic.relief
        chosen: dict[int, dict[int, float]] = {}
        for g, amount in amounts.items():
            s = int(self.elastic.sort[g])
            chosen.setdefault(s, {})[g - int(self.elastic.first[s])] = amount
        repaired, words = self.problem, []
        for s in sorted(chosen, key=lambda s: relief.limits[s].reshapes):
            one = relief.limits[s]
            assert one.relax is not None
            repaired = one.relax(repaired, chosen[s])
            words += [one.advice(member, amount) for member, amount in chosen[s].items()]
        return repaired, tuple(words), not any(relief.limits[s].reshapes for s in chosen)

    def _amount(self, g: int, slack: float, more: float) -> float:
        """Amount by which a limit is moved in a repair."""
        return _amount(self.elastic.relief.limits[int(self.elastic.sort[g])], slack, more)

    def _ordered(self, g: int, amount: float) -> float:
        """The amount of a repair, rounded up to whole steps where the limit has any."""
        s = int(self.elastic.sort[g])
        step = self.elastic.relief.limits[s].step
        if step is None:
            return amount
        size = float(step[g - int(self.elastic.first[s])])
        steps = amount / size
        return max(math.ceil(steps - SLIVER * max(1.0, steps)), 1) * size


def _amount(one: ElasticLimits, slack: float, more: float) -> float:
    """The amount by which a repair moves the limit, without a solver's rounding; raised by a share ``more``
    of itself.
    """
    if one.per_unit is None:
        return 1.0
    if one.whole:
        return float(max(round(slack), 1))
    tidy = float(np.format_float_positional(slack, precision=9, fractional=False))
    near = round(tidy, 6)
    amount = near if abs(near - slack) <= 1e-6 * max(1.0, abs(slack)) else tidy
    return amount + more * (max(1.0, amount) if more <= ROUNDING else amount)
