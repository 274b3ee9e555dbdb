"""Report tables of a data-placement plan: how full, what moves, what stays remote."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.core.wording import counted
from mast_opt.problems.data_placement.analysis.current_state import complete
from mast_opt.problems.data_placement.analysis.short_days import short_days
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.plan import (
    Plan,
    filled_mb,
    lacking_gpus,
    read_positions,
    shown_demand,
    today,
    used_mcores,
)
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.tables.problem_tables import in_full
from mast_opt.problems.data_placement.verification.verifier import use_of_limits
from mast_opt.problems.kind.migration_plan import COPIES_TO_MAKE
from mast_opt.problems.kind.presentation import Cell, Form, Head, Section, listed


def sections(problem: DataPlacement, plan: Plan) -> tuple[Section, ...]:
    """Sections in the order of reading: GPUs, storage and CPU, copies, remote reads, work left out,
    limits."""
    plan = in_full(problem, plan)
    return (
        *((_gpus(problem, plan),) if problem.regions.supply_mgpu.any() else ()),
        _fill(problem, plan),
        _copies(problem, plan),
        _remote(problem, plan),
        *_unserved(problem, plan),
        *_limits(problem, plan),
    )


def _limits(problem: DataPlacement, plan: Plan) -> tuple[Section, ...]:
    """A row per limit on the whole plan, the fullest first; nothing without one."""
    p = problem
    if not p.limits:
        return ()
    used = use_of_limits(p, plan)
    fill = {name: float(used[name] / most) if most else 1.0 for name, most in p.limits.items()}
    limits = listed(
        "Limits on the whole plan",
        sorted(fill, key=lambda name: -fill[name]),
        ("limit", Form.TEXT, lambda name: name),
        ("used", Form.AMOUNT, lambda name: float(used[name])),
        ("at most", Form.AMOUNT, lambda name: float(p.limits[name])),
        ("unit", Form.TEXT, lambda name: LIMITS[name].unit),
        ("filled", Form.FILL, lambda name: fill[name]),
    )
    return (limits,)


def _gpus(problem: DataPlacement, plan: Plan) -> Section:
    """A row per region and type that it has; the fullest first."""
    p = problem
    region, kind = np.nonzero(p.regions.supply_mgpu)
    supply = p.regions.supply_mgpu[region, kind]
    after = shown_demand(p, plan)[region, kind]
    ratio = after[:, -1] / supply
    columns = [
        (Head("region"), [p.regions.labels[r] for r in region]),
        (Head("GPU type"), [p.gpu_types[k] for k in kind]),
        (Head("supply", Form.GPUS), (supply / MILLI).tolist()),
    ]
    runs_today = today(p)
    if runs_today is not None:
        before = shown_demand(p, runs_today)[region, kind, -1]
        part = "" if complete(p) else "known "
        columns.append((Head(f"{part}demand before", Form.GPUS), (before / MILLI).tolist()))
        columns.append((Head(f"{part}ratio before", Form.RATIO), (before / supply).tolist()))
    columns.append((Head("demand", Form.GPUS), (after[:, -1] / MILLI).tolist()))
    columns.append((Head("ratio", Form.RATIO), ratio.tolist()))
    marks = (1.0, p.objective.peak_levels.get(p.tiers[0], 1.0))
    columns.append((Head(f"ratio tier {p.tiers[0]}", Form.RATIO, marks), (after[:, 0] / supply).tolist()))
    order = np.argsort(-ratio, kind="stable")
    note = f"Demand exceeds supply in {int((lacking_gpus(p, plan) > 0).sum())} of {len(ratio)} region/GPU-type pairs."
    note = f"{note} {short_days(p, plan)}".strip()
    return Section("GPU demand against supply", tuple(head for head, _ in columns), _rows(columns, order), note)


def _fill(problem: DataPlacement, plan: Plan) -> Section:
    """A row per region; the fullest disk first."""
    p = problem
    runs_today = today(p)
    part = "" if runs_today is None or complete(p) else "known "
    before = p.datasets.size_mb @ p.datasets.stored if runs_today is None else filled_mb(p, runs_today)
    after = filled_mb(p, plan)
    columns = [
        (Head("region"), list(p.regions.labels)),
        (Head("usable TB", Form.AMOUNT), (p.usable_storage_mb / MB_PER_TB).tolist()),
        (Head(f"{part}filled before", Form.FILL), _ratios(before, p.usable_storage_mb)),
        (Head("filled", Form.FILL), _ratios(after, p.usable_storage_mb)),
        (Head("cores", Form.AMOUNT), (p.regions.cpu_mcores / MILLI).tolist()),
    ]
    if runs_today is not None:
        columns.append(
            (Head(f"{part}in use before", Form.FILL), _ratios(used_mcores(p, runs_today), p.regions.cpu_mcores))
        )
    columns.append((Head("in use", Form.FILL), _ratios(used_mcores(p, plan), p.regions.cpu_mcores)))
    order = np.argsort(-after / np.maximum(p.usable_storage_mb, 1), kind="stable")
    return Section("Storage and CPU", tuple(head for head, _ in columns), _rows(columns, order))


def _ratios(amount: NDArray[Any], of: Ints) -> list[float | None]:
    """Ratios of regions' amounts to what they have; None of nothing."""
    return [float(part / whole) if whole else None for part, whole in zip(amount.tolist(), of.tolist(), strict=True)]


