"""Overrides that a ``plan.toml`` states: weights and order of terms, and limits, that the plan was solved with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mast_opt.core.errors import Fault, PlanError, UsageError
from mast_opt.planner.io.readers.base import Untyped
from mast_opt.problems.kind.overrides import Overrides, stated_limit
from mast_opt.problems.kind.problem import Problem

KEY = "overrides"
_KEYS = ("order", "weights", "limits", "peak_levels")


def overrides_in(fields: Mapping[str, Any], problem: Problem[Any]) -> tuple[Overrides, Problem[Any]]:
    """Overrides that the fields of a plan state, and the instance with them.

    Raises:
        PlanError: something that this instance cannot have.
    """
    stated = fields.get(KEY, {})
    if not isinstance(stated, Mapping) or any(name not in _KEYS for name in stated):
        raise _fault(stated, f"a table with some of the keys {', '.join(_KEYS)}")
    order = stated.get("order")
    weights, limits, levels = (stated.get(name, {}) for name in _KEYS[1:])
    if isinstance(order, Untyped):
        order = [name.strip() for name in order.split(",")]
    if order is not None and not (isinstance(order, list) and all(isinstance(name, str) for name in order)):
        raise _fault(order, "a list of terms", ".order")
    for name, table in zip(_KEYS[1:], (weights, limits, levels), strict=True):
        if not isinstance(table, Mapping):
            raise _fault(table, "a table of numbers", f".{name}")
    try:
        numbers = {name: float(weight) for name, weight in weights.items()}
        values = {name: stated_limit(name, most) for name, most in limits.items()}
        by_tier = {int(tier): float(level) for tier, level in levels.items()}
        overrides = Overrides(numbers, None if order is None else tuple(order), values, by_tier)
        return overrides, overrides.applied_to(problem)
    except (TypeError, ValueError, OverflowError, UsageError) as error:
        raise _fault(stated, str(error)) from None


def _fault(value: object, expected: str, where: str = "") -> PlanError:
    return PlanError([Fault(f"plan.toml: {KEY}{where}", expected, value=str(value))])
