"""Work that a plan of data is made for: forecasts by namespace, work that recurs, and jobs that wait for data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mast_opt.live.loop.demand import DAY_MS, DemandClass
from mast_opt.live.loop.job_states import WAITING
from mast_opt.live.loop.policy import View
from mast_opt.live.slow_paths.forecasts import Forecast, weighted_mean


@dataclass(frozen=True)
class PlannedWork:
    """Work that reads datasets, all of them wherever it runs."""

    label: str
    tier: int
    mgpu: int
    gpu_types: tuple[str, ...]
    """Empty for any."""
    datasets: tuple[str, ...]
    largest_mgpu: int
    """Request of the largest job of it; a region with less is none for it."""
    splittable: bool
    """Whether parts may run in several regions: it is more than one job."""


def planned_work(view: View, forecast: Forecast = weighted_mean) -> tuple[PlannedWork, ...]:
    """All of it, in an order that does not depend on that of jobs.

    A namespace is one workload for each tier: new jobs read any of its datasets that were read in the last days, so it
    runs where all of these are. Work that recurs, and jobs without a namespace, have workloads of their own with just
    what they read. Jobs that no region has all data for count once more, with the GPUs that they ask for or, if that is
    more, their GPU-days of waiting: the longer they wait, the more a plan gives up for them.
    """
    return (*_forecasts(view, forecast), *_wishes(view))


def _forecasts(view: View, forecast: Forecast) -> Iterator[PlannedWork]:
    groups: dict[tuple[str, str, int, tuple[str, ...], tuple[str, ...]], list[DemandClass]] = {}
    for of in view.demand.classes():
        recurs = of.workload and view.demand.jobs(of) > 1
        own = recurs or not of.namespace
        key = of.namespace, of.workload if recurs else "", of.tier, of.gpu_types, of.datasets if own else ()
        groups.setdefault(key, []).append(of)
    for number, ((namespace, workload, tier, gpu_types, _), classes) in enumerate(sorted(groups.items())):
        mgpu = sum(forecast(view, of) for of in classes)
        read = {name for of in classes for name in view.demand.read(of, view.now_ms)}
        if mgpu and read:
            label = f"{number}: {workload or namespace or 'jobs'} of tier {tier}"
            largest = max(view.demand.largest_mgpu(of) for of in classes)
            yield PlannedWork(label, tier, mgpu, gpu_types, tuple(sorted(read)), largest, splittable=True)


def _wishes(view: View) -> Iterator[PlannedWork]:
    wishes: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[tuple[int, int]]] = {}
    for record in view.jobs.values():
        spec = record.spec
        if record.state in WAITING and record.asked_mgpu and spec.datasets and not view.admissible(record):
            key = spec.tier, tuple(sorted(spec.gpu_types or ())), tuple(sorted(spec.datasets))
            waited = record.asked_mgpu * (view.now_ms - record.since_ms) // DAY_MS
            wishes.setdefault(key, []).append((record.asked_mgpu, max(record.asked_mgpu, waited)))
    for number, ((tier, gpu_types, datasets), jobs) in enumerate(sorted(wishes.items())):
        largest, total = max(asked for asked, _ in jobs), sum(weight for _, weight in jobs)
        yield PlannedWork(f"wish {number}", tier, total, gpu_types, datasets, largest, splittable=False)
