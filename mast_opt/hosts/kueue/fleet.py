"""Quotas of clusters, and what they have admitted, as a live fleet.

A queue that has more than its quota, because that was lowered or lent to others, has nothing free.

A cluster is a region. A flavor of a ClusterQueue is a server of it, as large as the quota and what the queue can borrow
now, and a GPU type of its own, so that a workload gets no other queue's. What the worker itself decides is not looked
at: topology, nodes, and who lends to whom when all want something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mast_opt.hosts.kueue.objects import ClusterQueue, ClusterView, Flavor, Needs, PodSet, Taint, Workload
from mast_opt.hosts.kueue.quantities import MOST
from mast_opt.job_placement.live_fleet.fleet import Fleet
from mast_opt.job_placement.live_fleet.types import Job, Part, Server, Share
from mast_opt.job_placement.units import MOST_POOLED, WHOLE

RESOURCES = ("gpu", "cpu", "memory")
UNLIMITED = int(MOST)
HOLDS_QUOTA = ("QuotaReserved", "Admitted")
"""Conditions of a workload that counts towards the quota."""


@dataclass(frozen=True)
class Place:
    """A flavor of a queue of a cluster."""

    cluster: str
    queue: str
    flavor: str

    @property
    def server(self) -> str:
        """Its name in the fleet."""
        return f"{self.cluster}/{self.queue}/{self.flavor}"

    @property
    def group(self) -> str:
        """The queue's name in the fleet."""
        return f"{self.cluster}/{self.queue}"


def used(cluster: ClusterView, queue: ClusterQueue) -> dict[str, list[int]]:
    """Flavor → what admitted workloads of a queue take: milli-GPUs, millicores, MiB."""
    taken = {flavor: [0, 0, 0] for flavor in queue.quotas}
    for one in cluster.workloads:
        if holds_quota(one) and one.admitted_by == queue.name:
            for pods in one.pod_sets:
                flavor = one.flavors.get(pods.name)
                if flavor in taken:
                    for k in range(3):
                        taken[flavor][k] += pods.count * pods.needs[k]
    return taken


def holds_quota(workload: Workload) -> bool:
    """Whether a workload counts towards a quota."""
    return not workload.ended and any(one in workload.conditions for one in HOLDS_QUOTA)


def room(cluster: ClusterView, queue: ClusterQueue, flavor: str, uses: Mapping[str, Mapping[str, list[int]]]) -> Needs:
    """What a queue can use of a flavor in all: its own, and what the others of its cohort leave and lend.

    Args:
        uses: queue → ``used``.
    """
    found = []
    cohort = [
        one for one in cluster.queues.values() if queue.cohort and one.cohort == queue.cohort and one is not queue
    ]
    for k, resource in enumerate(RESOURCES):
        quota = queue.quotas[flavor].get(resource)
        if quota is None:
            found.append(_elsewhere(queue, resource))
            continue
        spare = 0
        for other in cohort:
            lent = other.quotas.get(flavor, {}).get(resource)
            if lent is not None:
                left = lent.nominal - uses[other.name][flavor][k]
                spare += left if lent.lending is None else min(left, lent.lending)
        spare = max(0, spare)
        found.append(quota.nominal + (spare if quota.borrowing is None else min(spare, quota.borrowing)))
    return found[0], found[1], found[2]


def _elsewhere(queue: ClusterQueue, resource: str) -> int:
    """What there is of a resource that another group of the queue covers: the largest flavor; no limit if none does."""
    quotas = [listed[resource].nominal for listed in queue.quotas.values() if resource in listed]
    if resource == "gpu":
        return 0
    return max(quotas, default=UNLIMITED)


def accepts(flavor: Flavor, pods: PodSet) -> bool:
    """Whether pods may run on a flavor's nodes."""
    fits = all(flavor.labels[label] in values for label, values in pods.selector.items() if label in flavor.labels)
    return fits and all(tolerated(taint, pods) for taint in flavor.taints)


def tolerated(taint: Taint, pods: PodSet) -> bool:
    """Whether pods may run on nodes with a taint."""
    if taint.effect not in ("NoSchedule", "NoExecute"):
        return True
    return any(
        (one.key == taint.key or (not one.key and one.operator == "Exists"))
        and (one.operator == "Exists" or one.value == taint.value)
        and one.effect in ("", taint.effect)
        for one in pods.tolerations
    )


