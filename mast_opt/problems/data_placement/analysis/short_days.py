"""Overload that may be due to few days: data that cannot reach idle GPUs in the time that copies may take."""

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.units import MILLI
from mast_opt.core.wording import NOTICED, listed
from mast_opt.problems.data_placement.plan import Plan, gpu_demand, lacking_gpus
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.wording import days


def short_days(problem: DataPlacement, plan: Plan) -> str:
    """A sentence on regions with idle GPUs which the data of overloaded work cannot reach in time; else empty."""
    away = np.flatnonzero(_unreached(problem, plan)).tolist()
    if not away:
        return ""
    names = listed([problem.regions.labels[r] for r in away])
    return (
        f"Within {days(problem.days)}, data of overloaded work cannot be copied to {names}, where GPUs are idle: "
        "'mast-opt whatif' with more 'days' says what those would bring."
    )


def _unreached(p: DataPlacement, plan: Plan) -> Bools:
    """Mask [R] of the regions that could take some overloaded work but for the time that its data needs."""
    found = np.zeros(len(p.regions), np.bool_)
    lacking, supply = lacking_gpus(p, plan), p.regions.supply_mgpu
    if not lacking.any():
        return found
    idle = (supply - gpu_demand(p, plan)[:, :, -1]) / MILLI >= NOTICED
    room = _room(p, plan)
    on_gpus = np.flatnonzero(plan.run_type < len(p.gpu_types))
    over = on_gpus[lacking[plan.run_region[on_gpus], plan.run_type[on_gpus]] > 0]
    reads, options = (_by_workload(one, len(p.workloads)) for one in (p.reads.workload, p.options.workload))
    for w in np.unique(plan.run_workload[over]).tolist():
        kinds, read = p.options.gpu_type[options[w]], p.reads.dataset[reads[w]]
        new = ~plan.place[read]
        size = p.datasets.size_mb[read] @ new
        fits = (size > room) & (size <= p.usable_storage_mb) & ~np.any(p.closed[read] & new, axis=0)
        found |= fits & p.ruled[w] & idle[:, kinds[kinds < len(p.gpu_types)]].any(axis=1)
    return found


def _by_workload(workload: Ints, count: int) -> list[Ints]:
    """Positions of the rows of each workload."""
    return np.split(np.argsort(workload, kind="stable"), np.cumsum(np.bincount(workload, minlength=count))[:-1])


def _room(p: DataPlacement, plan: Plan) -> FloatArray:
    """[R] MB that may still be copied into each region within the days."""
    arriving = (p.datasets.size_mb @ (plan.place & ~p.datasets.stored)).astype(np.float64)
    room = np.where(p.regions.ingress_limited, p.ingress_mb - arriving, np.inf)
    if p.links is not None:
        carried = p.datasets.size_mb[plan.copy_dataset] * plan.copy_share / SHARE
        most = np.bincount(p.links.target, p.links.capacity_mb_per_day * float(p.days), len(p.regions))
        room = np.minimum(room, most - np.bincount(plan.copy_target, carried, len(p.regions)))
    return room
