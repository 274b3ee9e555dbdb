"""Use of everything in a data-placement plan that a limit may be put on, exactly."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from mast_opt.core.units import MB_PER_TB, MICRO, MILLI
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.data_placement.verification import measures


def limit_use(problem: DataPlacement, activity: measures.Activity) -> dict[str, tuple[Fraction, Fraction]]:
    """Name of a limit of the instance → how much the plan has of it in base units, and how many of them are one unit of
    the limit."""
    return {name: (Fraction(_USE[name](problem, activity)), Fraction(_scale(problem, name))) for name in problem.limits}


def _scale(p: DataPlacement, name: str) -> int | Fraction:
    """Scale of a limit's name: base units of the data-placement plan in one of its units."""
    scales: dict[str, Callable[[], int | Fraction]] = {
        **dict.fromkeys(("copied_tb", "stored_tb", "remote_tb_per_day"), lambda: MB_PER_TB),
        **dict.fromkeys(("unserved_gpus", "overload_gpus"), lambda: MILLI),
        **dict.fromkeys(("egress", "running_cost", "migration_cost"), lambda: MICRO),
        **dict.fromkeys(("copy", "storage"), lambda: measures.total(p.datasets.size_mb)),
        "remote": lambda: measures.total(p.reads.mb_per_day),
        "moved_work": lambda: measures.total(p.demand_mgpu),
        "unserved": lambda: _weighted(p, measures.totals(p.workloads.tier, p.demand_mgpu, 1, len(p.tiers))),
    }
    return scales[name]() if name in scales else 1


def _weighted(p: DataPlacement, by_tier: list[int]) -> Fraction:
    """Amounts by tier times the tiers' weights, exactly, for a limit of data placement."""
    return sum((Fraction(weight) * n for weight, n in zip(p.tier_weight.tolist(), by_tier)), Fraction(0))


def _remote_mb(p: DataPlacement, a: measures.Activity) -> Fraction:
    """MB a day that a data-placement plan reads remotely, exactly."""
    return Fraction(measures.total(p.reads.mb_per_day[a.far_read], a.far_share), SHARE)


def _egress(p: DataPlacement, a: measures.Activity) -> Fraction:
    """USD a day; copies are spread over the days that they may take."""
    read = measures.over_links(p, a.far_link, p.reads.mb_per_day[a.far_read], a.far_share)
    return read + measures.over_links(p, a.copy_link, p.datasets.size_mb[a.copy_dataset], a.copy_share) / p.days


def _moved_workloads(p: DataPlacement, a: measures.Activity) -> Fraction:
    """Workloads that a data-placement plan moves, shares of them added up exactly."""
    return Fraction(int(measures.leaving_shares(p, a).sum()), SHARE)


def _new_replicas(p: DataPlacement, a: measures.Activity) -> Fraction:
    """Number of new replicas of a data-placement plan."""
    return Fraction(int((a.place & ~p.datasets.stored).sum()))


def _unserved(p: DataPlacement, a: measures.Activity) -> Fraction:
    """Weighted GPU demand that a data-placement plan refuses, exactly."""
    return (
        _weighted(p, measures.totals(p.workloads.tier, p.demand_mgpu, measures.refused_shares(p, a), len(p.tiers)))
        / SHARE
    )


def _overload_gpus(p: DataPlacement, a: measures.Activity) -> Fraction:
    """GPUs by which demand exceeds supply under a data-placement plan, exactly."""
    over = measures.gpu_demand(p, a)[:, :, -1] - SHARE * p.regions.supply_mgpu.astype(object)
    return Fraction(int(np.maximum(over, 0).sum()), SHARE) if over.size else Fraction(0)


_USE: dict[str, Callable[[DataPlacement, measures.Activity], int | Fraction]] = {
    **dict.fromkeys(("copied_tb", "copy"), measures.copied_mb),
    **dict.fromkeys(("stored_tb", "storage"), measures.stored_mb),
    **dict.fromkeys(("remote_tb_per_day", "remote"), _remote_mb),
    "egress": lambda p, a: MICRO * _egress(p, a),
    "running_cost": lambda p, a: MICRO * measures.running_cost(p, a),
    "migration_cost": lambda p, a: MICRO * measures.migration_cost(p, a),
    "moved_work": lambda p, a: Fraction(measures.total(p.demand_mgpu, measures.leaving_shares(p, a)), SHARE),
    "unserved": _unserved,
    "unserved_gpus": lambda p, a: Fraction(measures.total(p.fewest_mgpu, measures.refused_shares(p, a)), SHARE),
    "overload_gpus": _overload_gpus,
    "new_replicas": _new_replicas,
    "moved_workloads": _moved_workloads,
    "moves": lambda p, a: _new_replicas(p, a) + _moved_workloads(p, a),
}
