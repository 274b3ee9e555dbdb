"""Workloads of Kueue as jobs of a loop, and what they hold as shares.

A loop has gangs of equal tasks, and a quota is an amount and not a machine. So a workload is the gang of its pods with
GPUs, on a single flavor; what its other pods take of processors and memory is spread over that gang. Where pods with
GPUs are not all equal, a task is the largest number of GPUs of which all of them are multiples.
"""

import functools
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence

from mast_opt.core.units import MILLI
from mast_opt.live.hosts.kueue.eligibility import accepts
from mast_opt.live.hosts.kueue.nomination import PRIORITIES
from mast_opt.live.hosts.kueue.objects import ClusterQueue, ClusterView, PodSet, Workload
from mast_opt.live.hosts.kueue.places import Place
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.planner.importers.pod_requests import is_gpu
from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.job_placement.units import MOST_GPUS, WHOLE


def tier_of(priority: int, least: Sequence[int]) -> int:
    """The tier of a priority of Kueue; ``least`` as in ``DispatchParams.priorities``."""
    return sum(priority < bound for bound in least)


def job_name(one: Workload, spec: JobSpec | None = None) -> str:
    """The name of a job for a workload: another one for every object, and for what is asked for when that changes."""
    rest = "" if spec is None else _digest(f"{one.reserved_at} {spec}", 4)
    return f"{one.key}.{_digest(one.uid, 8)}{rest}"


def is_loan(key: str) -> bool:
    """Whether the key of a job is that of a server whose quota others have borrowed, and not of a workload."""
    return key.count("/") == 2


@functools.lru_cache(maxsize=100_000)
def _digest(text: str, length: int) -> str:
    """Hash of a text in so many digits, for the names of workloads' jobs."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()[:length]


def places_for(one: Workload, clusters: Iterable[ClusterView]) -> dict[str, bool]:
    """The flavors where a workload may run, by their name as a server, and whether it may be stopped there."""
    found = {}
    sets = _gang_sets(one)
    for cluster in clusters:
        queue = cluster.queues.get(cluster.local_queues.get(f"{one.namespace}/{one.queue}", ""))
        held = f"{one.namespace}/{one.queue}" in cluster.held
        if queue is None or queue.stopped or held or not cluster.active or not _understood(queue, sets):
            continue
        for flavor in queue.flavors:
            known = cluster.flavors.get(flavor)
            if known is not None and all(accepts(known, pods) for pods in sets):
                found[Place(cluster.name, queue.name, flavor).server] = queue.preempts
    return found


def _understood(queue: ClusterQueue, sets: Iterable[PodSet]) -> bool:
    """Whether all that pods ask for is what a loop counts, or what the queue does not count."""
    counted = {"cpu", "memory"}
    covered = {resource for _, resource in queue.quotas}
    return all(
        not pods.unknown and all(name in counted or (is_gpu(name) and name in covered) for name in pods.requests)
        for pods in sets
    )


def place_of(one: Workload, cluster: ClusterView) -> str:
    """The flavor that a cluster has admitted a workload on, by its name as a server; empty if there is none."""
    queue = cluster.queues.get(one.admitted_by)
    flavor = next((one.flavors[pods.name] for pods in _gang_sets(one) if pods.name in one.flavors), "")
    return Place(cluster.name, queue.name, flavor).server if queue is not None and flavor in queue.flavors else ""


def spec_of(
    one: Workload,
    places: Mapping[str, bool],
    priorities: Sequence[int] = PRIORITIES,
    limit_grace_s: float | None = None,
) -> JobSpec | None:
    """Specification of a workload's job; None if it may run nowhere, or has no pods. ``priorities`` as in
    ``DispatchParams``; ``limit_grace_s`` as in ``KueueHost``."""
    sets = [pods for pods in one.pod_sets if pods.count]
    if not sets or not places:
        return None
    tasks, mgpu = _gang(_gang_sets(one))
    grace_s = one.limit_grace_s if None in (limit_grace_s, one.limit_grace_s, one.limit_s) else limit_grace_s
    cpu, memory = (-(-sum(pods.count * pods.needs[k] for pods in sets) // tasks) for k in (1, 2))
    return JobSpec(
        tier=tier_of(one.priority, priorities),
        tasks=tasks,
        mgpu=mgpu,
        cpu_mcores=cpu,
        memory_mib=memory,
        gpu_types=dict.fromkeys(places, mgpu),
        datasets=one.datasets,
        within="server",
        tenant=f"{one.namespace}/{one.queue}",
        preemptible=all(places.values()),
        workload=one.key,
        limit_ms=None if one.limit_s is None else one.limit_s * MILLI,
        limit_grace_ms=None if grace_s is None else round(grace_s * MILLI),
        namespace=one.namespace,
    )


def _gang_sets(one: Workload) -> list[PodSet]:
    """Pods with GPUs; all, where none has any."""
    sets = [pods for pods in one.pod_sets if pods.count]
    return [pods for pods in sets if pods.needs[0]] or sets


def _gang(sets: Iterable[PodSet]) -> tuple[int, int]:
    """Tasks of a workload's pods, and milli-GPUs of each."""
    each = [(pods.count, pods.needs[0]) for pods in sets]
    unit = math.gcd(*(need for _, need in each))
    if unit > WHOLE and unit % WHOLE:  # no job has so much of a GPU
        total = sum(count * -(-need // WHOLE) for count, need in each)
        return total, WHOLE
    if not unit:
        return sum(count for count, _ in each), 0
    return sum(count * (need // unit) for count, need in each), unit


def shares_at(spec: JobSpec, server: str, gpus: int, held: Mapping[int, int]) -> tuple[Share, ...]:
    """All tasks of a workload's job at a server.

    Args:
        gpus: of the server.
        held: GPU → milli-GPUs that others hold. Quotas have no GPUs; those with the least on them are taken.
    """
    need = (spec.gpu_types or {}).get(server, spec.mgpu)
    if not need:
        return (Share(server, spec.tasks, {}),)
    if gpus > MOST_GPUS:
        return (Share(server, spec.tasks, {0: spec.tasks * need}),)
    load = {at: held.get(at, 0) for at in range(gpus)}
    taken: dict[int, int] = {}
    part = min(need, WHOLE)
    for _ in range(spec.tasks * max(1, need // WHOLE)):
        fitting = [at for at, amount in load.items() if amount + part <= WHOLE]
        least = min(load, key=lambda at: (taken.get(at, 0) + part > WHOLE, load[at], at))
        chosen = max(fitting, key=lambda at: (load[at], -at)) if fitting else least
        load[chosen] += part
        taken[chosen] = taken.get(chosen, 0) + part
    return (Share(server, spec.tasks, taken),)
