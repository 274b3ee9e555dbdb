"""Server inventory of the live fleet (job placement): names of servers, clusters, types and regions, and data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.engine.arrival_mix import server_classes
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.server_layout import Layout, lay_out
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, names_in
from mast_opt.problems.job_placement.units import GPU, LEVELS, MOST_GPUS, WHOLE, Bools, Ints

MOST_KEPT = 4096
"""Requests that are kept."""


class ServerInventory:
    """Servers by name and by position in the engine's arrays, and the regions that hold datasets. Positions are those
    of ``layout``."""

    servers: dict[str, Server]
    layout: Layout
    supply: Ints
    """[S, 3] by position."""
    largest: int
    """Milli-GPUs of the largest server whose GPUs have numbers, at least one GPU."""

    def __init__(
        self,
        servers: Iterable[Server],
        replicas: Mapping[str, Collection[str]],
        residency: Mapping[str, Collection[str]],
        remote_mb_price: float | None,
    ) -> None:
        self.remote_mb_price = remote_mb_price
        """Price of a MB a day from another region; None where jobs run only with their data."""
        self.replicas = {dataset: names_in(f"replicas of {dataset}", regions) for dataset, regions in replicas.items()}
        self.residency = {
            dataset: names_in(f"residency of {dataset}", regions) for dataset, regions in residency.items()
        }
        """Dataset → the only regions where jobs that read it may run; none for a dataset without residency."""
        self._open: dict[str, Bools] = {}
        """Dataset → [R], see ``_open_to``; filled as jobs ask."""
        self._asked: dict[tuple[object, ...], Request] = {}
        """Requests of jobs that ask for the same; they are never changed."""
        self._lay_out(changed({}, servers, ()))

    def _lay_out(self, named: dict[str, Server]) -> None:
        self.servers = named
        servers = list(named.values())
        self.server_names = list(named)
        self.regions = _labels(server.region for server in servers)
        self.clusters = _labels(server.cluster for server in servers)
        self.types = _labels(server.gpu_type for server in servers)
        racks = {pair: n for n, pair in enumerate(dict.fromkeys((server.cluster, server.rack) for server in servers))}
        region_of = {server.cluster: self.regions[server.region] for server in servers}
        self.layout = lay_out(
            np.array([self.clusters[server.cluster] for server in servers], np.int64),
            np.array([self.types[server.gpu_type] for server in servers], np.int64),
            np.array([racks[server.cluster, server.rack] for server in servers], np.int64),
            np.array([region_of[cluster] for cluster in self.clusters], np.int64),
            len(self.regions),
        )
        self.cluster_names, self.region_names, self.type_names = (
            list(self.clusters),
            list(self.regions),
            list(self.types),
        )
        position = self.layout.position.tolist()
        self.position = {name: position[number] for number, name in enumerate(self.server_names)}
        self.everywhere: Bools = np.ones(len(self.layout.group_cluster), np.bool_)
        supply = np.array([server.amounts for server in servers], np.int64)
        self._supply_changed(supply[self.layout.server])
        self._open, self._asked = {}, {}

    def _supply_changed(self, supply: Ints) -> None:
        self.supply = supply
        self._classes: Ints | None = None
        gpus = supply[:, GPU]
        self.largest = max(int(gpus[gpus <= MOST_GPUS * WHOLE].max(initial=0)), WHOLE)
        self.group_mgpu = np.zeros(len(self.everywhere), np.int64)
        np.add.at(self.group_mgpu, self.layout.group, gpus)
        self.group_largest: Ints = np.zeros((len(self.everywhere), supply.shape[1]), np.int64)
        """[G, 3] the most milli-GPUs, millicores and MiB that a server of each group has."""
        np.maximum.at(self.group_largest, self.layout.group, supply)

    def classes(self) -> Ints:
        """[C, 5] equal servers, see ``server_classes``."""
        if self._classes is None:
            self._classes = server_classes(self.layout.group_type[self.layout.group], self.supply)
        return self._classes

    def server_at(self, position: int) -> str:
        """Name of the server at a position of the layout."""
        return self.server_names[int(self.layout.server[position])]

    def request(self, job: Job, tier: int) -> Request:
        """The job as the kernels see it."""
        needs = job.gpu_types
        kinds = None if needs is None else tuple(needs.items())
        size = job.tasks, job.mgpu, job.cpu_mcores, job.memory_mib
        asked = tier, size, kinds, job.datasets, job.within, job.prefer
        known = self._asked.get(asked)
        if known is None:
            if len(self._asked) == MOST_KEPT:
                self._asked.clear()
            known = self._asked[asked] = self._request(job, tier)
        return known

    def _request(self, job: Job, tier: int) -> Request:
        """Request of a job to the engine, at a tier."""
        needs = job.gpu_types
        mgpu = [job.mgpu] * len(self.types) if needs is None else [needs.get(kind, -1) for kind in self.types]
        return Request(
            mgpu=np.array(mgpu, np.int64),
            open=self.open_regions(job),
            cpu=job.cpu_mcores,
            memory=job.memory_mib,
            tasks=job.tasks,
            within=LEVELS.index(job.within),
            prefer=LEVELS.index(job.prefer),
            tier=tier,
        )

    def regions_in(self, names: Collection[str]) -> Bools:
        """[R] the regions with these names. Raises UsageError for one that the fleet does not have."""
        asked = names_in("regions", names)
        if unknown := sorted(asked - set(self.regions)):
            raise UsageError(f"the fleet has no region called {unknown[0]}; there are {', '.join(self.regions)}")
        return np.array([name in asked for name in self.regions], np.bool_)

    def open_regions(self, job: Job) -> Bools:
        """[R] regions that hold all that the job reads (any where remote reads are priced and each dataset is held
        somewhere), and where all of it may be read."""
        here: Bools = np.ones(len(self.regions), np.bool_)
        for dataset in job.datasets:
            here &= self._open_to(dataset)
        return here

    def _open_to(self, dataset: str) -> Bools:
        """[R] where a job may run for all that one of its datasets says."""
        known = self._open.get(dataset)
        if known is None:
            holders = self.replicas.get(dataset, frozenset())
            if holders and self.remote_mb_price is not None:
                holders = frozenset(self.regions)
            may = holders & self.residency.get(dataset, holders)
            known = np.array([region in may for region in self.regions], np.bool_)
            if dataset in self.replicas:
                self._open[dataset] = known
        return known

    def price_of(self, job: Job) -> NDArray[np.float64] | None:
        """[G] what the job costs in each group; None where that is the same everywhere."""
        remote = self.remote_mb_price if job.datasets else None
        if not job.costs and remote is None:
            return None
        price = np.array([job.costs.get(name, 0.0) for name in self.cluster_names])[self.layout.group_cluster]
        if remote is not None:
            missing = [
                sum(
                    job.read_mb_per_day.get(name, 0)
                    for name in job.datasets
                    if region not in self.replicas.get(name, ())
                )
                for region in self.region_names
            ]
            price = price + np.array(missing, np.int64)[self.layout.group_region] * remote
        return price


def changed(servers: Mapping[str, Server], added: Iterable[Server], removed: Iterable[str]) -> dict[str, Server]:
    """The servers without some and with others. Raises UsageError for a name that is taken, a cluster in two regions,
    and where none is left."""
    found = dict(servers)
    for name in removed:
        del found[name]
    for server in added:
        if server.name in found:
            raise UsageError(f"there is a server called {server.name} already; every server needs its own name")
        found[server.name] = server
    if not found:
        raise UsageError("a fleet needs at least one server")
    region_of: dict[str, str] = {}
    for server in found.values():
        if region_of.setdefault(server.cluster, server.region) != server.region:
            raise UsageError(
                f"cluster {server.cluster} is in {region_of[server.cluster]} and in {server.region} "
                f"(server {server.name}); a cluster belongs to one region"
            )
    return found


def _labels(labels: Iterable[str]) -> dict[str, int]:
    """Label → number, in order of first appearance."""
    return {label: number for number, label in enumerate(dict.fromkeys(labels))}
