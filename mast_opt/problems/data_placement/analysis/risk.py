"""Risk analysis of a data-placement plan: which data has a single copy, how much work depends on each region."""

from __future__ import annotations

import numpy as np

from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.problems.data_placement.analysis.current_state import complete
from mast_opt.problems.data_placement.analysis.losses import loss_of, lost_datasets, readers_of
from mast_opt.problems.data_placement.plan import Plan, today
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.kind.analysis_hooks import RegionRisk, Risk, SingleCopy


def risk(problem: DataPlacement, plan: Plan | None) -> Risk:
    """Find what each region holds alone, under a plan or (without one) today."""
    p = problem
    place = p.datasets.stored if plan is None else plan.place
    runs = today(p) if plan is None else plan
    fewest = np.full(len(p.workloads), np.iinfo(np.int64).max)
    np.minimum.at(fewest, p.options.workload, p.options.mgpu)
    regions = tuple(_region(p, place, runs, fewest, r) for r in range(len(p.regions)))
    return Risk(
        of="today" if plan is None else "plan",
        complete=plan is not None or complete(p),
        gpus=sum(fewest.tolist()) / MILLI,
        single_copies=_single_copies(p, place, fewest),
        regions=regions,
    )


def _single_copies(problem: DataPlacement, place: Bools, fewest: Ints) -> tuple[SingleCopy, ...]:
    """Those whose readers need most GPUs first."""
    p = problem
    order = np.argsort(p.reads.dataset, kind="stable")
    readers = p.reads.workload[order]
    start = np.searchsorted(p.reads.dataset[order], np.arange(len(p.datasets) + 1))
    found = []
    for i in np.flatnonzero(np.equal(place.sum(axis=1), 1)).tolist():
        work = readers[start[i] : start[i + 1]].tolist()
        found.append(
            SingleCopy(
                dataset=p.datasets.labels[i],
                region=p.regions.labels[int(place[i].argmax())],
                tb=int(p.datasets.size_mb[i]) / MB_PER_TB,
                work=tuple(p.workloads.labels[w] for w in work),
                gpus=sum(int(fewest[w]) for w in work) / MILLI,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.gpus, -one.tb)))


def _region(problem: DataPlacement, place: Bools, runs: Plan | None, fewest: Ints, r: int) -> RegionRisk:
    p = problem
    away = np.equal(np.arange(len(p.regions)), r)
    lost = lost_datasets(p, p.closed | away, place, away)
    readers = readers_of(p, lost)
    running: tuple[str, ...] | None = None
    gpus: float | None = None
    if runs is not None:
        here = np.flatnonzero((runs.run_region == r) & (runs.run_share > 0))
        running = tuple(p.workloads.labels[w] for w in np.unique(runs.run_workload[here]))
        needed = np.zeros((len(p.workloads), len(p.gpu_types) + 1), np.int64)
        needed[p.options.workload, p.options.gpu_type] = p.options.mgpu
        each = needed[runs.run_workload[here], runs.run_type[here]].tolist()
        total: int = sum(need * share for need, share in zip(each, runs.run_share[here].tolist()))
        gpus = total / SHARE / MILLI
    return RegionRisk(
        region=p.regions.labels[r],
        running=running,
        running_gpus=gpus,
        loss=loss_of(p, lost),
        lost_gpus=sum(fewest[readers].tolist()) / MILLI,
    )
