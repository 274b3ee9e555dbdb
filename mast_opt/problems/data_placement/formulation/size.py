"""Size of the data-placement MIP before it is built, counted by workload instead of by read."""

import numpy as np

from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.mip.size import Size


def size(problem: DataPlacement) -> Size:
    """Exact but for quotas, and for links on which some reads or copies do not come: all of those are counted."""
    p, links = problem, problem.links
    datasets, workloads, regions, tiers = len(p.datasets), len(p.workloads), len(p.regions), len(p.tiers)
    place = datasets * regions
    runs = np.zeros((workloads, regions), np.int64)
    """[W, R] types on which the workload may run there."""
    np.add.at(runs, p.options.workload, p.option_regions)
    run, local = int(runs.sum()), int((runs > 0)[p.reads.workload].sum())
    local_runs = int(runs.sum(axis=1)[p.reads.workload].sum())
    remote, copies = (local if p.remote_reads else 0), 0
    network: dict[str, tuple[int, int]] = {}
    if links is not None:
        into = np.bincount(links.target, minlength=regions)
        remote = int(((runs > 0)[p.reads.workload] @ into).sum()) if p.remote_reads else 0
        copies = int((p.datasets.stored[:, links.source] & ~p.datasets.stored[:, links.target]).sum())
        network = {
            "sourced": (place, remote + place) if p.remote_reads else (0, 0),
            "copied": (place, copies + place),
            "link": (len(links.source), remote + copies),
        }
    amounts = int(np.count_nonzero(p.regions.supply_mgpu))
    on_gpus = int(p.option_regions[p.options.mgpu > 0].sum())
    stays = len(np.unique(p.current_runs.workload * regions + p.current_runs.region))
    typed = p.current_runs.gpu_type < len(p.gpu_types)
    pairs = p.current_runs.workload * len(p.gpu_types) + p.current_runs.gpu_type
    keeps = len(np.unique(pairs[typed]))
    return Size.of(
        {
            "place": place,
            "run": run,
            "unserved": workloads if p.may_refuse else 0,
            "remote": remote,
            "copy": copies,
            "demand, overload": 2 * amounts * tiers,
            "peak": len(p.gpu_types) * tiers,
            "idle": amounts,
            "left": stays,
            "retyped": keeps,
        },
        {
            "served": (workloads, run + (workloads if p.may_refuse else 0)),
            "copies": (datasets, place),
            "local": (local, local + local_runs + remote),
            "storage": (regions, place + (run if p.workloads.output_mb.any() else 0)),
            "cpu": (regions, run),
            "quota": (len(p.cpu_quotas), run if len(p.cpu_quotas) else 0),
            "ingress": (regions, place if p.regions.ingress_limited.any() else 0),
            **network,
            "tally, gpu, worst": (3 * amounts * tiers, on_gpus + 6 * amounts * tiers),
            "under": (amounts, 2 * amounts),
            "stays": (stays, stays * (1 + len(p.gpu_types))),
            "keeps": (keeps, keeps * (1 + regions)),
            "limit": (len(p.limits), len(p.limits) * max(place + stays, remote + copies, workloads)),
        },
    )
