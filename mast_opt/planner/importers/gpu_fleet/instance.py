"""A job-placement instance from real machines, real pods and real jobs.

Real: the machines with their GPU models, GPUs, cores and memory (Alibaba's node list of 2023, or that of 2026); the
pods that run and wait, with the share of a GPU, cores, memory, class of service and acceptable models of each (Alibaba
2023); the GPUs of each gang that waits, its virtual cluster and when it was submitted (Microsoft Philly).
Ours: which cluster and rack a machine is in, which pods run where, the work at risk, tiers and needs of gangs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.gpu_fleet.running_load import Load, running_pods
from mast_opt.planner.importers.traces.alibaba import GpuNodes, GpuPods, read_nodes, read_pods
from mast_opt.planner.importers.traces.philly import Jobs, read_jobs
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, assemble, labels
from mast_opt.problems.job_placement.units import GPU, NO_GPU, WHOLE, Ints

NODES_A_RACK = 8
NODES_A_CLUSTER = 8
"""A model is in at most one cluster for every so many of its nodes."""
GANG_TIERS, GANG_TIER_SHARE = (0, 1, 2), (0.1, 0.4, 0.5)
HOURS_AT_RISK = 4.0
"""Best-effort pods lose the work of a time drawn evenly up to this."""
REPLAYS = 4
"""Number of times that the pod list may be gone through to fill the fleet."""
WIDEST = 8
"""GPUs of the largest task of a gang."""


@dataclass(frozen=True)
class Settings:
    """The knobs of the importer."""

    name: str = setting("gpu-fleet", "name of the instance")
    nodes: int = setting(0, "machines to keep, drawn at random; 0 keeps all")
    regions: int = setting(4, "regions to spread them over")
    clusters: int = setting(3, "clusters in each region")
    fill: int = setting(95, "percent of the GPUs that running pods hold")
    pods: int = setting(1000, "pods that wait")
    gangs: int = setting(200, "Philly jobs of several GPUs that wait")

    def __post_init__(self) -> None:
        least = {"nodes": 0, "regions": 1, "clusters": 1, "fill": 0, "pods": 0, "gangs": 0}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise UsageError(f"setting {name} is {getattr(self, name)}; expected at least {smallest}")
        if self.fill > 100:
            raise UsageError(f"setting fill is {self.fill}; expected at most 100 percent")
        if self.pods + self.gangs < 1:
            raise UsageError("pods and gangs are both 0; an instance needs at least one job that waits")


def build(paths: Sequence[Path], settings: Settings, rng: np.random.Generator) -> JobPlacement:
    """The instance from a node list, an OpenB folder and a Philly job list. Raises SourceError."""
    faults = Faults()
    nodes, pods, jobs = read_nodes(paths[0], faults), read_pods(paths[1], faults), read_jobs(paths[2], faults)
    if nodes is None or pods is None or jobs is None or faults:
        raise SourceError(faults.found)
    if 0 < settings.nodes < len(nodes.gpus):
        nodes = nodes.part(np.sort(rng.choice(len(nodes.gpus), settings.nodes, replace=False)))
    fleet = _fleet(rng, nodes, settings)
    order = rng.permutation(len(pods))
    waiting, others = order[: settings.pods], order[settings.pods :]
    load = running_pods(rng, fleet, pods.part(np.tile(others, REPLAYS)), settings.fill, HOURS_AT_RISK)
    pods = pods.part(waiting)
    gangs = _gangs(rng, jobs, settings.gangs)
    return _assemble(rng, settings, nodes, fleet, load, pods, gangs)


def _fleet(rng: np.random.Generator, nodes: GpuNodes, settings: Settings) -> GeneratedFleet:
    """The imported fleet: the nodes of a model are in a random few of the clusters, in parts drawn by Dirichlet(2)."""
    regions = labels("region", settings.regions)
    names = tuple(f"{region}-c{n + 1}" for region in regions for n in range(settings.clusters))
    cluster = np.empty(len(nodes.gpus), np.int64)
    model = np.array(nodes.model)
    for kind in sorted(set(nodes.model)):
        mine = np.flatnonzero(model == kind)
        number = min(len(names), max(1, len(mine) // NODES_A_CLUSTER))
        at = rng.choice(len(names), size=number, replace=False)
        cluster[mine] = rng.choice(at, size=len(mine), p=rng.dirichlet(np.full(number, 2.0)))
    used = np.unique(cluster)
    cluster = np.searchsorted(used, cluster)
    names = tuple(names[c] for c in used.tolist())
    kinds = tuple(sorted({kind or NO_GPU for kind in nodes.model}))
    kind_of = np.array([kinds.index(kind or NO_GPU) for kind in nodes.model], np.int64)
    order = np.lexsort((kind_of, cluster))
    place = np.empty(len(order), np.int64)
    start = np.searchsorted(cluster[order], np.arange(len(names)))
    place[order] = np.arange(len(order)) - start[cluster[order]]
    pairs, rack = np.unique(np.stack([cluster, place // NODES_A_RACK], axis=1), axis=0, return_inverse=True)
    return GeneratedFleet(
        regions=regions,
        gpu_types=kinds,
        clusters=Clusters(names, used // settings.clusters),
        racks=Racks(tuple(f"{names[c]}-b{b + 1}" for c, b in pairs.tolist()), pairs[:, 0]),
        servers=Servers(
            labels("node", len(nodes.gpus)),
            rack.reshape(-1),
            kind_of,
            np.stack([nodes.gpus * WHOLE, nodes.cpu_mcores, nodes.memory_mib], axis=1),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Gangs:
    tasks: Ints
    mgpu: Ints
    tier: Ints
    tenant: tuple[str, ...]


def _gangs(rng: np.random.Generator, jobs: Jobs, count: int) -> _Gangs:
    """Imported jobs of several GPUs drawn from the list, split into tasks of 8, 4, 2 or 1 GPUs, the widest that divide
    them.
    """
    several = np.flatnonzero(jobs.gpus > 1)
    if count > 0 and not len(several):
        raise UsageError("no job of the Philly list has several GPUs; set gangs to 0")
    at = np.sort(rng.choice(several, size=count)) if count else several[:0]
    gpus = jobs.gpus[at]
    width = np.gcd(gpus, WIDEST)
    tier = rng.choice(GANG_TIERS, size=count, p=GANG_TIER_SHARE)
    return _Gangs(gpus // width, width * WHOLE, tier, tuple(jobs.cluster[j] for j in at.tolist()))


def _assemble(
    rng: np.random.Generator,
    settings: Settings,
    nodes: GpuNodes,
    fleet: GeneratedFleet,
    load: Load,
    pods: GpuPods,
    gangs: _Gangs,
) -> JobPlacement:
    """The job-placement instance of the imported machines, pods and gangs, put together from its parts."""
    whole = pods.mgpu >= WHOLE
    per_gpu = [
        int(np.median(need[whole] * WHOLE // pods.mgpu[whole])) if whole.any() else fallback
        for need, fallback in ((pods.cpu_mcores, 8_000), (pods.memory_mib, 32_768))
    ]
    count, more = len(pods), len(gangs.tasks)
    mgpu = np.concatenate([pods.mgpu, gangs.mgpu])
    tasks = np.concatenate([np.ones(count, np.int64), gangs.tasks])
    cores = np.concatenate([pods.cpu_mcores, gangs.mgpu // WHOLE * per_gpu[0]])
    worth = np.where(mgpu > 0, mgpu, np.maximum(cores * WHOLE // per_gpu[0], 1))
    waiting = Pending(
        tier=np.concatenate([pods.tier, gangs.tier]),
        tasks=tasks,
        mgpu=mgpu,
        mcores=cores,
        mib=np.concatenate([pods.memory_mib, gangs.mgpu // WHOLE * per_gpu[1]]),
        value_milli=tasks * worth,
        options=_options(fleet, pods, more),
    )
    tenants = (*sorted(set(gangs.tenant)), "")
    problem = assemble(settings.name, fleet, load.running, waiting)
    return replace(
        problem,
        provenance=_provenance(settings, nodes, fleet, count, more),
        jobs=replace(
            problem.jobs,
            labels=(*(f"pod-{n + 1}" for n in range(count)), *(f"gang-{n + 1}" for n in range(more))),
            tenant=np.array([*[len(tenants) - 1] * count, *(tenants.index(t) for t in gangs.tenant)], np.int64),
            submitted_ms=rng.permutation(count + more) * 1000,
        ),
        tenants=tenants,
        running=replace(problem.running, tenant=np.full(len(load.running.tier), len(tenants) - 1)),
        allocations=replace(problem.allocations, gpu_index=load.index, indexed=load.indexed),
    )


def _options(fleet: GeneratedFleet, pods: GpuPods, gangs: int) -> tuple[Ints, Ints]:
    """(job, type) pairs; a pod that names only models which no machine has takes any."""
    types = len(fleet.gpu_types)
    accepts = np.ones((len(pods) + gangs, types), np.bool_)
    for n, models in enumerate(pods.models):
        named = np.array([kind in models for kind in fleet.gpu_types])
        if named.any():
            accepts[n] = named
    job, kind = np.nonzero(accepts)
    return job, kind


def _provenance(settings: Settings, nodes: GpuNodes, fleet: GeneratedFleet, pods: int, gangs: int) -> str:
    """Provenance of the imported fleet in words: sources, and what is drawn."""
    gpus = int(fleet.servers.supply[:, GPU].sum()) // WHOLE
    return (
        f"Machines: {len(nodes.gpus)} nodes with {gpus} GPUs of {nodes.source}. Running and waiting pods ({pods} wait) "
        "with their share of a GPU, cores, memory, class of service and acceptable models: Alibaba "
        f"cluster-trace-gpu-v2023 (OpenB), list gpuspec33. Waiting gangs ({gangs}) by GPUs and virtual cluster: "
        "Microsoft Philly trace. Drawn with a seed: region, cluster and rack of every node, which pods run and where "
        f"(the list over and over until {settings.fill}% of the GPUs are held), the work at risk of best-effort pods "
        "(the only ones that may be stopped), tiers of gangs and the order of submission. Cores and memory of gangs: "
        "the median of whole-GPU pods for each GPU. CPU-only pods are worth the GPUs that come with their cores."
    )


GPU_FLEET = Importer(
    kind="job-placement",
    help="a real GPU fleet with real pods on it, and pods and gangs that wait",
    inputs=(
        Input(
            "nodes",
            "Alibaba's node list of 2023 (openb_node_list_all_node.csv) or 2026 (node_info_df.csv), or its folder",
        ),
        Input("openb", "folder with Alibaba's cluster-trace-gpu-v2023 pod lists"),
        Input("philly", "Philly job list: philly.csv, plain or gzipped, or its folder"),
    ),
    settings_type=Settings,
    build=build,
)
