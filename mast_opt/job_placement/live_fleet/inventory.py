"""Inventory of the live fleet (job placement): names on one side, positions in the engine's arrays on the other."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import UsageError
from mast_opt.core.units import MILLI
from mast_opt.job_placement.engine.arrival_mix import ANY, ArrivalMix, shape_of, together
from mast_opt.job_placement.engine.booking_kernel import book
from mast_opt.job_placement.engine.capacity_ledger import block, last_tier_of, load, stop
from mast_opt.job_placement.engine.feasibility import Request
from mast_opt.job_placement.engine.server_layout import Layout, lay_out
from mast_opt.job_placement.engine.server_selection import Placement
from mast_opt.job_placement.engine.state import (
    J_ROW,
    L_AFTER,
    L_CPU,
    L_JOB,
    L_MEMORY,
    L_NEXT,
    L_SERVER,
    S_BLOCKED,
    S_GROUP,
    S_ROW,
    VICTIM,
    EngineState,
)
from mast_opt.job_placement.engine.state_allocation import copied, empty_state, grown, valued
from mast_opt.job_placement.live_fleet.types import Job, Server, Share, names_in
from mast_opt.job_placement.units import GPU, LEVELS, WHOLE, Bools

MOST_HOURS = 10**9
ROUND_OFF = 4
"""Decimals of a thousandth of a GPU-hour that count; 1.001 hours times a thousand are not quite 1001."""


@dataclass(frozen=True, eq=False)
class Holding:
    """What a running job holds on one server, whatever position that has."""

    server: str
    cpu_mcores: int
    memory_mib: int
    device: NDArray[np.int32]
    """Milli-GPUs of each GPU."""


@dataclass(frozen=True)
class Running:
    """A job that runs."""

    job: Job
    tier: int
    """Position in the fleet's tiers, after quotas."""
    shares: tuple[Share, ...]
    over_quota: bool = False