def _rows(columns: list[tuple[Head, list[Any]]], order: NDArray[Any]) -> tuple[tuple[Cell, ...], ...]:
    """Rows of a section's columns in an order."""
    cells = [values for _, values in columns]
    return tuple(tuple(values[row] for values in cells) for row in order.tolist())


def _copies(problem: DataPlacement, plan: Plan) -> Section:
    """Section on copies, uploads and deletions of a data-placement plan."""
    p = problem
    volume = p.datasets.size_mb[plan.copy_dataset] * plan.copy_share / SHARE / MB_PER_TB
    rows = _by_pair(p, plan.copy_source, plan.copy_target, volume)
    new: Bools = plan.place & ~p.datasets.stored
    uploads = new & ~p.datasets.stored.any(axis=1, keepdims=True)
    uploaded = float((p.datasets.size_mb @ uploads).sum()) / MB_PER_TB
    dropped = float((p.datasets.size_mb @ (p.datasets.stored & ~plan.place)).sum()) / MB_PER_TB
    note = (
        f"{counted(int(new.sum()), 'new replica')}: {volume.sum():,.1f} TB copied between regions, "
        f"{uploaded:,.1f} TB uploaded from outside; {dropped:,.1f} TB deleted."
    )
    heads = (Head("from"), Head("to"), Head("TB", Form.AMOUNT), Head("datasets", Form.COUNT))
    return Section(COPIES_TO_MAKE, heads, rows, note)


def _remote(problem: DataPlacement, plan: Plan) -> Section:
    """Section on remote reads of a data-placement plan."""
    p = problem
    read = read_positions(p, plan.remote_workload, plan.remote_dataset)
    real = np.flatnonzero(read >= 0)
    volume = p.reads.mb_per_day[read[real]] * plan.remote_share[real] / SHARE / MB_PER_TB
    rows = _by_pair(p, plan.remote_source[real], plan.remote_target[real], volume)
    readers = len(np.unique(plan.remote_workload[real]))
    share = volume.sum() * MB_PER_TB / max(int(p.reads.mb_per_day.sum()), 1)
    note = (
        f"{readers:,} of {len(p.workloads):,} workloads read something from another region: "
        f"{volume.sum():,.1f} TB a day, {share:.2%} of all reads."
    )
    heads = (Head("data in"), Head("read from"), Head("TB a day", Form.AMOUNT), Head("reads", Form.COUNT))
    return Section("Reads that stay remote", heads, rows, note)


def _by_pair(problem: DataPlacement, source: Ints, target: Ints, volume: NDArray[Any]) -> tuple[tuple[Cell, ...], ...]:
    """Rows (from, to, total volume, count), largest first."""
    regions = len(problem.regions)
    pair = source * regions + target
    total = np.bincount(pair, weights=volume, minlength=regions * regions)
    count = np.bincount(pair, minlength=regions * regions)
    kept = np.flatnonzero(count)
    order = kept[np.argsort(-total[kept], kind="stable")]
    return tuple(
        (problem.regions.labels[at // regions], problem.regions.labels[at % regions], float(total[at]), int(count[at]))
        for at in order.tolist()
    )


def _unserved(problem: DataPlacement, plan: Plan) -> tuple[Section, ...]:
    """Sections on work that a data-placement plan refuses, by tier."""
    p = problem
    if not p.may_refuse:
        return ()
    served = np.bincount(plan.run_workload, weights=plan.run_share, minlength=len(p.workloads))
    left = (SHARE - served) / SHARE
    rows: list[tuple[Cell, ...]] = []
    for position, tier in enumerate(p.tiers):
        of_tier: Bools = (p.workloads.tier == position) & (left > 0)
        gpus = float((left * p.demand_mgpu)[of_tier].sum()) / MILLI
        rows.append((str(tier), int(of_tier.sum()), gpus))
    return (
        Section("Work left out", (Head("tier"), Head("workloads", Form.COUNT), Head("GPUs", Form.GPUS)), tuple(rows)),
    )
