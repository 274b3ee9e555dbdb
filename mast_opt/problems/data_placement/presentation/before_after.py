"""Report table of a data-placement plan: the figures that it is made for, today and after it."""

from __future__ import annotations

import numpy as np

from mast_opt.core.number_format import percent
from mast_opt.problems.data_placement.analysis.current_state import complete
from mast_opt.problems.data_placement.plan import Plan, gpu_demand, read_positions, today
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.kind.presentation import Head, Section


def before_and_after(problem: DataPlacement, plan: Plan) -> tuple[Section, ...]:
    """Worst ratios, remote reads and storage, and the days that the copies take where ingress or links limit them.

    Nothing where it is not known for all work where it runs today. ``plan`` is in full (``in_full``).
    """
    now = today(problem) if complete(problem) else None
    if now is None:
        return ()
    rows = [(name, before, after) for (name, before), after in zip(_figures(problem, now), _values(problem, plan))]
    rows += _costs(problem, now, plan)
    days = days_of_copying(problem, plan)
    if days is not None:
        rows.append(("days of copying", "", f"{days:.1f}"))
    return (Section("Before and after", (Head("measure"), Head("before"), Head("after")), tuple(rows), leads=True),)


def _costs(problem: DataPlacement, now: Plan, plan: Plan) -> list[tuple[str, str, str]]:
    """Rows of costs: of both states, and of the copies; empty where the instance has no price."""
    if not problem.has_prices:
        return []
    before, after = verify(problem, now).terms, verify(problem, plan).terms
    return [
        ("running cost, USD a month", f"{before['running_cost']:,.0f}", f"{after['running_cost']:,.0f}"),
        ("cost of the copies, USD once", "", f"{after['migration_cost']:,.0f}"),
    ]


def _values(problem: DataPlacement, plan: Plan) -> list[str]:
    return [value for _, value in _figures(problem, plan)]


def _figures(problem: DataPlacement, plan: Plan) -> list[tuple[str, str]]:
    """(measure, value) of one state."""
    p = problem
    supplied = p.regions.supply_mgpu > 0
    ratio = gpu_demand(p, plan)[supplied] / p.regions.supply_mgpu[supplied][:, None]
    worst = ratio.max(axis=0) if len(ratio) else np.zeros(len(p.tiers))
    tiers = [(f"worst ratio, tier {p.tiers[0]}", worst[0]), ("worst ratio, all tiers", worst[-1])]
    read = read_positions(p, plan.remote_workload, plan.remote_dataset)
    real = np.flatnonzero((read >= 0) & (plan.remote_share > 0))
    readers = len(np.unique(plan.remote_workload[real])) / max(len(p.workloads), 1)
    volume = float((p.reads.mb_per_day[read[real]] * (plan.remote_share[real] / SHARE)).sum())
    stored = float((p.datasets.size_mb @ plan.place).sum()) / max(int(p.datasets.size_mb.sum()), 1)
    return [
        *((name, f"{value:.2f}") for name, value in (tiers if len(p.tiers) > 1 else tiers[-1:])),
        ("workloads with remote reads", percent(readers)),
        ("volume read remotely", percent(volume / max(int(p.reads.mb_per_day.sum()), 1))),
        ("copies of everything", f"{stored:.2f}"),
    ]


def days_of_copying(problem: DataPlacement, plan: Plan) -> float | None:
    """Days that the slowest region or link needs to receive its copies, each at its full rate; infinite where
    something is copied at a rate of 0. None where neither ingress nor links limit the copies."""
    p = problem
    arriving = p.datasets.size_mb @ (plan.place & ~p.datasets.stored)
    limited = p.regions.ingress_limited
    volume, rate = [arriving[limited]], [p.regions.ingress_mb_per_day[limited]]
    if p.links is not None:
        regions = len(p.regions)
        pair = plan.copy_source * regions + plan.copy_target
        weights = p.datasets.size_mb[plan.copy_dataset] * (plan.copy_share / SHARE)
        copied = np.bincount(pair, weights=weights, minlength=regions * regions)
        volume.append(copied[p.links.source * regions + p.links.target])
        rate.append(p.links.capacity_mb_per_day)
    amount, per_day = np.concatenate(volume).astype(np.float64), np.concatenate(rate).astype(np.float64)
    if not len(amount):
        return None
    if ((amount > 0) & (per_day == 0)).any():
        return float("inf")
    return float((amount / np.maximum(per_day, 1)).max())
