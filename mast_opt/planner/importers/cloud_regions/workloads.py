"""Workloads from a job list and a pod list: recurring work with its GPUs, CPU, tier and acceptable GPU models."""

from dataclasses import dataclass

import numpy as np

from mast_opt.planner.importers.traces.alibaba import WHOLE_GPU, GpuNodes, GpuPods, OpenbTrace
from mast_opt.planner.importers.traces.philly import JobClass
from mast_opt.problems.data_placement.generate.distributions import shared_out
from mast_opt.problems.kind.problem_data import Bools, Ints

SERVICES = "services"
"""The group of the CPU-only work."""
LARGEST_NODE = 8
"""A gang may span nodes: a model will do if one node takes the gang or this many GPUs."""


@dataclass(frozen=True, eq=False)
class CloudWork:
    """W workloads in groups: the virtual clusters, and one more for CPU-only work."""

    groups: tuple[str, ...]
    names: tuple[str, ...]
    group: Ints
    """Group of each workload, [W]."""
    tier: Ints
    """[W] as a number, 0 first."""
    gpus: Ints
    """[W] 0 for CPU-only work."""
    cpu_mcores: Ints
    """Millicores of each workload, [W]."""
    accepts: Bools
    """[W, K] GPU models that will do, in the order of ``models``; none for CPU-only work."""
    replay: float
    """Number of times that the job list runs at once, to fill the fleet."""


def recurring_work(
    rng: np.random.Generator,
    classes: tuple[JobClass, ...],
    fleet: OpenbTrace,
    models: tuple[str, ...],
    demand: int,
    part: int,
) -> CloudWork:
    """The imported job classes replayed until they hold ``demand`` GPUs, in workloads of at most ``part`` GPUs (or one
    gang), and the CPU-only pods in workloads of no more cores than the largest of these.
    """
    replay = _replay(classes, demand)
    jobs, gangs, names = [], [], []
    for job in classes:
        number = _gangs(job, replay)
        pieces = min(number, -(-number * job.gpus // max(part, job.gpus)))
        jobs += [job] * pieces
        gangs += shared_out(number, np.ones(pieces)).tolist()
        names += [job.name] if pieces == 1 else [f"{job.name}-{piece + 1}" for piece in range(pieces)]
    size = np.array([job.gpus for job in jobs])
    count = np.array(gangs)
    groups = tuple(sorted({job.cluster for job in classes}))
    tier, accepts = _pods_alike(rng, fleet.spec_pods, models, _holds(fleet.nodes, models, size))
    cpu = _cpu(rng, fleet.pods, size, count)
    services = _services(fleet.pods, int(cpu.max()))
    rest = len(services)
    return CloudWork(
        groups=(*groups, SERVICES),
        names=(*names, *(name for name, _, _ in services)),
        group=np.array([groups.index(job.cluster) for job in jobs] + [len(groups)] * rest),
        tier=np.concatenate([tier, np.array([tier for _, tier, _ in services], np.int64)]),
        gpus=np.concatenate([size * count, np.zeros(rest, np.int64)]),
        cpu_mcores=np.concatenate([cpu, np.array([cores for _, _, cores in services], np.int64)]),
        accepts=np.concatenate([accepts, np.zeros((rest, len(models)), np.bool_)]),
        replay=replay,
    )


def _gangs(job: JobClass, replay: float) -> int:
    """Jobs of the imported class that run at once, at least one."""
    return max(1, round(job.mean_gpus * replay / job.gpus))


def _replay(classes: tuple[JobClass, ...], demand: int) -> float:
    """Number of times that the imported job list must run to hold ``demand`` GPUs, by bisection."""
    low, high = 0.0, 2.0 * demand / sum(job.mean_gpus for job in classes)
    for _ in range(60):
        middle = (low + high) / 2
        if sum(_gangs(job, middle) * job.gpus for job in classes) < demand:
            low = middle
        else:
            high = middle
    return high


def _holds(nodes: GpuNodes, models: tuple[str, ...], size: Ints) -> Bools:
    """[W, K] which imported models have nodes that are large enough for gangs of this size."""
    model = np.array(nodes.model)
    largest = np.array([nodes.gpus[model == name].max() for name in models])
    return largest >= np.minimum(size, max(1, min(LARGEST_NODE, int(largest.max()))))[:, None]


def _pods_alike(rng: np.random.Generator, pods: GpuPods, models: tuple[str, ...], holds: Bools) -> tuple[Ints, Bools]:
    """Tier and models of one random GPU pod for each workload, among those whose models hold its gang."""
    asking = pods.part(np.flatnonzero(pods.mgpu > 0))
    named = np.array([[not wanted or model in wanted for model in models] for wanted in asking.models])
    tier, accepts = np.zeros(len(holds), np.int64), np.zeros_like(holds)
    for w, pick in enumerate(rng.random(len(holds)).tolist()):
        possible = np.flatnonzero((named & holds[w]).any(axis=1))
        if len(possible):
            pod = possible[int(pick * len(possible))]
            tier[w], accepts[w] = asking.tier[pod], named[pod] & holds[w]
        else:
            accepts[w] = holds[w]
    return tier, accepts


def _cpu(rng: np.random.Generator, pods: GpuPods, size: Ints, gangs: Ints) -> Ints:
    """[W] millicores: each gang asks for as much CPU per GPU as a random pod that has whole GPUs."""
    whole = pods.part(np.flatnonzero(pods.mgpu >= WHOLE_GPU))
    per_gpu = whole.cpu_mcores // (whole.mgpu // WHOLE_GPU)
    drawn = per_gpu[rng.integers(len(per_gpu), size=int(gangs.sum()))]
    start = np.cumsum(gangs) - gangs
    return size * np.add.reduceat(drawn, start)


def _services(pods: GpuPods, largest: int) -> list[tuple[str, int, int]]:
    """(name, tier, millicores) of the CPU-only pods, those of one tier and size together."""
    without = pods.part(np.flatnonzero(pods.mgpu == 0))
    kinds, number = np.unique(np.stack([without.tier, without.cpu_mcores]), axis=1, return_counts=True)
    found = []
    for (tier, cpu), pods_alike in zip(kinds.T.tolist(), number.tolist()):
        pieces = min(pods_alike, -(-pods_alike * cpu // max(largest, cpu, 1)))
        for piece, count in enumerate(shared_out(pods_alike, np.ones(pieces)).tolist()):
            found.append((f"{SERVICES}-tier{tier}-{cpu / 1000:g}cores-{piece + 1}", tier, count * cpu))
    return found
