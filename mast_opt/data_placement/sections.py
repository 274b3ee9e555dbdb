"""The tables of a data-placement plan for a person: what changed, how full, what moves, what stays remote."""

from __future__ import annotations

import numpy as np

from mast_opt.data_placement.dependent import gpu_demand
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.kind import Section

TB = 1e6
Cell = str | float | int | None


def sections(problem: DataPlacement, plan: Plan) -> tuple[Section, ...]:
    """In the order of reading: GPUs, storage and CPU, copies, remote reads, unserved work."""
    return (
        _gpus(problem, plan),
        _fill(problem, plan),
        _copies(problem, plan),
        _remote(problem, plan),
        *_unserved(problem, plan),
    )


def today(problem: DataPlacement) -> Plan | None:
    """The runs of today as a plan, or None where the instance does not say where work runs."""
    p = problem
    if not len(p.current_workload):
        return None
    order = np.lexsort((p.current_type, p.current_region, p.current_workload))
    kind = p.current_type[order].copy()
    known = kind < len(p.gpu_types)
    first = np.full(len(p.workloads), len(p.gpu_types))
    first[p.option_workload[::-1]] = p.option_type[::-1]
    kind[~known] = first[p.current_workload[order][~known]]
    none = np.zeros(0, np.int64)
    return Plan(
        p.stored.copy(),
        p.current_workload[order],
        p.current_region[order],
        kind,
        p.current_share[order],
        *(none.copy() for _ in range(9)),
    )


def _gpus(problem: DataPlacement, plan: Plan) -> Section:
    p = problem
    after = gpu_demand(p, plan)
    before_plan = today(p)
    before = None if before_plan is None else gpu_demand(p, before_plan)[:, :, -1]
    rows: list[tuple[Cell, ...]] = []
    over = 0
    for r, region in enumerate(p.regions):
        for k, kind in enumerate(p.gpu_types):
            supply = int(p.supply_mgpu[r, k])
            if not supply:
                continue
            was = None if before is None else float(before[r, k])
            now = float(after[r, k, -1])
            over += now > supply
            rows.append(
                (
                    region,
                    kind,
                    supply / 1000,
                    None if was is None else was / 1000,
                    None if was is None else was / supply,
                    now / 1000,
                    now / supply,
                    float(after[r, k, 0]) / supply,
                )
            )
    heads = ("region", "GPU type", "supply", "demand before", "ratio before", "demand", "ratio", f"ratio tier {p.tiers[0]}")
    note = f"{over} of {len(rows)} region × type pairs are asked for more than they have."
    return Section("GPU demand against supply", heads, tuple(rows), note)


def _fill(problem: DataPlacement, plan: Plan) -> Section:
    p = problem
    regions = len(p.regions)
    share = plan.run_share / SHARE
    output = np.bincount(plan.run_region, weights=p.output_mb[plan.run_workload] * share, minlength=regions)
    cpu = np.bincount(plan.run_region, weights=p.cpu_need_mcores[plan.run_workload] * share, minlength=regions)
    before, after = p.size_mb @ p.stored, p.size_mb @ plan.place + output
    rows: list[tuple[Cell, ...]] = [
        (
            region,
            p.usable_storage_mb[r] / TB,
            _ratio(before[r], p.usable_storage_mb[r]),
            _ratio(after[r], p.usable_storage_mb[r]),
            p.cpu_mcores[r] / 1000,
            _ratio(cpu[r], p.cpu_mcores[r]),
        )
        for r, region in enumerate(p.regions)
    ]
    heads = ("region", "usable TB", "filled before", "filled", "cores", "cores in use")
    return Section("Storage and CPU", heads, tuple(rows))


def _ratio(amount: float, of: float) -> float | None:
    return float(amount / of) if of else None


def _copies(problem: DataPlacement, plan: Plan) -> Section:
    p = problem
    volume = p.size_mb[plan.copy_dataset] * plan.copy_share / SHARE / TB
    rows = _by_pair(p, plan.copy_source, plan.copy_target, volume)
    new = plan.place & ~p.stored
    uploads = new & ~p.stored.any(axis=1)[:, None]
    uploaded = float((p.size_mb @ uploads).sum()) / TB
    dropped = float((p.size_mb @ (p.stored & ~plan.place)).sum()) / TB
    note = f"{int(new.sum())} new replicas; {uploaded:,.1f} TB are uploaded from outside, {dropped:,.1f} TB are deleted."
    return Section("Copies", ("from", "to", "TB", "datasets"), rows, note)


def _remote(problem: DataPlacement, plan: Plan) -> Section:
    p = problem
    key = p.read_workload * len(p.datasets) + p.read_dataset
    at = np.searchsorted(key, plan.remote_workload * len(p.datasets) + plan.remote_dataset)
    volume = p.read_mb_per_day[at] * plan.remote_share / SHARE / TB
    rows = _by_pair(p, plan.remote_source, plan.remote_target, volume)
    readers = len(np.unique(plan.remote_workload))
    note = f"{readers} of {len(p.workloads)} workloads read something from another region."
    return Section("Reads that stay remote", ("from", "to", "TB a day", "reads"), rows, note)


def _by_pair(problem: DataPlacement, source: Ints, target: Ints, volume: np.ndarray) -> tuple[tuple[Cell, ...], ...]:  # type: ignore[type-arg]
    """Rows (from, to, total volume, count), largest first."""
    regions = len(problem.regions)
    pair = source * regions + target
    total = np.bincount(pair, weights=volume, minlength=regions * regions)
    count = np.bincount(pair, minlength=regions * regions)
    kept = np.flatnonzero(count)
    order = kept[np.argsort(-total[kept], kind="stable")]
    return tuple(
        (problem.regions[at // regions], problem.regions[at % regions], float(total[at]), int(count[at]))
        for at in order.tolist()
    )


def _unserved(problem: DataPlacement, plan: Plan) -> tuple[Section, ...]:
    p = problem
    if not p.may_refuse:
        return ()
    served = np.bincount(plan.run_workload, weights=plan.run_share, minlength=len(p.workloads))
    left = (SHARE - served) / SHARE
    rows: list[tuple[Cell, ...]] = []
    for position, tier in enumerate(p.tiers):
        of_tier: Bools = (p.tier == position) & (left > 0)
        gpus = float((left * p.demand_mgpu)[of_tier].sum()) / 1000
        rows.append((str(tier), int(of_tier.sum()), gpus))
    return (Section("Work left out", ("tier", "workloads", "GPUs"), tuple(rows)),)
