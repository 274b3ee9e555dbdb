"""Objective terms and metrics of a data-placement plan, from the decisions alone.

The verifier's half of the statement: nothing here is shared with the formulation or with a heuristic.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import HOURS_A_MONTH, MB_PER_TB, MICRO, MILLI
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints

LIMB = 21
"""Bits that are added up at a time in ``totals``."""


@dataclass(frozen=True, eq=False)
class Activity:
    """Activity under a plan; positions are in range, shares are in thousandths."""

    place: Bools
    """[I, R]"""
    run_workload: Ints
    run_region: Ints
    run_kind: Ints
    run_share: Ints
    far_read: Ints
    """[·] position of a read whose workload reads the dataset from another region."""
    far_share: Ints
    far_link: Ints
    """[·] the link that it crosses; empty without links."""
    copy_dataset: Ints
    """[·] copies over links; empty without links."""
    copy_share: Ints
    copy_link: Ints


def totals(group: Ints, amount: Ints, share: Ints | int, groups: int) -> list[int]:
    """Verifier's totals of data placement: Σ amount · share of every group, as Python integers, a few bits at a time so
    that nothing overflows.
    """
    total = [0] * groups
    for shift in range(0, 63, LIMB):
        part = np.zeros(groups, np.int64)
        np.add.at(part, group, (amount >> shift & ((1 << LIMB) - 1)) * share)
        total = [known + (more << shift) for known, more in zip(total, part.tolist())]
    return total


def measure(problem: DataPlacement, activity: Activity) -> tuple[dict[str, float], dict[str, float]]:
    """(terms, metrics) as the problem's documentation defines them."""
    p, a = problem, activity
    sizes = total(p.datasets.size_mb)
    stored = stored_mb(p, a)
    copied = copied_mb(p, a)
    far = total(p.reads.mb_per_day[a.far_read], a.far_share)
    asked = gpu_demand(p, a)
    refused, leaving = refused_shares(p, a), leaving_shares(p, a)
    copies, moved = int((a.place & ~p.datasets.stored).sum()), int(leaving.sum()) / SHARE
    terms = {
        **_balance_terms(p, asked),
        "remote": _ratio(far, SHARE * total(p.reads.mb_per_day)),
        "egress": _egress(p, a),
        "copy": _ratio(copied, sizes),
        "storage": _ratio(stored, sizes),
        "moved_work": _ratio(total(p.demand_mgpu, leaving), SHARE * total(p.demand_mgpu)),
        "unserved": _unserved(p, refused),
        "running_cost": float(running_cost(p, a)),
        "migration_cost": float(migration_cost(p, a)),
        "retyped_work": _retyped(p, a),
        "moved_items": _ratio(copies + moved, len(p.datasets) + len(p.workloads)),
    }
    supplied = p.regions.supply_mgpu > 0
    demand, first = asked[:, :, -1], p.tiers[0] == 0
    over = np.maximum(demand - SHARE * p.regions.supply_mgpu.astype(object), 0)
    metrics = {
        "peak_ratio": _worst(demand[supplied], p.regions.supply_mgpu[supplied]),
        "peak_ratio_tier0": _worst(asked[:, :, 0][supplied], p.regions.supply_mgpu[supplied]) if first else 0.0,
        "overload_gpus": float(over.sum()) / SHARE / MILLI,
        "stored_tb": stored / MB_PER_TB,
        "copied_tb": copied / MB_PER_TB,
        "new_replicas": float(copies),
        "moved_shares": moved - int(stopped_shares(p, a).sum()) / SHARE,
        "remote_tb_per_day": far / SHARE / MB_PER_TB,
        "non_collocation_rate": len(np.unique(p.reads.workload[a.far_read])) / max(len(p.workloads), 1),
        "storage_overhead": _ratio(stored, sizes) - 1 if sizes else 0.0,
        "unserved_gpus": total(p.fewest_mgpu, refused) / SHARE / MILLI,
    }
    if p.has_prices:
        prices = p.regions.gpu_price_micro.astype(object)
        beyond = Fraction(HOURS_A_MONTH * (over * prices).sum(), SHARE * MILLI * MICRO)
        metrics["billed_usd_a_month"] = float(running_cost(p, a) - beyond)
        metrics["overload_usd_a_month"] = float(beyond)
    return terms, metrics


