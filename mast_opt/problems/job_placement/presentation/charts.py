"""Charts of a job-placement plan: how full clusters are, what each tier gets, what waits.

Every figure comes from the verifier's half of the problem (``measure``), none from a solver.
"""

from __future__ import annotations

import numpy as np

from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools, Ints
from mast_opt.problems.job_placement.verification.measures import free_after, row_needs
from mast_opt.problems.kind.presentation import Bars, Chart, HeatMap, Scale, Values, grid


def charts(problem: JobPlacement, plan: Plan) -> tuple[Chart, ...]:
    """Charts in the order of reading: GPUs in use by region, by cluster, and admission by tier."""
    p = problem
    before, after = p.servers.supply - p.free, p.servers.supply - free_after(p, plan)
    return (
        _heat(p, p.server_region, p.regions, "region", before[:, GPU], after[:, GPU]),
        _clusters(p, before[:, GPU], after[:, GPU]),
        _gpus(p, plan),
        _jobs(p, plan),
    )


def _heat(problem: JobPlacement, place: Ints, names: tuple[str, ...], name: str, before: Ints, after: Ints) -> HeatMap:
    p = problem
    shape = (len(names), len(p.gpu_types))

    def spread(amount: Ints) -> Ints:
        total = np.zeros(shape, np.int64)
        np.add.at(total, (place, p.servers.gpu_type), amount)
        return total

    supply = spread(p.servers.supply[:, GPU])
    kept = np.flatnonzero(supply.any(axis=0))
    return HeatMap(
        title="GPUs in use",
        row_name=name,
        column_name="GPU type",
        rows=names,
        columns=tuple(p.gpu_types[k] for k in kept.tolist()),
        before=_ratios(spread(before)[:, kept], supply[:, kept]),
        after=_ratios(spread(after)[:, kept], supply[:, kept]),
        scale=Scale.FILL,
        note="As a share of the GPUs there are.",
    )


def _ratios(part: Ints, whole: Ints) -> tuple[Values, ...]:
    return grid([[a / b if b else None for a, b in zip(x, y)] for x, y in zip(part.tolist(), whole.tolist())])


def _clusters(problem: JobPlacement, before: Ints, after: Ints) -> Bars:
    """Fullest first."""
    p = problem

    def spread(amount: Ints) -> Ints:
        total = np.zeros(len(p.clusters), np.int64)
        np.add.at(total, p.server_cluster, amount)
        return total

    supply, used, now = spread(p.servers.supply[:, GPU]), spread(after), spread(before)
    order = [c for c in np.argsort(-used / np.maximum(supply, 1), kind="stable").tolist() if supply[c]]
    series = tuple(
        (name, tuple(float(amount[c] / supply[c]) for c in order))
        for name, amount in (("before", now), ("after", used))
    )
    return Bars(
        "GPUs in use by cluster", "cluster", tuple(p.clusters.labels[c] for c in order), series, scale=Scale.FILL
    )


def _gpus(problem: JobPlacement, plan: Plan) -> Bars:
    """GPUs that the admitted jobs of each tier hold, and those that its running jobs hold before and after."""
    p = problem
    tiers = len(p.tiers)
    held, kept, started = (np.zeros(tiers, np.int64) for _ in range(3))
    tier = p.running.tier[p.allocations.running]
    np.add.at(held, tier, p.held[:, GPU])
    stays = ~plan.preempt[p.allocations.running]
    np.add.at(kept, tier[stays], p.held[stays, GPU])
    np.add.at(started, p.queue_tier[plan.job], row_needs(p, plan)[:, GPU])
    named = (("running before", held), ("still running", kept), ("started", started))
    series = tuple((name, tuple((amount / WHOLE).tolist())) for name, amount in named)
    return Bars("GPUs held by tier", "tier", tuple(f"tier {tier}" for tier in p.tiers), series, "GPUs")


def _jobs(problem: JobPlacement, plan: Plan) -> Bars:
    p = problem
    admitted: Bools = np.zeros(len(p.jobs), np.bool_)
    admitted[plan.job] = True
    count = np.bincount(p.queue_tier, minlength=len(p.tiers))
    got = np.bincount(p.queue_tier[admitted], minlength=len(p.tiers))
    series = (("pending", tuple(map(float, count))), ("admitted", tuple(map(float, got))))
    return Bars("Jobs admitted by tier", "tier", tuple(f"tier {tier}" for tier in p.tiers), series, "jobs")
