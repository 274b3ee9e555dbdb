"""Report tables of a job-placement plan: how full, what is admitted, who is stopped, what waits and why."""

from __future__ import annotations

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.analysis.rejection_reasons import reason_in_words
from mast_opt.problems.job_placement.migration.plan_rows import servers_in_words
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools
from mast_opt.problems.job_placement.verification.measures import free_after
from mast_opt.problems.kind.presentation import Form, Head, Section

Cell = str | float | int | None
MOST_EXPLAINED = 200
"""Jobs that wait for which the reason is worked out, in queue order."""


def sections(problem: JobPlacement, plan: Plan) -> tuple[Section, ...]:
    """Sections in the order of reading: admission by tier, fullness, victims, moves, jobs that wait."""
    admitted = np.zeros(len(problem.jobs), np.bool_)
    admitted[plan.job] = True
    return (
        _admission(problem, admitted),
        _fullness(problem, plan),
        *_victims(problem, plan),
        *_moves(problem, plan),
        *_waiting(problem, admitted),
    )


def _admission(problem: JobPlacement, admitted: Bools) -> Section:
    p = problem
    rows: list[tuple[Cell, ...]] = []
    for at, tier in enumerate(p.tiers):
        of_tier = p.queue_tier == at
        if of_tier.any():
            value = float(p.jobs.value_milli[of_tier].sum()) / MILLI
            got = float(p.jobs.value_milli[of_tier & admitted].sum()) / MILLI
            once = of_tier & p.counts_once
            rows.append((tier, int(once.sum()), int((once & admitted).sum()), value, got))
    heads = (*Form.COUNT.heads("tier", "jobs", "admitted"), *Form.AMOUNT.heads("value", "value admitted"))
    dropped = int(((p.standing.jobs.tier >= len(p.tiers)) & p.counts_once).sum())
    quota = ""
    if dropped:
        over = "1 job over its tenant's quota counts" if dropped == 1 else f"{dropped} jobs over tenants' quotas count"
        quota = f" {over} behind all other work."
    jobs = int(p.counts_once.sum())
    note = f"{int((admitted & p.counts_once).sum())} of {jobs} jobs are admitted.{quota}"
    return Section("Jobs admitted", heads, tuple(rows), note)


def _fullness(problem: JobPlacement, plan: Plan) -> Section:
    """Clusters, fullest first."""
    p = problem
    count = len(p.clusters)
    supply = np.bincount(p.server_cluster, weights=p.servers.supply[:, GPU], minlength=count)
    before = supply - np.bincount(p.server_cluster, weights=p.free[:, GPU], minlength=count)
    free = np.bincount(p.server_cluster, weights=free_after(p, plan)[:, GPU], minlength=count)
    fill = np.where(supply > 0, (supply - free) / np.maximum(supply, 1), 0)
    rows = tuple(
        (
            p.clusters.labels[c],
            p.regions[p.clusters.region[c]],
            float(supply[c]) / WHOLE,
            float(before[c] / supply[c]) if supply[c] else None,
            float(fill[c]) if supply[c] else None,
            float(free[c]) / WHOLE,
        )
        for c in np.lexsort((np.arange(count), -fill)).tolist()
    )
    heads = (
        *Form.TEXT.heads("cluster", "region"),
        Head("GPUs", Form.AMOUNT),
        *Form.FILL.heads("in use before", "in use"),
        Head("free GPUs", Form.AMOUNT),
    )
    total, left = float(supply.sum()), float(free.sum())
    note = f"{(total - left) / total:.1%} of all GPUs are in use after the plan." if total else "The fleet has no GPUs."
    return Section("Clusters", heads, rows, note)


def _victims(problem: JobPlacement, plan: Plan) -> tuple[Section, ...]:
    """Running jobs that are stopped, the most work lost first."""
    p = problem
    stopped = np.flatnonzero(plan.preempt)
    if not len(stopped):
        return ()
    held = np.bincount(p.allocations.running, weights=p.held[:, GPU], minlength=len(p.running))
    order = stopped[np.lexsort((stopped, -p.running.at_risk_mgpu_hours[stopped]))]
    rows = tuple(
        (
            p.running.labels[v],
            int(p.tiers[p.running.tier[v]]),
            float(held[v]) / WHOLE,
            float(p.running.at_risk_mgpu_hours[v]) / MILLI,
        )
        for v in order.tolist()
    )
    heads = (Head("job"), Head("tier", Form.COUNT), Head("GPUs", Form.AMOUNT), Head("GPU-hours lost", Form.AMOUNT))
    lost = float(p.running.at_risk_mgpu_hours[stopped].sum()) / MILLI
    stops = "1 job is" if len(stopped) == 1 else f"{len(stopped)} jobs are"
    return (Section("Jobs stopped", heads, rows, f"{stops} stopped; {lost:,.1f} GPU-hours are lost."),)


def _moves(problem: JobPlacement, plan: Plan) -> tuple[Section, ...]:
    """Running jobs that are moved, the most expensive first."""
    p = problem
    moving = np.isin(p.movable.running, plan.moved)
    if not moving.any():
        return ()
    held = np.bincount(p.allocations.running, weights=p.held[:, GPU], minlength=len(p.running))
    running, cost = p.movable.running[moving], p.movable.restart_mgpu_hours[moving]
    rows = tuple(
        (
            p.running.labels[v],
            int(p.tiers[p.running.tier[v]]),
            float(held[v]) / WHOLE,
            servers_in_words(p, p.allocations.server[p.allocations.running == v]),
            servers_in_words(p, plan.moved_server[plan.moved == v]),
            float(hours) / MILLI,
        )
        for v, hours in ((running[at], cost[at]) for at in np.lexsort((running, -cost)).tolist())
    )
    heads = (
        Head("job"),
        Head("tier", Form.COUNT),
        Head("GPUs", Form.AMOUNT),
        *Form.TEXT.heads("from", "to"),
        Head("GPU-hours lost", Form.AMOUNT),
    )
    moves = "1 running job is" if len(running) == 1 else f"{len(running)} running jobs are"
    note = f"{moves} moved; {float(cost.sum()) / MILLI:,.1f} GPU-hours are lost."
    return (Section("Jobs moved", heads, rows, note),)


def _waiting(problem: JobPlacement, admitted: Bools) -> tuple[Section, ...]:
    """Jobs that are not admitted, in queue order, and what stands in their way."""
    p = problem
    waiting = p.order[~admitted[p.order]]
    if not len(waiting):
        return ()
    rows = tuple(
        (
            p.jobs.labels[j],
            int(p.tiers[p.queue_tier[j]]),
            int(p.jobs.tasks[j]),
            float(p.options.mgpu[p.options.job == j][0]) / WHOLE,
            reason_in_words(p, j),
        )
        for j in waiting[:MOST_EXPLAINED].tolist()
    )
    heads = (Head("job"), *Form.COUNT.heads("tier", "tasks"), Head("GPUs a task", Form.AMOUNT), Head("why"))
    jobs = int(p.counts_once[waiting].sum())
    note = "1 job waits." if jobs == 1 else f"{jobs} jobs wait."
    if len(p.parts):
        note += " Parts of jobs are listed one by one."
    if len(waiting) > MOST_EXPLAINED:
        note += f" The first {MOST_EXPLAINED} of the queue are listed."
    return (Section("Jobs that wait", heads, rows, note),)