def total(amount: Ints, share: Ints | int = 1) -> int:
    """Verifier's total of data placement: Σ amount · share, exactly."""
    return totals(np.zeros(len(amount), np.int64), amount, share, 1)[0]


def gpu_demand(problem: DataPlacement, activity: Activity) -> NDArray[Any]:
    """[R, K, P] thousandths of a milli-GPU asked by work of tier ≤ p, as Python integers."""
    p, a = problem, activity
    shape = (len(p.regions), len(p.gpu_types) + 1, len(p.tiers))
    group = np.ravel_multi_index((a.run_region, a.run_kind, p.workloads.tier[a.run_workload]), shape)
    asked = totals(group, p.option_mgpu[a.run_workload, a.run_kind], a.run_share, int(np.prod(shape)))
    return np.cumsum(np.array(asked, object).reshape(shape), axis=2)[:, :-1]


def copied_mb(problem: DataPlacement, activity: Activity) -> int:
    """MB of replicas where there is none today."""
    return total(np.repeat(problem.datasets.size_mb, (activity.place & ~problem.datasets.stored).sum(axis=1)))


def stored_mb(problem: DataPlacement, activity: Activity) -> int:
    """MB of all replicas."""
    return total(np.repeat(problem.datasets.size_mb, activity.place.sum(axis=1)))


def _balance_terms(problem: DataPlacement, asked: NDArray[Any]) -> dict[str, float]:
    """peak, overload and idle; see ``gpu_demand`` for the unit of ``asked``."""
    peak = overload = idle = 0.0
    levels = problem.peak_level.tolist()
    for k in range(len(problem.gpu_types)):
        supply = SHARE * problem.regions.supply_mgpu[:, k].astype(object)
        regions = np.flatnonzero(supply)
        whole = int(supply.sum())
        for p, weight in enumerate(problem.tier_weight.tolist()):
            demand = asked[regions, k, p]
            worst = max((d / s for d, s in zip(demand, supply[regions])), default=0.0)
            peak += weight * max(worst - levels[p], 0.0)
            overload += weight * _ratio(sum(max(d - s, 0) for d, s in zip(demand, supply[regions])), whole)
        idle += _ratio(sum(max(s - d, 0) for d, s in zip(asked[regions, k, -1], supply[regions])), whole)
    return {"peak": peak, "overload": overload, "idle": idle}


def _egress(problem: DataPlacement, activity: Activity) -> float:
    """USD a day: remote reads, and the copies spread over the days that they may take."""
    p, a = problem, activity
    if p.links is None:
        return 0.0
    count = len(p.links)
    read = totals(a.far_link, p.reads.mb_per_day[a.far_read], a.far_share, count)
    copied = totals(a.copy_link, p.datasets.size_mb[a.copy_dataset], a.copy_share, count)
    daily = [float(r + c / p.days) / SHARE / MB_PER_TB for r, c in zip(read, copied)]
    return float(np.dot(p.links.price_usd_per_tb, daily))


def running_cost(problem: DataPlacement, activity: Activity) -> Fraction:
    """USD a month: GPUs by the hour, replicas and outputs by the TB-month, remote reads by link."""
    p, a = problem, activity
    regions, types = len(p.regions), len(p.gpu_types) + 1
    used = totals(
        a.run_region * types + a.run_kind, p.option_mgpu[a.run_workload, a.run_kind], a.run_share, regions * types
    )
    prices = np.append(p.regions.gpu_price_micro, np.zeros((regions, 1), np.int64), axis=1).ravel().tolist()
    hourly = Fraction(sum(price * mgpu for price, mgpu in zip(prices, used)), SHARE * MILLI)
    dataset, region = np.nonzero(a.place)
    replicas = totals(region, p.datasets.size_mb[dataset], 1, regions)
    outputs = totals(a.run_region, p.workloads.output_mb[a.run_workload], a.run_share, regions)
    stored = [mb + Fraction(part, SHARE) for mb, part in zip(replicas, outputs)]
    monthly = sum((price * mb for price, mb in zip(p.regions.storage_price_micro.tolist(), stored)), Fraction(0))
    daily = over_links(p, a.far_link, p.reads.mb_per_day[a.far_read], a.far_share)
    return (hourly * HOURS_A_MONTH + monthly / MB_PER_TB) / MICRO + daily * HOURS_A_MONTH / 24


