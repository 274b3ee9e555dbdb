"""Goals that a planner names instead of weights, and what a dollar weighs where an instance states prices alone."""

from collections.abc import Mapping

from mast_opt.core.errors import UsageError
from mast_opt.problems.data_placement.prices import most_usd
from mast_opt.problems.data_placement.problem import TERMS, DataPlacement
from mast_opt.problems.kind.overrides import Goal, Overrides

FIRST = dict.fromkeys(TERMS, 0.0) | {"unserved": 4000.0, "remote": 2000.0, "overload": 100.0}
"""Weights of what every goal puts first: all work served, next to its data, within the supply."""
ROOM = 0.9
"""Ratio of demand to supply above which a balanced plan counts ``peak``, in every tier."""
MONEY = 0.1
"""Weight of the highest bill for a month, where prices are stated and no weight of theirs."""
MONTHS = 12
"""Months over which copies are paid off."""


def money_weights(problem: DataPlacement, worth: float) -> Mapping[str, float]:
    """Weights of both costs, with which the highest bill for a month weighs ``worth``, to one digit."""
    monthly, once = most_usd(problem)
    digit = float(f"{worth / max(monthly, once / MONTHS, 1.0):.0e}")
    return {"running_cost": digit, "migration_cost": float(f"{digit / MONTHS:.0e}")}


def least_change(problem: DataPlacement) -> Overrides:
    """The fewest copies and moves of workloads with which nothing is over its supply that need not be; of those the
    ones with the least work and data."""
    return Overrides({**FIRST, "moved_items": 1.0, "moved_work": 0.1, "copy": 0.05, "retyped_work": 0.01}, ())


def balanced(problem: DataPlacement) -> Overrides:
    """The instance's objective, with a tenth of every GPU type kept free in every region where that is worth it."""
    return Overrides(peak_levels={t: min(level, ROOM) for t, level in problem.objective.peak_levels.items()})


def cheapest(problem: DataPlacement) -> Overrides:
    """Overrides of the goal ``cheapest``: a bill near the lowest, and changes only where they pay."""
    if not problem.has_prices:
        raise UsageError(
            f"{problem.name} states no prices, so no plan is cheaper than another; state usd_per_gpu_hour of "
            "gpu_supply, usd_per_tb_month of regions, …"
        )
    effort, money = {"moved_work": 0.01, "copy": 0.005, "retyped_work": 0.01}, money_weights(problem, 1.0)
    usd = effort["moved_work"] / money["running_cost"]
    note = f"changes count too (moving all work: {usd:,.0f} USD a month), so a slightly lower bill may exist"
    return Overrides({**FIRST, **effort, **money}, (), note=note)


GOALS: Mapping[str, Goal] = {
    "least-change": least_change,
    "balanced": balanced,
    "cheapest": cheapest,
    "safest": least_change,  # with replicas of its own, see analysis/safest.py
}