class FleetInventory:
    """Everything about a fleet but its lock. Positions are those of ``layout``."""

    def __init__(
        self,
        servers: Iterable[Server],
        tiers: tuple[int, ...],
        replicas: Mapping[str, Collection[str]],
        residency: Mapping[str, Collection[str]],
        remote_mb_price: float | None = None,
        mix: ArrivalMix | None = None,
    ) -> None:
        self.mix = mix
        """What has come so far; None where loss of value does not decide between servers."""
        self.remote_mb_price = remote_mb_price
        """Of a MB a day from another region; None where jobs run only with their data."""
        self.servers: dict[str, Server] = {}
        self.tiers = tiers
        self.replicas = {dataset: names_in(f"replicas of {dataset}", regions) for dataset, regions in replicas.items()}
        self.residency = {
            dataset: names_in(f"residency of {dataset}", regions) for dataset, regions in residency.items()
        }
        """Dataset → the only regions where jobs that read it may run; none for a dataset without residency."""
        self.running: dict[str, Running] = {}
        self.place: dict[str, int] = {}
        """Running job → place in the state."""
        self.name: dict[int, str] = {}
        """Place in the state → running job."""
        self.blocked: set[str] = set()
        self._used: dict[tuple[str, str | None], int] = {}
        self._open: dict[str, Bools] = {}
        """Dataset → [R], see ``_open_to``; filled as jobs ask."""
        self.layout: Layout
        self.state: EngineState
        self.change_servers(servers, ())

    def change_servers(self, added: Iterable[Server], removed: Iterable[str]) -> None:
        """Lay the fleet out again, with the running jobs where they were. Nothing changes if a server is refused."""
        servers = dict(self.servers)
        for name in removed:
            del servers[name]
        for server in added:
            if server.name in servers:
                raise UsageError(f"there is a server called {server.name} already; every server needs its own name")
            servers[server.name] = server
        if not servers:
            raise UsageError("a fleet needs at least one server")
        _check_nesting(servers.values())
        held = {name: self.holdings(name) for name in self.running}
        self.servers = servers
        self._lay_out()
        self.state = empty_state(self.layout, self._supply, len(self.tiers), 2 * len(held) + 64, 4 * len(held) + 256)
        self._load(held)
        self._draw()

    def _lay_out(self) -> None:
        servers = list(self.servers.values())
        self.server_names = list(self.servers)
        self.regions = _labels(server.region for server in servers)
        self.clusters = _labels(server.cluster for server in servers)
        self.types = _labels(server.gpu_type for server in servers)
        racks = {pair: n for n, pair in enumerate(dict.fromkeys((server.cluster, server.rack) for server in servers))}
        region_of = {server.cluster: self.regions[server.region] for server in servers}
        self._supply = np.array([[s.gpus * WHOLE, s.cpu_mcores, s.memory_mib] for s in servers], np.int64)
        self.layout = lay_out(
            np.array([self.clusters[server.cluster] for server in servers], np.int64),
            np.array([self.types[server.gpu_type] for server in servers], np.int64),
            np.array([racks[server.cluster, server.rack] for server in servers], np.int64),
            np.array([region_of[cluster] for cluster in self.clusters], np.int64),
            list(self.regions),
            list(self.clusters),
            list(self.types),
        )
        self.cluster_names, self.region_names, self.type_names = (
            list(self.clusters),
            list(self.regions),
            list(self.types),
        )
        position = self.layout.position.tolist()
        self.position = {name: position[number] for number, name in enumerate(self.server_names)}
        self.supply = self._supply[self.layout.server]
        """[S, 3] by position."""
        self.everywhere: Bools = np.ones(len(self.layout.group_cluster), np.bool_)
        self.group_mgpu = np.zeros(len(self.everywhere), np.int64)
        np.add.at(self.group_mgpu, self.layout.group, self.supply[:, GPU])
        self._open = {}
        self.freed = np.zeros((len(self.regions), len(self.types)), np.int64)
        """[R, K] how often capacity of the type appeared in the region."""

    def _load(self, held: Mapping[str, tuple[Holding, ...]]) -> None:
        jobs = [self._job_row(self.running[name]) for name in held]
        first = np.cumsum([0, *(len(holdings) for holdings in held.values())])
        every = [holding for holdings in held.values() for holding in holdings]
        rows = [(self.position[one.server], one.cpu_mcores, one.memory_mib) for one in every]
        device = np.zeros((len(every), self.state.row_device.shape[1]), np.int32)
        for at, one in enumerate(every):
            device[at, : len(one.device)] = one.device[: device.shape[1]]
        places = load(
            self.state, np.array(jobs, np.int64).reshape(-1, 3), first, np.array(rows, np.int64).reshape(-1, 3), device
        )
        self.place = dict(zip(held, places.tolist()))
        self.name = {at: name for name, at in self.place.items()}
        for name in self.blocked & set(self.position):
            block(self.state, self.position[name], 1)

    def _job_row(self, running: Running) -> tuple[int, int, int]:
        tier = running.tier
        return tier, tier if running.job.preemptible else 0, cost_of(running.job)

    def copy(self) -> FleetInventory:
        """Books that can go their own way."""
        twin = copy(self)
        twin.running, twin.place, twin.name = dict(self.running), dict(self.place), dict(self.name)
        twin._used, twin._open = dict(self._used), dict(self._open)
        twin.blocked, twin.replicas = set(self.blocked), dict(self.replicas)
        twin.mix = None if self.mix is None else self.mix.copy()
        twin.state, twin.freed = copied(self.state), self.freed.copy()
        return twin

    def adopt(self, running: Mapping[str, Running], held: Mapping[str, tuple[Holding, ...]]) -> None:
        """Enter jobs that run already; nothing else may run yet."""
        self.running = dict(running)
        for one in running.values():
            self._count(one, 1)
        self.state = empty_state(self.layout, self._supply, len(self.tiers), 2 * len(held) + 64, 4 * len(held) + 256)
        self._load(held)
        self._draw()

    def expect(self, jobs: Iterable[Job]) -> None:
        """Count jobs as arrivals before any has come."""
        for job in jobs:
            self._count_arrival(job)
        self._draw()

    def _count_arrival(self, job: Job) -> bool:
        """Whether samples are due."""
        if self.mix is None:
            return False
        needs = {ANY: job.mgpu} if job.gpu_types is None else job.gpu_types
        largest = self.state.row_device.shape[1] * WHOLE
        close = together(LEVELS.index(job.within), LEVELS.index(job.prefer))
        return self.mix.add(*shape_of(needs, job.cpu_mcores, job.memory_mib, job.tasks, close, largest))

    def _draw(self) -> None:
        """Draw samples of arrivals; what is known of values of servers is forgotten."""
        if self.mix is not None:
            sampling = self.mix.sampling
            self.state = valued(self.state, self.mix.draw(self.types), sampling.slots, sampling.memo)

    def start(
        self, running: Running, request: Request, placed: Placement, victims: tuple[str, ...], fresh: bool
    ) -> None:
        """Stop the victims and start a job; see ``place.take``. Raises UsageError, with nothing changed, if there is no
        room."""
        job, places = running.job, np.array([self.place[name] for name in victims], np.int64)
        self.state = grown(self.state, 1, len(placed.server))
        limit = running.tier if job.preemptible else 0
        at = int(book(self.state, request, placed, places, limit, cost_of(job), fresh))
        if at < 0:
            share = running.shares[-1 - at]
            raise UsageError(
                f"the bid for {job.name}: {share.server} has no room for {share.tasks} of its tasks there; ask for a "
                "new bid"
            )
        for name in victims:
            self._forget(name)
        self._count(running, 1)
        self.running[job.name], self.place[job.name], self.name[at] = running, at, job.name
        if self._count_arrival(job):
            self._draw()

    def end(self, name: str) -> None:
        """A job ends, or never was if it was placed in this round."""
        at = self.place[name]
        stop(self.state, at, last_tier_of(self.state, at))
        self._forget(name)

    def _forget(self, name: str) -> None:
        for position in self.positions_of(name):
            self.capacity_appeared(position)
        self._count(self.running.pop(name), -1)
        del self.name[self.place.pop(name)]

    def used_by(self, tenant: str, gpu_type: str | None = None) -> int:
        """Milli-GPUs of one type (None: of all) that the tenant's running jobs hold, less those over its quota."""
        return self._used.get((tenant, gpu_type), 0)

    def _count(self, running: Running, sign: int) -> None:
        job = running.job
        if job.tenant and not running.over_quota:
            for share in running.shares:
                mgpu = sign * sum(share.gpus.values())
                for key in ((job.tenant, None), (job.tenant, self.servers[share.server].gpu_type)):
                    self._used[key] = self._used.get(key, 0) + mgpu

    def positions_of(self, name: str) -> list[int]:
        """The servers that a running job holds something on."""
        return [self.position[share.server] for share in self.running[name].shares]

    def holdings(self, name: str) -> tuple[Holding, ...]:
        """What a running job holds, in order of position."""
        state, found = self.state, []
        row = int(state.job[J_ROW, self.place[name]])
        while row >= 0:
            at = int(state.row[L_SERVER, row])
            server = self.server_at(at)
            cpu, memory = int(state.row[L_CPU, row]), int(state.row[L_MEMORY, row])
            found.append((at, Holding(server, cpu, memory, state.row_device[row].copy())))
            row = int(state.row[L_NEXT, row])
        return tuple(holding for _, holding in sorted(found, key=lambda pair: pair[0]))

    def server_at(self, position: int) -> str:
        """Name of the server at a position of the layout."""
        return self.server_names[int(self.layout.server[position])]

    def jobs_on(self, server: str) -> tuple[str, ...]:
        """The jobs that hold something on a server, in the order in which they started."""
        there = set(self._places_on(self.position[server]))
        return tuple(name for name, at in self.place.items() if at in there)

    def _places_on(self, position: int) -> Iterator[int]:
        row = int(self.state.server[S_ROW, position])
        while row >= 0:
            yield int(self.state.row[L_JOB, row])
            row = int(self.state.row[L_AFTER, row])

    def out_of_service(self) -> Bools:
        """[S] by position: servers that take no work."""
        blocked: Bools = self.state.server[S_BLOCKED] == 1
        return blocked

    def capacity_appeared(self, position: int) -> None:
        """Something was freed on a server."""
        group = int(self.state.server[S_GROUP, position])
        self.freed[self.layout.group_region[group], self.layout.group_type[group]] += 1

    def request(self, job: Job, tier: int) -> Request:
        """The job as the kernels see it."""
        mgpu = np.full(len(self.types), -1, np.int64)
        if job.gpu_types is None:
            mgpu[:] = job.mgpu
        else:
            for kind, need in job.gpu_types.items():
                if kind in self.types:
                    mgpu[self.types[kind]] = need
        return Request(
            mgpu=mgpu,
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

    def set_replicas(self, dataset: str, regions: Collection[str]) -> None:
        """The regions that hold a dataset from now on."""
        self.replicas[dataset] = names_in(f"replicas of {dataset}", regions)
        self._open.pop(dataset, None)


def price_of(books: FleetInventory, job: Job) -> NDArray[np.float64] | None:
    """[G] what the job costs in each group; None where that is the same everywhere."""
    remote = books.remote_mb_price if job.datasets else None
    if not job.costs and remote is None:
        return None
    price = np.array([job.costs.get(name, 0.0) for name in books.cluster_names])[books.layout.group_cluster]
    if remote is not None:
        missing = [
            sum(job.read_mb_per_day.get(name, 0) for name in job.datasets if region not in books.replicas.get(name, ()))
            for region in books.region_names
        ]
        price = price + np.array(missing, np.int64)[books.layout.group_region] * remote
    return price


def cost_of(job: Job) -> int:
    """What stopping the job costs, as the ledger counts it."""
    hours = min(job.gpu_hours_at_risk, MOST_HOURS)
    return math.ceil(round(hours * MILLI, ROUND_OFF)) * VICTIM + 1


def _labels(labels: Iterable[str]) -> dict[str, int]:
    """Label → number, in order of first appearance."""
    return {label: number for number, label in enumerate(dict.fromkeys(labels))}


def _check_nesting(servers: Iterable[Server]) -> None:
    region_of: dict[str, str] = {}
    for server in servers:
        if region_of.setdefault(server.cluster, server.region) != server.region:
            raise UsageError(
                f"cluster {server.cluster} is in {region_of[server.cluster]} and in {server.region} "
                f"(server {server.name}); a cluster belongs to one region"
            )
