"""Charts of a data-placement plan: GPU demand over supply, fill of storage and CPU, traffic between regions.

Every figure comes from the plan, none from a solver.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.problems.data_placement.analysis.current_state import complete
from mast_opt.problems.data_placement.plan import (
    Plan,
    filled_mb,
    lacking_gpus,
    read_positions,
    shown_demand,
    today,
    used_mcores,
)
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.data_placement.tables.problem_tables import in_full
from mast_opt.problems.data_placement.verification.measures import totals
from mast_opt.problems.kind.migration_plan import COPIES_TO_MAKE, OUTSIDE
from mast_opt.problems.kind.presentation import Bars, Chart, Flows, HeatMap, Scale, Values, grid


def charts(problem: DataPlacement, plan: Plan) -> tuple[Chart, ...]:
    """Charts in the order of reading: GPUs by region, GPUs by tier, storage, CPU, copies, remote reads."""
    p, plan = problem, in_full(problem, plan)
    before = today(p) if complete(p) else None
    asked, asked_today = shown_demand(p, plan), None if before is None else shown_demand(p, before)
    pictures: list[Chart] = []
    if p.gpu_types:
        pictures += [_heat(p, asked_today, asked, int((lacking_gpus(p, plan) > 0).sum())), _tiers(p, asked)]
    pictures += [_storage(p, before, plan), _cpu(p, before, plan), _copies(p, plan), _reads(p, plan)]
    return tuple(picture for picture in pictures if not isinstance(picture, Flows) or picture.flows)


def _heat(problem: DataPlacement, before: NDArray[Any] | None, after: NDArray[Any], over: int) -> HeatMap:
    """Heat map of GPU demand over supply by region and GPU type."""
    p = problem
    return HeatMap(
        title="GPU demand over supply",
        row_name="region",
        column_name="GPU type",
        rows=p.regions.labels,
        columns=p.gpu_types,
        before=None if before is None else _over_supply(p, before),
        after=_over_supply(p, after),
        note=f"Work of all tiers. Demand exceeds supply in {over} of {int((p.regions.supply_mgpu > 0).sum())} "
        "region/GPU-type pairs.",
    )


def _over_supply(problem: DataPlacement, asked: NDArray[Any]) -> tuple[Values, ...]:
    """GPU demand over supply by region and GPU type; None without a supply."""
    supply = problem.regions.supply_mgpu.tolist()
    return grid(
        [
            [need / have if have else None for need, have in zip(needs, haves, strict=True)]
            for needs, haves in zip(asked[:, :, -1].tolist(), supply, strict=True)
        ]
    )


def _tiers(problem: DataPlacement, asked: NDArray[Any]) -> Bars:
    """Supply of each type next to what the most important tiers ask of it, cumulatively."""
    p = problem
    series = [("supply", tuple((p.regions.supply_mgpu.sum(axis=0) / MILLI).tolist()))]
    total = asked.sum(axis=0)
    for at, tier in enumerate(p.tiers):
        name = f"demand of tier {tier}" if at == 0 else f"demand of tiers up to {tier}"
        series.append((name, tuple(need / MILLI for need in total[:, at].tolist())))
    return Bars("GPU demand and supply by tier", "GPU type", p.gpu_types, tuple(series), "GPUs")


def _storage(problem: DataPlacement, before: Plan | None, after: Plan) -> Bars:
    """Bars of storage in use by region, before and after a data-placement plan."""
    p, usable = problem, problem.usable_storage_mb.tolist()
    first = p.datasets.size_mb @ p.datasets.stored if before is None else filled_mb(p, before)
    filled = ("before", first), ("after", filled_mb(p, after))
    series = tuple((name, _shares(mb.tolist(), usable)) for name, mb in filled)
    note = "Replicas and outputs, as a share of the storage less its headroom"
    note += "; before: replicas only." if before is None else "."
    return Bars("Storage in use", "region", p.regions.labels, series, scale=Scale.FILL, note=note)


def _cpu(problem: DataPlacement, before: Plan | None, after: Plan) -> Bars:
    """Bars of cores in use by region, before and after a data-placement plan."""
    p = problem
    named = [("before", before), ("after", after)]
    series = tuple(
        (name, _shares(used_mcores(p, plan).tolist(), p.regions.cpu_mcores.tolist()))
        for name, plan in named
        if plan is not None
    )
    return Bars("CPU cores in use", "region", p.regions.labels, series, scale=Scale.FILL)


def _shares(amounts: list[float], of: list[int]) -> Values:
    """Amounts of regions as shares of what they have; None of nothing."""
    return tuple(part / whole if whole else None for part, whole in zip(amounts, of, strict=True))


def _copies(problem: DataPlacement, plan: Plan) -> Flows:
    """Every new replica: from the regions that the plan copies it from, or from outside if it is stored nowhere."""
    p = problem
    regions = len(p.regions)
    pair = plan.copy_source * regions + plan.copy_target
    volume = np.array(totals(pair, p.datasets.size_mb[plan.copy_dataset], plan.copy_share, regions * regions), object)
    flows = [
        (p.regions.labels[at // regions], p.regions.labels[at % regions], volume[at] / SHARE / MB_PER_TB)
        for at in np.flatnonzero(volume > 0).tolist()
    ]
    uploads = plan.place & ~p.datasets.stored & ~p.datasets.stored.any(axis=1, keepdims=True)
    uploaded = (p.datasets.size_mb @ uploads).tolist()
    flows += [(OUTSIDE, p.regions.labels[r], mb / MB_PER_TB) for r, mb in enumerate(uploaded) if mb]
    total = sum(amount for *_, amount in flows)
    note = f"{total:,.1f} TB; {OUTSIDE} stands for data that no region holds today."
    return Flows(COPIES_TO_MAKE, "from", "to", tuple(flows), "TB", note if uploads.any() else f"{total:,.1f} TB.")


def _reads(problem: DataPlacement, plan: Plan) -> Flows:
    """Volumes that work reads from other regions every day; what it does not read at all counts for nothing."""
    p = problem
    regions = len(p.regions)
    read = read_positions(p, plan.remote_workload, plan.remote_dataset)
    real = np.flatnonzero(read >= 0)
    pair = plan.remote_source[real] * regions + plan.remote_target[real]
    daily = p.reads.mb_per_day[read[real]]
    volume = np.array(totals(pair, daily, plan.remote_share[real], regions * regions), object)
    flows = tuple(
        (p.regions.labels[at // regions], p.regions.labels[at % regions], volume[at] / SHARE / MB_PER_TB)
        for at in np.flatnonzero(volume > 0).tolist()
    )
    note = f"{sum(amount for *_, amount in flows):,.2f} TB a day."
    return Flows("Reads that stay remote", "data in", "read from", flows, "TB a day", note)
