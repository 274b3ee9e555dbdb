"""Flavors of the queues of clusters as servers of a live loop."""

from collections.abc import Iterator
from dataclasses import dataclass

from mast_opt.live.hosts.kueue.admission import Admission
from mast_opt.live.hosts.kueue.objects import MIB, ClusterQueue, ClusterView
from mast_opt.planner.importers.pod_requests import is_gpu
from mast_opt.problems.job_placement.live_fleet.types import Server
from mast_opt.problems.job_placement.units import MOST_POOLED

UNLIMITED = 2**52


@dataclass(frozen=True)
class Place:
    """A flavor of a queue of a cluster."""

    cluster: str
    queue: str
    flavor: str

    @property
    def server(self) -> str:
        """Name of a queue's flavor as a server of the fleet."""
        return f"{self.cluster}/{self.queue}/{self.flavor}"

    @property
    def group(self) -> str:
        """Name of a ClusterQueue in the fleet."""
        return f"{self.cluster}/{self.queue}"


def places_of(cluster: ClusterView) -> Iterator[tuple[Place, Server, int]]:
    """The flavors of the queues of a cluster, each as a server as large as what the queue uses of it, can still use and
    takes back from whoever has borrowed it (``reclaimWithinCohort: Any``); and how many GPUs the last of these are.

    What two queues can both borrow is offered to both: the loop has no tree of quotas yet.
    """
    tree = Admission(cluster).tree
    for queue in cluster.queues.values():
        for flavor in queue.flavors:
            keys = [key for key in queue.quotas if key[0] == flavor]
            free = {key[1]: tree.use(queue.name, key) + max(0, tree.available(queue.name, key)) for key in keys}
            sizes = dict(free)
            if queue.preemption.reclaim == "Any":
                sizes = {key[1]: max(free[key[1]], tree.owned(queue.name, key)) for key in keys}
            gpus = min((size for resource, size in sizes.items() if is_gpu(resource)), default=0)
            lent = gpus - min((size for resource, size in free.items() if is_gpu(resource)), default=0)
            cpu = sizes.get("cpu", _elsewhere(queue, "cpu"))
            memory = sizes.get("memory", _elsewhere(queue, "memory")) // MIB
            place = Place(cluster.name, queue.name, flavor)
            where = cluster.name, place.group, place.server, place.server
            yield (
                place,
                Server(place.server, *where, min(gpus, MOST_POOLED), min(cpu, UNLIMITED), min(memory, UNLIMITED)),
                min(lent, MOST_POOLED),
            )


def _elsewhere(queue: ClusterQueue, resource: str) -> int:
    """Largest amount of a resource that another group of the queue covers; no limit if none does."""
    return max((quota.nominal for key, quota in queue.quotas.items() if key[1] == resource), default=UNLIMITED * MIB)