def migration_cost(problem: DataPlacement, activity: Activity) -> Fraction:
    """USD, once: new replicas at the price of their region, and copies over links."""
    p, a = problem, activity
    dataset, region = np.nonzero(a.place & ~p.datasets.stored)
    arriving = totals(region, p.datasets.size_mb[dataset], 1, len(p.regions))
    price = sum(micro * mb for micro, mb in zip(p.regions.copy_price_micro.tolist(), arriving))
    copied = over_links(p, a.copy_link, p.datasets.size_mb[a.copy_dataset], a.copy_share)
    return Fraction(price, MB_PER_TB * MICRO) + copied


def over_links(problem: DataPlacement, link: Ints, volume_mb: Ints, share: Ints) -> Fraction:
    """USD for what crosses links; 0 without links."""
    if problem.links is None:
        return Fraction(0)
    carried = totals(link, volume_mb, share, len(problem.links))
    prices = problem.links.price_usd_per_tb.tolist()
    return sum((Fraction(price) * mb for price, mb in zip(prices, carried)), Fraction(0)) / (SHARE * MB_PER_TB)


def leaving_shares(problem: DataPlacement, activity: Activity) -> Ints:
    """[W] thousandths of a workload that leave the regions where it runs today."""
    p, a, regions = problem, activity, len(problem.regions)
    leaves = np.zeros(len(p.workloads) * regions, np.int64)
    np.add.at(leaves, p.current_runs.workload * regions + p.current_runs.region, p.current_runs.share)
    np.subtract.at(leaves, a.run_workload * regions + a.run_region, a.run_share)
    left: Ints = np.maximum(leaves, 0).reshape(-1, regions).sum(axis=1)
    return left


def stopped_shares(problem: DataPlacement, activity: Activity) -> Ints:
    """[W] thousandths of a workload that run today, and nowhere under the plan."""
    stopped = np.zeros(len(problem.workloads), np.int64)
    np.add.at(stopped, problem.current_runs.workload, problem.current_runs.share)
    np.subtract.at(stopped, activity.run_workload, activity.run_share)
    return np.maximum(stopped, 0)


def refused_shares(problem: DataPlacement, activity: Activity) -> Ints:
    """[W] thousandths of a workload that run nowhere."""
    served = np.zeros(len(problem.workloads), np.int64)
    np.add.at(served, activity.run_workload, activity.run_share)
    return np.maximum(SHARE - served, 0)


def _retyped(problem: DataPlacement, activity: Activity) -> float:
    """The share of GPU demand that runs on a GPU type today, if that is known, and not under the plan."""
    p, a = problem, activity
    types = len(p.gpu_types) + 1
    leaves = np.zeros(len(p.workloads) * types, np.int64)
    np.add.at(leaves, p.current_runs.workload * types + p.current_runs.gpu_type, p.current_runs.share)
    np.subtract.at(leaves, a.run_workload * types + a.run_kind, a.run_share)
    pairs = np.flatnonzero((leaves > 0) & (np.arange(len(leaves)) % types < types - 1))
    return _ratio(total(p.demand_mgpu[pairs // types], leaves[pairs]), SHARE * total(p.demand_mgpu))


def _unserved(problem: DataPlacement, refused: Ints) -> float:
    """Term of refused GPU demand in a data-placement plan, by tiers' weights."""
    tiers, weights = len(problem.tiers), problem.tier_weight.tolist()
    lost = totals(problem.workloads.tier, problem.demand_mgpu, refused, tiers)
    asked = totals(problem.workloads.tier, problem.demand_mgpu, SHARE, tiers)
    return _ratio(sum(w * n for w, n in zip(weights, lost)), sum(w * n for w, n in zip(weights, asked)))


def _worst(demand: NDArray[Any], supply_mgpu: Ints) -> float:
    """Worst ratio of GPU demand over supply, in the data-placement verifier."""
    return max((d / (SHARE * s) for d, s in zip(demand.tolist(), supply_mgpu.tolist())), default=0.0)


def _ratio(part: float, whole: float) -> float:
    """Ratio of a part to a whole in the data-placement verifier, 0 of nothing."""
    return part / whole if whole else 0.0
