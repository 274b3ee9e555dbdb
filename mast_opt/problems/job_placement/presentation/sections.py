"""Report tables and charts of a job-placement plan: how full, what is admitted, who is stopped, what waits and why.

Every figure comes from the verifier's half of the problem, none from a solver.
"""

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.analysis.rejection_reasons import reason_in_words
from mast_opt.problems.job_placement.live_fleet.reservations import Reservation, reservations
from mast_opt.problems.job_placement.migration.plan_rows import servers_in_words
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools, Ints
from mast_opt.problems.job_placement.verification.measures import free_after, task_needs
from mast_opt.problems.kind.presentation import Bars, Chart, Form, Head, HeatMap, Scale, Section, ratios

Cell = str | float | int | None
MS_PER_HOUR = 3_600_000
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
        *_waiting(problem, plan, admitted),
    )


def _admission(problem: JobPlacement, admitted: Bools) -> Section:
    """Section on admission: pending jobs and their value by tier, and how many are admitted."""
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


def _waiting(problem: JobPlacement, plan: Plan, admitted: Bools) -> tuple[Section, ...]:
    """Jobs that are not admitted, in queue order, and what stands in their way."""
    p = problem
    waiting = p.order[~admitted[p.order]]
    if not len(waiting):
        return ()
    listed = waiting[:MOST_EXPLAINED]
    reserved = reservations(p, plan, listed)
    rows = tuple(
        (
            p.jobs.labels[j],
            int(p.tiers[p.queue_tier[j]]),
            int(p.jobs.tasks[j]),
            float(p.options.mgpu[p.options.job == j][0]) / WHOLE,
            *_reserved(p, reserved.get(j)),
            reason_in_words(p, j),
        )
        for j in listed.tolist()
    )
    heads = (
        Head("job"),
        *Form.COUNT.heads("tier", "tasks"),
        Head("GPUs a task", Form.AMOUNT),
        Head("reserve in"),
        Head("within, h", Form.AMOUNT),
        Head("why"),
    )
    jobs = int(p.counts_once[waiting].sum())
    note = "1 job waits." if jobs == 1 else f"{jobs} jobs wait."
    if len(p.parts):
        note += " Parts of jobs are listed one by one."
    if len(waiting) > MOST_EXPLAINED:
        note += f" The first {MOST_EXPLAINED} of the queue are listed."
    return (Section("Jobs that wait", heads, rows, note),)


def _reserved(problem: JobPlacement, one: Reservation | None) -> tuple[Cell, Cell]:
    """Region where a waiting job has a reservation, and hours within which it fits."""
    if one is None:
        return "", None
    return problem.regions[one.region], None if one.by_ms is None else one.by_ms / MS_PER_HOUR


def charts(problem: JobPlacement, plan: Plan) -> tuple[Chart, ...]:
    """Charts in the order of reading: GPUs in use by region, by cluster, and admission by tier."""
    p = problem
    before, after = p.servers.supply - p.free, p.servers.supply - free_after(p, plan)
    return (
        _regions(p, before[:, GPU], after[:, GPU]),
        _clusters(p, before[:, GPU], after[:, GPU]),
        _gpus(p, plan),
        _jobs(p, plan),
    )


def _regions(problem: JobPlacement, before: Ints, after: Ints) -> HeatMap:
    """Heat map of GPUs in use by region and GPU type, before and after the plan."""
    p = problem

    def spread(amount: Ints) -> Ints:
        total = np.zeros((len(p.regions), len(p.gpu_types)), np.int64)
        np.add.at(total, (p.server_region, p.servers.gpu_type), amount)
        return total

    supply = spread(p.servers.supply[:, GPU])
    kept = np.flatnonzero(supply.any(axis=0))
    return HeatMap(
        title="GPUs in use",
        row_name="region",
        column_name="GPU type",
        rows=p.regions,
        columns=tuple(p.gpu_types[k] for k in kept.tolist()),
        before=ratios(spread(before)[:, kept], supply[:, kept]),
        after=ratios(spread(after)[:, kept], supply[:, kept]),
        scale=Scale.FILL,
        note="As a share of the GPUs there are.",
    )


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
    np.add.at(started, p.queue_tier[plan.job], task_needs(p, plan)[: len(plan.job), GPU] * plan.tasks)
    named = (("running before", held), ("still running", kept), ("started", started))
    series = tuple((name, tuple((amount / WHOLE).tolist())) for name, amount in named)
    return Bars("GPUs held by tier", "tier", tuple(f"tier {tier}" for tier in p.tiers), series, "GPUs")


def _jobs(problem: JobPlacement, plan: Plan) -> Bars:
    """Bars of pending and admitted jobs by tier."""
    p = problem
    admitted: Bools = np.zeros(len(p.jobs), np.bool_)
    admitted[plan.job] = True
    count = np.bincount(p.queue_tier, minlength=len(p.tiers))
    got = np.bincount(p.queue_tier[admitted], minlength=len(p.tiers))
    series = (("pending", tuple(map(float, count))), ("admitted", tuple(map(float, got))))
    return Bars("Jobs admitted by tier", "tier", tuple(f"tier {tier}" for tier in p.tiers), series, "jobs")