def places_of(cluster: ClusterView) -> Iterator[tuple[Place, Server]]:
    """The flavors of the queues of a cluster, each as a server as large as what the queue can use of it."""
    uses = {queue.name: used(cluster, queue) for queue in cluster.queues.values()}
    for queue in cluster.queues.values():
        for flavor in queue.quotas:
            place = Place(cluster.name, queue.name, flavor)
            mgpu, cpu, memory = map(max, room(cluster, queue, flavor, uses), uses[queue.name][flavor])
            where = cluster.name, place.group, place.server, place.server
            yield place, Server(place.server, *where, min(mgpu // WHOLE, MOST_POOLED), cpu, memory)


class WorkerFleet:
    """Clusters as one fleet.

    Args:
        clusters: those that take part.
        replicas: dataset → clusters that hold it.
        waiting: workloads that bids will be asked for; their priorities are tiers of the fleet.
    """

    def __init__(
        self,
        clusters: Iterable[ClusterView],
        replicas: Mapping[str, Collection[str]] | None = None,
        waiting: Iterable[Workload] = (),
    ) -> None:
        self.clusters = {one.name: one for one in clusters}
        running = [
            (cluster, one) for cluster in self.clusters.values() for one in cluster.workloads if holds_quota(one)
        ]
        self._tiers = sorted({-one.priority for one in (*waiting, *(one for _, one in running))} | {0})
        self.places: dict[str, Place] = {}
        self._gpus: dict[str, int | None] = {}
        """Server → how many GPUs it has; None where they have no numbers."""
        self._next: dict[str, int] = {}
        """Server → the GPU that is given out next."""
        self.fleet = Fleet(self._servers(), tiers=self._tiers, replicas=replicas, placement="best-fit")
        for cluster, one in running:
            self._adopt(cluster, one)

    def _servers(self) -> list[Server]:
        servers = []
        for cluster in self.clusters.values():
            for place, server in places_of(cluster):
                self.places[place.server] = place
                self._gpus[place.server] = None if server.pool else server.gpus
                servers.append(server)
        return servers

    def _adopt(self, cluster: ClusterView, one: Workload) -> None:
        """Count what is admitted, on the flavors that Kueue gave it."""
        queue = cluster.queues.get(one.admitted_by)
        if queue is None or any(one.flavors.get(pods.name) not in queue.quotas for pods in self._sets(one)):
            return
        shares: list[Share] = []
        parts = []
        for pods in self._sets(one):
            server = Place(cluster.name, queue.name, one.flavors[pods.name]).server
            taken = self._take(server, pods.count, pods.needs[0])
            if taken is None:
                return
            shares.append(Share(server, pods.count, taken, pods.name))
            parts.append(_part(pods, {server: pods.needs[0]}))
        job = Job(
            running_name(cluster.name, one),
            tier=-one.priority,
            within="region",
            parts=tuple(parts),
            preemptible=queue.preempts,
        )
        self.fleet.adopt(job, tuple(shares))

    @staticmethod
    def _sets(one: Workload) -> list[PodSet]:
        return [pods for pods in one.pod_sets if pods.count]

    def _take(self, server: str, tasks: int, mgpu: int) -> dict[int, int] | None:
        """GPUs of a server for so many pods; None if it has none at all."""
        if not mgpu:
            return {}
        gpus = self._gpus[server]
        if gpus is None:
            return {0: tasks * mgpu}
        if not gpus:
            return None
        found: dict[int, int] = {}
        for _ in range(tasks * max(1, mgpu // WHOLE)):
            at = self._next.get(server, 0) % gpus
            self._next[server] = at + 1
            found[at] = found.get(at, 0) + min(mgpu, WHOLE)
        return found

    def job(self, one: Workload, clusters: Iterable[str]) -> tuple[Job | None, dict[str, str]]:
        """What a workload asks of the fleet in these clusters, None if it can run in none of them; and cluster → why it
        cannot run there."""
        why: dict[str, str] = {}
        flavors: dict[str, set[str]] = {pods.name: set() for pods in self._sets(one)}
        for name in clusters:
            cluster = self.clusters[name]
            queue = cluster.queues.get(cluster.local_queues.get(f"{one.namespace}/{one.queue}", ""))
            if not cluster.active:
                why[name] = "not connected"
            elif queue is None:
                why[name] = f"no LocalQueue {one.namespace}/{one.queue} with a ClusterQueue"
            elif queue.stopped:
                why[name] = f"ClusterQueue {queue.name} is stopped"
            else:
                for pods in self._sets(one):
                    found = {
                        Place(name, queue.name, flavor).server
                        for flavor in queue.quotas
                        if flavor in cluster.flavors and accepts(cluster.flavors[flavor], pods)
                    }
                    if not found:
                        why.setdefault(name, f"no flavor for pod set {pods.name}")
                    flavors[pods.name] |= found
        if not flavors or not all(flavors.values()):
            return None, why
        parts = tuple(_part(pods, dict.fromkeys(sorted(flavors[pods.name]), pods.needs[0])) for pods in self._sets(one))
        return Job(one.key, tier=-one.priority, within="region", parts=parts, datasets=one.datasets), why


def _part(pods: PodSet, flavors: Mapping[str, int]) -> Part:
    return Part(pods.name, pods.count, 0, pods.needs[1], pods.needs[2], flavors, "server")


def running_name(cluster: str, one: Workload) -> str:
    """The name of an admitted workload in the fleet: remote copies have the same names in every cluster."""
    return f"{cluster}: {one.key}"
