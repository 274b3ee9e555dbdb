"""Diagnosis in the live fleet (job placement): why a job runs or does not run in a cluster."""

import numpy as np

from mast_opt.core.wording import counted
from mast_opt.problems.job_placement.analysis.rejection_reasons import Obstacle, obstacle_when_empty
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.best_bid import best_bid
from mast_opt.problems.job_placement.engine.feasibility import NOWHERE, Request, level_in
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.job_placement.engine.server_selection import TIGHT
from mast_opt.problems.job_placement.live_fleet.answers import ClusterReport
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.types import Job
from mast_opt.problems.job_placement.units import CPU, GPU, LEVELS, MEMORY, WHOLE, Bools, Ints

Coded = tuple[str, str]
"""A reason in words, and its code."""
LIMITS = SearchLimits(nodes=200)
"""Limits of the search for victims in each cluster."""


def explain(books: FleetInventory, job: Job, request: Request) -> tuple[ClusterReport, ...]:
    """Explain, for each cluster, the first constraint that rules a job out, or what admitting it there takes."""
    return tuple(_report(books, job, request, cluster) for cluster in range(len(books.cluster_names)))


def _report(books: FleetInventory, job: Job, request: Request, cluster: int) -> ClusterReport:
    """Report of one cluster: whether a job fits there, or which constraint rules it out first."""
    name = books.cluster_names[cluster]
    groups = np.flatnonzero((books.layout.group_cluster == cluster) & (request.mgpu[books.layout.group_type] >= 0))
    region = int(books.layout.group_region[books.layout.group_cluster == cluster][0])
    if not request.open[region]:
        return ClusterReport(name, False, *_missing_data(books, job, books.region_names[region]))
    here = books.layout.group_cluster[books.layout.group] == cluster
    obstacle = _when_empty(books, request, here)
    if obstacle is not None:
        return ClusterReport(name, False, obstacle.value, obstacle.name.lower().replace("_", "-"))
    in_service = here & ~books.out_of_service()
    if _when_empty(books, request, in_service) is not None:
        words = "it would hold the job, but not without its servers that are out of service"
        return ClusterReport(name, False, words, "out-of-service")
    level = min(int(level_in(books.state, g, request)) for g in groups.tolist())
    if level < NOWHERE:
        return ClusterReport(name, True, f"it fits as it is, within one {LEVELS[level]}", "fits")
    only: Bools = np.isin(np.arange(len(books.everywhere)), groups)
    offer = best_bid(books.state, request, only, TIGHT, LIMITS)
    if offer is not None:
        count = len(offer.victims)
        words = f"it fits if {count} running job{'s are' if count > 1 else ' is'} stopped"
        return ClusterReport(name, True, words, "victims")
    return ClusterReport(name, False, *_shortage(books, request, groups))


def _when_empty(books: FleetInventory, request: Request, servers: Bools) -> Obstacle | None:
    """Obstacle to a job on these servers if they were empty; None if it would fit."""
    at = np.flatnonzero(servers)
    kind = books.layout.group_type[books.layout.group[at]]
    need = (request.mgpu, request.cpu, request.memory)
    return obstacle_when_empty(books.supply[at], kind, books.layout.rack[at], need, request.tasks, request.within)


def _missing_data(books: FleetInventory, job: Job, region: str) -> Coded:
    """Words and code for the data that a job lacks in a region."""
    outside = [dataset for dataset in job.datasets if region not in books.residency.get(dataset, (region,))]
    if outside:
        return f"{region} is outside the residency of {', '.join(outside)}", "residency"
    if books.remote_mb_price is not None:
        return f"no region holds {', '.join(name for name in job.datasets if not books.replicas.get(name))}", "lost"
    lacks = [dataset for dataset in job.datasets if region not in books.replicas.get(dataset, ())]
    return f"{region} does not hold {', '.join(lacks)}", "data"


def _shortage(books: FleetInventory, request: Request, groups: Ints) -> Coded:
    """Words and code for what a cluster lacks for a job, counting what could be had by stopping less important jobs."""
    state, threshold = books.state, request.tier + 1
    servers = np.isin(books.layout.group, groups) & ~books.out_of_service()
    mgpu = int(request.mgpu[books.layout.group_type[books.layout.group[servers]]].min())
    for what, code, free, held, need, per in (
        (("GPU",), "gpus", col.A_FREE, col.C_MGPU, mgpu, WHOLE),
        (("core",), "cpu", col.A_CPU, col.C_CPU, request.cpu, 1000),
        (("GiB of memory",) * 2, "memory", col.A_MEMORY, col.C_MEMORY, request.memory, 1024),
    ):
        room = np.maximum(state.room[free, request.tier], 0) + state.reclaim[held, threshold]
        have, asked = int(room[servers].sum()), need * request.tasks
        if have < asked:
            return f"{counted(asked / per, *what)} asked for; {have / per:,g} free or held by work that may stop", code
    words = "enough is free or may be stopped, but not in pieces of the right size within one GPU type and level"
    return words, "fragmented"


def why_not(books: FleetInventory, job: Job, request: Request) -> Coded:
    """One sentence for a job that fits nowhere, and its code."""
    layout = books.layout
    asked = request.mgpu[layout.group_type] * request.tasks
    usable = (asked >= 0) & request.open[layout.group_region]
    large_enough = usable & (books.group_mgpu >= asked)
    if large_enough.any():
        largest = books.group_largest
        holds = largest[:, GPU] >= request.mgpu[layout.group_type]
        holds &= (largest[:, CPU] >= request.cpu) & (largest[:, MEMORY] >= request.memory)
        if not (large_enough & holds).any():
            return "no server holds one of its tasks, not even an empty one", "task"
        return "no cluster has room for it, not even if all less important work were stopped; see explain", "in-use"
    accepted = [books.type_names[k] for k in np.flatnonzero(request.mgpu >= 0)]
    if not accepted:
        wanted = ", ".join(job.gpu_types or ())
        return (
            f"no server has a GPU type that it accepts ({wanted}); there are {', '.join(books.type_names)}",
            "gpu-type",
        )
    if not request.open.any() and any(dataset in books.residency for dataset in job.datasets):
        return (
            f"no region holds all of its data ({', '.join(job.datasets)}) within the residency of that data",
            "residency",
        )
    lost = [dataset for dataset in job.datasets if not books.replicas.get(dataset)]
    if lost and books.remote_mb_price is not None:
        return f"no region holds {', '.join(lost)}", "lost"
    if not request.open.any():
        return f"no region holds all of its data ({', '.join(job.datasets)})", "data"
    if not usable.any():
        return f"no region that holds its data has a GPU type that it accepts ({', '.join(accepted)})", "data-and-type"
    have, asked = books.group_mgpu[usable], asked[usable]
    at = int(have.argmax())
    kind = "one type"
    if (asked != asked[at]).any():
        kind = f"type {books.type_names[layout.group_type[usable][at]]}"
    return (
        f"it needs {int(asked[at]) / WHOLE:g} GPUs of {kind} in one cluster; "
        f"the largest that it may use has {int(have[at]) / WHOLE:g}"
    ), "size"
