"""Inventory of the live fleet (job placement): servers, datasets and running jobs, each change with what undoes it.

Servers and jobs are known by name here, and by position in the engine's arrays.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import UsageError
from mast_opt.core.ledger import Ledger
from mast_opt.core.quotas import Quotas
from mast_opt.core.ranks import Ranks, Reclaim, Right
from mast_opt.problems.job_placement.engine import capacity_ledger as ledger
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine import state_allocation as allocation
from mast_opt.problems.job_placement.engine.arrival_mix import (
    ANY,
    ArrivalMix,
    Arrivals,
    Shape,
    server_classes,
    shape_of,
    together,
)
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, book, book_amounts
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.holding import hold
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.server_layout import Layout, lay_out
from mast_opt.problems.job_placement.engine.server_selection import Placement
from mast_opt.problems.job_placement.engine.state import HOUR_MS, EngineState
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Places, Running, cost_of, costs_of
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share, gangs_of, names_in
from mast_opt.problems.job_placement.quota_standing import best_right
from mast_opt.problems.job_placement.units import GPU, LEVELS, MOST_GPUS, WHOLE, Bools, Ints

_WORK = slice(col.J_BEGAN, col.J_LOOKED + 1)
"""Columns of a job in the engine that say what it has at risk."""
MOST_KEPT = 4096
"""Requests that are kept."""
MOST_RIGHTS = 1 << 16
"""Jobs of which the best right is kept."""


def changed(servers: Mapping[str, Server], added: Iterable[Server], removed: Iterable[str]) -> dict[str, Server]:
    """The fleet's servers without some and with others. Raises UsageError for a name that is taken, a cluster in two
    regions, and where none is left.
    """
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
    """Label of the fleet's regions or types → number, in order of first appearance."""
    return {label: number for number, label in enumerate(dict.fromkeys(labels))}


ALLOWED = (Right.WITHIN, Right.BORROWED)
"""The rights by which work may start, the best first."""


class Option(NamedTuple):
    """A right by which a job could start."""

    right: Right
    requests: tuple[Request, ...]
    """The job, or each of its parts."""
    stops: tuple[str, ...] = ()
    """Running jobs that have to stop first, lest its tenant or a group above it holds more than it may."""


class FleetInventory:
    """Everything about a fleet but its lock."""

    servers: dict[str, Server]
    layout: Layout
    supply: Ints
    """[S, 3] by position."""
    largest: int
    """Milli-GPUs of the largest server whose GPUs have numbers, at least one GPU."""

    def __init__(
        self,
        servers: Iterable[Server],
        tiers: tuple[int, ...],
        replicas: Mapping[str, Collection[str]],
        residency: Mapping[str, Collection[str]],
        remote_mb_price: float | None = None,
        mix: ArrivalMix | None = None,
        limits: SearchLimits = DEFAULT_LIMITS,
        quotas: Quotas | None = None,
        reclaim: Reclaim = Reclaim.ANY,
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
        self._rights: dict[int, tuple[Job, object, Right]] = {}
        """Identity of a job → the job, ``Ledger.basis`` and ``best_right`` then."""
        self._lay_out(changed({}, servers, ()))
        self.tiers = tiers
        self.ledger = Ledger(quotas)
        """Holdings of the jobs of tenants, and their rights."""
        self.ranks = Ranks(len(tiers), bool(quotas), reclaim)
        self.restood: dict[str, None] = {}
        """Running jobs whose right has changed since somebody looked; the ledger has the rights alone."""
        self._touched: list[str] = []
        """The servers of those whose right has changed since the last operation, for which bids are no longer valid."""
        self._late_rights: dict[str, None] = {}
        """Jobs that began in this round, whose right has changed since."""
        self.mix = mix
        """Mix of the arrivals so far; None where loss of value does not decide between servers."""
        self.limits = limits
        """Limits of the search for victims."""
        self._running: dict[str, Running] = {}
        self._late_risks: dict[str, float] = {}
        """Running job → GPU-hours at risk that ``_running`` does not have yet; the engine's state has their cost alone,
        which is rounded."""
        self._looked = False
        """Whether ``_running``, a cache in this, may be older than the work since the last checkpoint of the engine's
        state."""
        self.place: dict[str, int] = {}
        """Running job → place in the state."""
        self.name: dict[int, str] = {}
        """Place in the state → running job."""
        self.started = 0
        """Number of the next job."""
        self.blocked: set[str] = set()
        """Servers that take no work."""
        self.over_booked: set[str] = set()
        """Servers on which more runs than they have; they take no work either, lest negative room enter the totals."""
        self.state: EngineState
        self._in_order = True
        """Whether ``running`` and ``place`` are in the order in which jobs started."""
        self.log: list[tuple[Any, ...]] = []
        """Functions, each with its arguments, that undo the changes of an operation or a trial. Each is noted before
        its change, and does nothing if that has not happened."""
        self.trials = 0
        """Number of trials that go on, one in another."""
        self._load({}, None)
        self.draw()

    def _lay_out(self, named: dict[str, Server]) -> None:
        """Lay the servers of the fleet out in the order of the engine, and number regions, clusters and types."""
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
        position: list[int] = self.layout.position.tolist()
        self.position: dict[str, int] = {name: position[number] for number, name in enumerate(self.server_names)}
        self.everywhere: Bools = np.ones(len(self.layout.group_cluster), np.bool_)
        supply = np.array([server.amounts for server in servers], np.int64)
        self._supply_changed(supply[self.layout.server])
        self._open, self._asked, self._rights = {}, {}, {}

    def _supply_changed(self, supply: Ints) -> None:
        """Take in the fleet's supply of servers: the largest, and what each group has."""
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
        """[C, 5] equal servers of the fleet, see ``server_classes``."""
        if self._classes is None:
            self._classes = server_classes(self.layout.group_type[self.layout.group], self.supply)
        return self._classes

    def server_at(self, position: int) -> str:
        """Name of the fleet's server at a position of the layout."""
        return self.server_names[self.layout.server.item(position)]

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
        """[R] regions of the fleet where a job may run for all that one of its datasets says."""
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
        """[G] what a job of the fleet costs in each group; None where that is the same everywhere."""
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

    @property
    def running(self) -> dict[str, Running]:
        """The running jobs by name. What they have at risk changes often and is asked for less often than that."""
        for name, gpu_hours in self._late_risks.items():
            self._running[name] = self._running[name].but_at_risk(gpu_hours)
        self._late_risks.clear()
        if self._looked:
            self._running |= {name: self._with_work(one) for name, one in self._running.items()}
            self._looked = False  # last, lest an interruption lose what is known
        return self._running

    def shares_of(self, name: str) -> tuple[Share, ...] | None:
        """Shares of a running job; None if it does not run."""
        running = self._running.get(name)
        return None if running is None else running.shares

    def change_servers(self, added: Iterable[Server], removed: Collection[str]) -> None:
        """Lay the fleet out again, with the running jobs where they were. Nothing changes if a server is refused."""
        servers = changed(self.servers, added, removed)
        held, work = {name: self.holdings(name) for name in self.names()}, self._work_of_all()
        self._note_attributes()
        self._lay_out(servers)
        self.blocked = self.blocked.difference(removed)
        self._load(held, None)
        self._set_work_of_all(work)
        self.draw()

    def load_running(
        self,
        running: Mapping[str, Running],
        held: Mapping[str, tuple[Holding, ...]],
        places: Places | None = None,
    ) -> None:
        """Enter jobs that run already; nothing else may run yet.

        Args:
            held: in the order of ``running``.
                One for each server of a job.
            places: in the engine; None for the lowest, with the allocations in the order of the jobs.
        """
        self._running = dict(running)
        self.started = 1 + max((one.number for one in running.values()), default=-1)
        for one in running.values():
            self._hold_in_ledger(one)
        self._follow_rights()
        self.restood, self._touched = {}, []
        self._load(held, places)
        self.draw()

    def _load(self, held: Mapping[str, tuple[Holding, ...]], places: Places | None) -> None:
        """Load running jobs into a new state of the engine, at the places that they had if these are given."""
        size = 2 * len(held) + 64 if places is None else len(places.job) + len(places.free)
        supply = self.supply[self.layout.position]
        self.state = allocation.empty_state(self.layout, supply, self.ranks.levels, size, 4 * len(held) + 256)
        if places is not None:
            self.state.job[col.J_STACK, :size] = [*places.free, *reversed(places.job)]
        jobs = [self._job_row(self.running[name]) for name in held]
        every = [(number, one) for number, holdings in enumerate(held.values()) for one in holdings]
        rows = [(number, self.position[one.server], one.cpu_mcores, one.memory_mib) for number, one in every]
        device = np.zeros((len(every), self.state.row_device.shape[1]), np.int32)
        for at, (_, one) in enumerate(every):
            assert not one.device[device.shape[1] :].any(), f"GPUs of {one.server} that are in use are gone"
            device[at, : len(one.device)] = one.device[: device.shape[1]]
        order = np.arange(len(every)) if places is None else places.row
        self.state = allocation.grown(self.state, 0, len(every))
        found = ledger.load(
            self.state,
            np.array(jobs, np.int64).reshape(-1, 3),
            np.array(rows, np.int64).reshape(-1, 4)[order],
            device[order],
        )
        self.place = dict(zip(held, found.tolist()))
        self.name = {at: name for name, at in self.place.items()}
        self.freed = np.zeros((len(self.regions), len(self.types)), np.int64)
        """[R, K] how often capacity of the type appeared in the region."""
        self.over_booked = {self.server_at(s) for s in np.flatnonzero(self._are_over_booked()).tolist()}
        for name in self.blocked | self.over_booked:
            ledger.block(self.state, self.position[name], 1)

    def places(self) -> Places:
        """The places of the running jobs, in the order in which they started."""
        names = self.names()
        number = {self.place[name]: at for at, name in enumerate(names)}
        first = np.cumsum([0, *(len(self.running[name].servers) for name in names)])
        row_of = {
            (at, self.position[server]): int(first[number[at]]) + k
            for name, at in self.place.items()
            for k, server in enumerate(self.running[name].servers)
        }
        lists = [[row_of[at, s] for at in self._places_on(s)][::-1] for s in range(len(self.servers))]
        free = self.state.job[col.J_STACK, : self.state.free_places[col.N_JOBS]].tolist()
        rows = np.array([row for rows in lists for row in rows], np.int64)
        return Places(tuple(self.place[name] for name in names), tuple(free), rows)

    def _job_row(self, running: Running) -> tuple[int, int, int]:
        """Row of a running job in the engine: its tier, who may stop it, and what that costs."""
        return running.tier, self.limit_of(running), cost_of(running.job)

    def limit_of(self, running: Running) -> int:
        """Work of levels below this may stop a running job; 0 if none may."""
        tier, right = self.tiers.index(running.job.tier), Right.BORROWED if running.over_quota else Right.WITHIN
        return self.ranks.limit(tier, right, preemptible=running.job.preemptible)

    def copy(self) -> Self:
        """Copy of the fleet's inventory that can go its own way."""
        twin = copy(self)
        twin._running, twin.place, twin.name = dict(self.running), dict(self.place), dict(self.name)
        twin._late_risks = {}
        twin.ledger, twin._open, twin._asked, twin._rights = self.ledger.copy(), dict(self._open), {}, {}
        twin.restood, twin._touched, twin._late_rights = {}, [], {}
        twin.blocked, twin.over_booked, twin.replicas = set(self.blocked), set(self.over_booked), dict(self.replicas)
        twin.residency = dict(self.residency)
        twin.mix = None if self.mix is None else self.mix.copy()
        twin.state, twin.freed, twin.log, twin.trials = allocation.copied(self.state), self.freed.copy(), [], 0
        return twin

    def names(self) -> tuple[str, ...]:
        """The running jobs, in the order in which they started."""
        if not self._in_order:
            running = dict(sorted(self.running.items(), key=lambda pair: pair[1].number))
            place = {name: self.place[name] for name in running}
            old = {"_running": self._running, "place": self.place, "_in_order": False}
            self.log.append((vars(self).update, old))  # what was noted earlier is undone in the old tables
            self._running, self.place, self._in_order = running, place, True
        return tuple(self._running)

    def load_of(self, region: int) -> float:
        """Share of a region's GPUs in the fleet in use."""
        return self.state.region.item(col.R_USED, region) / max(1, self.state.region.item(col.R_MGPU, region))

    # --- quotas ---

    def set_reclaim(self, reclaim: Reclaim) -> None:
        """Set which work may stop what borrows in the fleet from now on; outside rounds."""
        self._lay_out_again(lambda: setattr(self, "ranks", replace(self.ranks, reclaim=reclaim)))

    def amounts(self, shares: Iterable[Share]) -> dict[str, int]:
        """Milli-GPUs of each type that a job's shares hold in the fleet."""
        found: dict[str, int] = {}
        for share in shares:
            kind = self.servers[share.server].gpu_type
            found[kind] = found.get(kind, 0) + sum(share.gpus.values())
        return found

    def right_of(self, job: Job, amounts: Mapping[str, int]) -> Right:
        """Right in the fleet's ledger by which a job would hold so much of each type, in the place of what runs under
        its name.
        """
        tier = self.tiers.index(job.tier)
        if not self.ledger.has(job.name) or not self.ledger.is_limited(job.tenant):
            return self.ledger.right(job.tenant, tier, amounts)
        old = self._running[job.name]
        self.log.append((self._reenter, old, self.place[job.name]))
        self.ledger.remove(job.name)
        right = self.ledger.right(job.tenant, tier, amounts)
        self._hold_in_ledger(old)
        self.ledger.take_changes()
        return right

    def level_of(self, job: Job, right: Right) -> int:
        """The level at which a job of the fleet stands by some right."""
        return self.ranks.level(self.tiers.index(job.tier), right)

    def starting(
        self, job: Job, shares: tuple[Share, ...], number: int | None = None, started_ms: int | None = None
    ) -> Running:
        """A job as it runs there, in the place of what runs under its name. ``number``: None for the next one."""
        number = self.started if number is None else number
        if not self.ledger.is_limited(job.tenant):
            return Running(job, self.tiers.index(job.tier), shares, False, number, started_ms)
        right = min(self.right_of(job, self.amounts(shares)), Right.BORROWED)
        return Running(job, self.level_of(job, right), shares, right is not Right.WITHIN, number, started_ms)

    def best_right(self, job: Job) -> Right:
        """Best right in the fleet's ledger by which a job that does not run could start."""
        known, basis = self._rights.get(id(job)), self.ledger.basis(job.tenant)
        if known is not None and known[0] is job and known[1] is basis:
            return known[2]
        asked = [self.asked_by_type(gang) for gang in gangs_of(job)]
        right = best_right(self.ledger, job.tenant, self.tiers.index(job.tier), asked)[0]
        if len(self._rights) >= MOST_RIGHTS:
            self._rights.clear()
        self._rights[id(job)] = job, basis, right
        return right

    def options(self, job: Job) -> tuple[Option, ...]:
        """The rights in the fleet's ledger by which a job could start, the best first, with the job, or each of its
        parts, as the kernels see it on the types where it has that right. None if its tenant may not hold so much.
        """
        gangs, tier = gangs_of(job), self.tiers.index(job.tier)
        if not self.ledger.is_limited(job.tenant):
            return (Option(Right.WITHIN, tuple([self.request(gang, tier) for gang in gangs])),)
        if len(gangs) > 1:
            asked = [self.asked_by_type(gang) for gang in gangs]
            best, amounts = best_right(self.ledger, job.tenant, tier, asked)
            stops = self.stops_for(job, amounts, best)
            return tuple(
                self._option(job, right, gangs, stops=stops or () if right is best else ())
                for right in ALLOWED
                if right > best or (right is best and stops is not None)
            )
        ways: dict[tuple[Right, tuple[str, ...]], set[str]] = {}
        by_type = self.asked_by_type(gangs[0])
        for kind, mgpu in by_type.items():
            right = self.right_of(job, {kind: mgpu})
            found = self.stops_for(job, {kind: mgpu}, right)
            if found is not None:
                ways.setdefault((right, found), set()).add(kind)
        if not by_type:
            ways[Right.WITHIN, ()] = set()
        return tuple(
            self._option(job, right, gangs, [kind for kind in by_type if kind not in ways[right, stops]], stops)
            for right, stops in sorted(ways, key=lambda way: (way[0], len(way[1])))
        )

    def stops_for(self, job: Job, amounts: Mapping[str, int], right: Right) -> tuple[str, ...] | None:
        """The running jobs that have to stop before a job of the fleet may hold so much by a right; None if it may not
        even then.
        """
        if right is Right.OVER:
            return None
        tier, level = self.tiers.index(job.tier), self.level_of(job, right)
        return self.ledger.displaced(job.tenant, tier, amounts, lambda one: self.limit_of(self._running[one]) > level)

    def _option(
        self, job: Job, right: Right, gangs: tuple[Job, ...], closed: Iterable[str] = (), stops: tuple[str, ...] = ()
    ) -> Option:
        """Option of a job by one right: the requests of its gangs, without the GPU types that it closes."""
        level, requests = self.level_of(job, right), []
        for gang in gangs:
            request = self.request(gang, level)
            if closed:
                mgpu = request.mgpu.copy()
                mgpu[[self.types[kind] for kind in closed]] = -1
                request = request._replace(mgpu=mgpu)
            requests.append(request)
        return Option(right, tuple(requests), stops)

    def asked_by_type(self, gang: Job) -> dict[str, int]:
        """Milli-GPUs that all tasks take on each type of the fleet that they accept."""
        needs = dict.fromkeys(self.types, gang.mgpu) if gang.gpu_types is None else gang.gpu_types
        return {kind: gang.tasks * mgpu for kind, mgpu in needs.items() if kind in self.types}

    def _hold_in_ledger(self, running: Running, ledger: Ledger | None = None) -> None:
        """Enter a running job into the ledger with what it holds, if it is a tenant's."""
        job, ledger = running.job, ledger or self.ledger
        if job.tenant:
            tier, amounts = self.tiers.index(job.tier), self.amounts(running.shares)
            ledger.add(job.name, job.tenant, tier, running.number, amounts)

    def _follow_rights(self) -> None:
        """Let running jobs stand where the ledger has them. Those that began in this round do when it ends."""
        for name in self.ledger.take_changes():
            if name in self.place and self.state.job[col.J_FRESH, self.place[name]]:
                self._put_in("_late_rights", name)
            else:
                self._restand(name)

    def _restand(self, name: str) -> None:
        """Let a running job of the fleet stand where the ledger has it."""
        old, right = self.current(name), self.ledger.standing(name)
        over = right is not Right.WITHIN
        if over == old.over_quota:
            return
        self._put_in("restood", name)
        self.log.append((self._stand, old))
        self._touched += old.servers
        self._stand(replace(old, tier=self.ranks.level(self.tiers.index(old.job.tier), right), over_quota=over))
        if name in self.place:
            for position in self.positions_of(name):
                self.capacity_appeared(position)

    def _stand(self, running: Running) -> None:
        """Let a running job have this level."""
        name = running.job.name
        self._running[name] = running
        if name in self.place:
            at = self.place[name]
            self.state.job[col.J_TIER, at] = running.tier
            places = np.array([at], np.int64)
            ledger.set_price(self.state, places, self.limit_of(running), self.state.job[col.J_COST, places])

    def take_touched(self) -> list[str]:
        """The servers of the fleet's jobs whose right has changed since the last call."""
        touched, self._touched = self._touched, []
        return touched

    def tier_of(self, level: int) -> int:
        """The tier that counts at a level of the fleet: of work that borrows, the lowest one."""
        return self.tiers[min(level, len(self.tiers) - 1)]

    def importance_of(self, level: int) -> int:
        """The fleet's importance of a level: a number like that of a tier, which goes on beyond the lowest tier for
        levels of work that borrows.
        """
        return self.tiers[level] if level < len(self.tiers) else self.tiers[-1] + 1 + level - len(self.tiers)

    def set_quotas(self, quotas: Quotas) -> None:
        """Set the fleet's quotas from now on; outside rounds. Raises UsageError, with nothing changed, for quotas that
        contradict one another.
        """
        self.log.append((self._requote, self.ledger.quotas))
        self.ledger.set_quotas(quotas)
        if quotas and not self.ranks.quotas:
            self._lay_out_again(lambda: setattr(self, "ranks", replace(self.ranks, quotas=True)))
        self._follow_rights()

    def _requote(self, quotas: Quotas) -> None:
        """Give the fleet's ledger other quotas; it is built again when it is next needed."""
        self.ledger.quotas, self.ledger.is_sound = quotas, False

    def positions_of(self, name: str) -> list[int]:
        """The servers that a running job holds something on."""
        return list(map(self.position.__getitem__, self._running[name].servers))

    def holdings(self, name: str) -> tuple[Holding, ...]:
        """Holdings of a running job on each server, in order of position."""
        state, found = self.state, []
        row = int(state.job[col.J_ROW, self.place[name]])
        while row >= 0:
            at = int(state.row[col.L_SERVER, row])
            cpu, memory = int(state.row[col.L_CPU, row]), int(state.row[col.L_MEMORY, row])
            found.append((at, Holding(self.server_at(at), cpu, memory, state.row_device[row].copy())))
            row = int(state.row[col.L_NEXT, row])
        return tuple(holding for _, holding in sorted(found, key=lambda pair: pair[0]))

    def holdings_by_share(self, name: str) -> list[Holding]:
        """Holdings of a running job without parts, in the order of its shares."""
        held = {one.server: one for one in self.holdings(name)}
        return [held[share.server] for share in self._running[name].shares]

    def jobs_on(self, server: str) -> tuple[str, ...]:
        """The jobs that hold something on a server of the fleet, in the order in which they started."""
        return self.names_of(self._places_on(self.position[server]))

    def names_of(self, places: Iterable[int]) -> tuple[str, ...]:
        """The jobs at these places of the fleet's state, in the order in which they started."""
        names = [self.name[at] for at in places]
        return tuple(sorted(names, key=lambda name: self._running[name].number) if len(names) > 1 else names)

    def _places_on(self, position: int) -> Iterator[int]:
        """Places in the engine's state of the jobs on a server."""
        row = int(self.state.server[col.S_ROW, position])
        while row >= 0:
            yield int(self.state.row[col.L_JOB, row])
            row = int(self.state.row[col.L_AFTER, row])

    def draw(self) -> None:
        """Draw samples of the fleet's arrivals; what is known of values of servers is forgotten."""
        if self.mix is not None:
            self.log.append((setattr, self.mix, "due", self.mix.due))
            self.value_by(self.mix.draw(self.types, self.classes()))

    def value_by(self, arrivals: Arrivals) -> None:
        """Value the fleet's servers by these arrivals."""
        if self.mix is None:
            return
        old, sampling = self.state, self.mix.sampling
        self.log.append((self._revalue, old))
        self.state = allocation.valued(old, arrivals, sampling.slots, sampling.memo)

    def _revalue(self, old: EngineState) -> None:
        """Restore the engine's values of servers from an earlier state."""
        self.state = allocation.restore_values(self.state, old)

    def set_supply(self, server: Server) -> bool:
        """Give the fleet's server of this name other GPUs, cores and memory, without a check of what runs there;
        returns whether the fleet had to be laid out again.
        """
        old, width = self.servers[server.name], self.state.row_device.shape[1]
        if server.gpus == old.gpus or (server.pool and old.pool) or (server.gpus <= width and not old.pool):
            self._set_supply_of(server)
            return False
        self._lay_out_again(lambda: self._lay_out({**self.servers, server.name: server}))
        return True

    def _lay_out_again(self, change: Callable[[], None]) -> None:
        """Make a change to which the arrays have to be fitted, with the running jobs where they were."""
        places = self.places()
        held, work = {name: self.holdings(name) for name in self.names()}, self._work_of_all()
        arrivals = Arrivals(self.state.sample, self.state.demand)
        self._note_attributes()
        change()
        self._load(held, places)
        self._set_work_of_all(work)
        self.value_by(arrivals)

    def _set_supply_of(self, server: Server) -> None:
        """Give a server other GPUs, cores and memory in the engine's state, with what undoes it."""
        old, at, state = self.servers[server.name], self.position[server.name], self.state
        parts = [state.slack[:, at], state.slack_device[at], state.server[:, at], state.region[col.R_MGPU]]
        parts.append(state.free_places[col.N_LARGEST : col.N_LARGEST + 1])
        self._note_member(self.over_booked, server.name)
        self.log.append((self._unset_supply, at, self.servers, self.supply, [(part, part.copy()) for part in parts]))
        state.slack[0, at] += server.cpu_mcores - old.cpu_mcores
        state.slack[1, at] += server.memory_mib - old.memory_mib
        if server.pool:
            state.slack_device[at, 0] += (server.gpus - old.gpus) * WHOLE
            state.server[col.S_SIZE, at] = server.gpus * WHOLE
        else:
            state.slack_device[at, old.gpus : server.gpus] = WHOLE
            state.slack_device[at, server.gpus : old.gpus] = 0
            state.server[col.S_DEVICES, at] = server.gpus
        state.region[col.R_MGPU, self.regions[server.region]] += (server.gpus - old.gpus) * WHOLE
        self.servers = {**self.servers, server.name: server}
        self._supply_changed(np.where(np.arange(len(self.supply))[:, None] == at, server.amounts, self.supply))
        state.free_places[col.N_LARGEST] = max(int(self.supply[:, GPU].max()), WHOLE)
        over = self._is_over_booked(at)
        (self.over_booked.add if over else self.over_booked.discard)(server.name)
        ledger.block(state, at, int(over or server.name in self.blocked))
        self.capacity_appeared(at)

    def _unset_supply(self, at: int, servers: dict[str, Server], supply: Ints, parts: list[tuple[Ints, Ints]]) -> None:
        """Undo a change of the GPUs, cores and memory of a fleet's server."""
        for part, before in parts:
            part[...] = before
        self.servers = servers
        self._supply_changed(supply)
        ledger.block(self.state, at, int(self.state.server[col.S_BLOCKED, at]))

    def _set_block(self, server: str) -> None:
        """Block a server in the engine, or open it, by what the fleet knows of it now."""
        at = self.position[server]
        old, new = int(self.state.server[col.S_BLOCKED, at]), int(server in self.blocked or server in self.over_booked)
        if old != new:
            self.log.append((self._block, at, old))
            self._block(at, new)

    def _block(self, at: int, blocked: int) -> None:
        """Set whether a server is blocked in the engine."""
        ledger.block(self.state, at, blocked)

    def _check_booking(self, servers: Iterable[str]) -> None:
        """Note which of these servers of the fleet are over-booked now, and let those take no work."""
        for server in servers:
            at = self.position[server]
            if (server in self.over_booked) != self._is_over_booked(at):
                self._note_member(self.over_booked, server)
                self.over_booked.symmetric_difference_update({server})
                self._set_block(server)

    def _are_over_booked(self, at: slice = slice(None)) -> Bools:
        """[·] whether more runs on servers of the fleet than they have."""
        state = self.state
        less = state.slack[:, at, :1] < 0, state.slack_device[at, :, :1] < 0
        over: Bools = np.logical_or(less[0].any(axis=(0, 2)), less[1].any(axis=(1, 2)))
        return over

    def _is_over_booked(self, at: int) -> bool:
        """Whether more runs on one server of the fleet than it has."""
        return bool(self._are_over_booked(slice(at, at + 1))[0])

    def stop_taking(self, server: str) -> None:
        """Let a server of the fleet take no work."""
        self._note_member(self.blocked, server)
        self.blocked.add(server)
        self._set_block(server)

    def take_again(self, server: str) -> None:
        """Let a server of the fleet take work again."""
        self._note_member(self.blocked, server)
        self.blocked.discard(server)
        self._set_block(server)
        self.capacity_appeared(self.position[server])

    def out_of_service(self) -> Bools:
        """[S] by position: servers of the fleet that take no work."""
        blocked: Bools = self.state.server[col.S_BLOCKED] == 1
        return blocked

    def capacity_appeared(self, position: int) -> None:
        """Note that something was freed on a server of the fleet."""
        group = self.state.server.item(col.S_GROUP, position)
        self.freed[self.layout.group_region.item(group), self.layout.group_type.item(group)] += 1

    # --- undoing ---

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """A block in which all changes of the fleet are undone at the end, last changes first, at a cost in proportion
        to what changed.
        """
        mark, before = len(self.log), (self.freed, self.limits, self.trials)
        try:
            self.freed, self.trials = self.freed.copy(), self.trials + 1
            yield
        finally:
            try:
                self.roll_back(mark)
            finally:
                self.freed, self.limits, self.trials = before

    def roll_back(self, mark: int) -> None:
        """Undo the fleet's changes that have been noted since the log had this length, also if that is interrupted."""
        try:
            self._undo(mark)
        except BaseException:
            self._undo(mark)
            raise

    def _undo(self, mark: int) -> None:
        """Undo changes of the fleet, last ones first, until so many are noted."""
        while len(self.log) > mark:
            undo, *values = self.log[-1]
            undo(*values)
            self.log.pop()
        if not self.ledger.is_sound:
            ledger = Ledger(self.ledger.quotas)
            for one in self._running.values():
                self._hold_in_ledger(one, ledger)
            self.ledger = ledger
        self.ledger.take_changes()
        self._touched = []

    def _put_in(self, table: str, name: str) -> None:
        """Put a name into a table of the fleet's inventory, with what undoes it."""
        names: dict[str, None] = getattr(self, table)
        if name not in names:
            self.log.append((self._drop, table, name))
            names[name] = None

    def _drop(self, table: str, name: str) -> None:
        """Take a name out of a table of the fleet's inventory."""
        getattr(self, table).pop(name, None)

    def _note_member(self, names: set[str], name: str) -> None:
        """Note how to undo that a name enters or leaves a set of the inventory."""
        self.log.append((names.add if name in names else names.discard, name))

    def _note_attributes(self) -> None:
        """Note attributes of the fleet's inventory, before they are set while the objects that they had stay as they
        are.
        """
        self.log.append((vars(self).update, {**vars(self), "_in_order": False}))

    def expect(self, jobs: Iterable[Job]) -> None:
        """Count jobs as arrivals of the fleet before any has come."""
        for job in jobs:
            self._count_arrival(job)
        self.draw()

    def count_arrival(self, job: Job) -> None:
        """Count a job in the fleet's mix of arrivals."""
        if self._count_arrival(job):
            self.draw()

    def _count_arrival(self, job: Job) -> bool:
        """Count a job as an arrival of the fleet; whether samples are due."""
        if self.mix is None:
            return False
        due = False
        for gang in gangs_of(job):
            needs = {ANY: gang.mgpu} if gang.gpu_types is None else gang.gpu_types
            close = together(LEVELS.index(gang.within), LEVELS.index(gang.prefer))
            shape, count = shape_of(needs, gang.cpu_mcores, gang.memory_mib, gang.tasks, close, self.largest)
            mix = self.mix
            self.log.append((self._uncount, shape, mix.counts, mix.counts.get(shape), mix.total, mix.due))
            due |= mix.add(shape, count)
        return due

    def _uncount(self, shape: Shape, counts: dict[Shape, int], count: int | None, total: int, due: int) -> None:
        """Undo that a job was counted in the mix of arrivals."""
        assert self.mix is not None
        self.mix.counts, self.mix.total, self.mix.due = counts, total, due
        counts.pop(shape, None) if count is None else counts.__setitem__(shape, count)

    def start(
        self, running: Running, request: Request, placed: Placement, victims: tuple[str, ...], fresh: bool
    ) -> None:
        """Stop the victims and start a job without parts; see ``take`` of the engine. Raises UsageError, with nothing
        changed, if there is no room."""
        self._start(running, victims, fresh, running.shares, book, request, placed)

    def start_parts(self, running: Running, held: tuple[Holding, ...], victims: tuple[str, ...], fresh: bool) -> None:
        """Start a job that holds this, one for each of its servers."""
        self._start(running, victims, fresh, held, book_amounts, running.tier, *self._rows(held))

    def _start(
        self,
        running: Running,
        victims: tuple[str, ...],
        fresh: bool,
        rows: Sequence[Share] | Sequence[Holding],
        kernel: Callable[..., int],
        *placed: object,
    ) -> None:
        """Stop the victims of a bid and start its job, which the kernel books on these rows. Raises UsageError, with
        nothing changed, where there is no room.
        """
        self.make_room(1, len(rows))
        job, places = running.job, [self.place[name] for name in victims]
        ended = [self.current(name) for name in victims]
        stopped = [allocation.Stopped.of(self.state, place, self._last_of_victim(place, fresh)) for place in places]
        left = self._places_left()
        at = places[-1] if places else self._next_place(left)
        self.log.append((self._unbook, running, at, self.started, ended, stopped, left))
        victim = np.array(places, np.int64) if places else NOBODY
        at = kernel(self.state, *placed, victim, self.limit_of(running), cost_of(job), fresh)
        if at < 0:
            server = rows[-1 - at].server
            tasks = sum(share.tasks for share in running.shares if share.server == server)
            raise UsageError(
                f"the bid for {job.name}: {server} has no room for {tasks} of its tasks there; ask for a new bid"
            )
        for name in victims:
            self._forget(name)
        self._enter(running, at)
        self._follow_rights()
        self.started += 1
        if self._count_arrival(job):
            self.draw()

    def _next_place(self, left: int) -> int:
        """The place in the fleet's state that the next job gets, where so many are left."""
        return self.state.job.item(col.J_STACK, left - 1)

    def _last_of_victim(self, place: int, fresh: bool) -> int:
        """The last tier that may use what a victim frees; see ``stop_all`` of the engine."""
        if not fresh:
            return self.ranks.levels - 1
        job = self.state.job
        return int(job.item(col.J_TIER, place)) - int(job.item(col.J_FRESH, place) == 0)

    def _unbook(
        self,
        running: Running,
        at: int,
        started: int,
        ended: Sequence[Running] = (),
        stopped: Sequence[allocation.Stopped] = (),
        left: int = 0,
    ) -> None:
        """Undo that a job starts at a place of the state, where the last of its victims was if it has any.

        Args:
            left: places that were free before.
        """
        name = running.job.name
        self._running.pop(name, None)
        self.place.pop(name, None)
        self.name.pop(at, None)
        if self.ledger.is_sound and self.ledger.has(name):
            self.ledger.remove(name)
        if self.state.job[col.J_TIER, at] == running.tier:
            self._free(at)
        self._resume(stopped, left)
        for one, held in zip(ended, stopped):
            self._reenter(one, held.place)
        self.started = started

    def _free(self, at: int) -> None:
        """Stop what runs at a place of the fleet's state, if something does."""
        if self.state.job[col.J_ROW, at] >= 0:
            ledger.stop(self.state, at, ledger.last_tier_of(self.state, at))

    def _places_left(self) -> int:
        """Number of places for jobs that the engine's state has left."""
        return self.state.free_places.item(col.N_JOBS)

    def _resume(self, stopped: Sequence[allocation.Stopped], left: int) -> None:
        """Let those of these jobs of the fleet run again that are stopped: as many places are free as there were
        before, and theirs. They came free in this order.
        """
        allocation.resume_all(self.state, stopped[: self._places_left() - left])

    def _reenter(self, running: Running, at: int) -> None:
        """Enter a job as it was, whatever it is now."""
        name = running.job.name
        self._in_order &= name in self._running
        self._running[name], self.place[name], self.name[at] = running, at, name
        if self.ledger.is_sound:
            if self.ledger.has(name):
                self.ledger.remove(name)
            self._hold_in_ledger(running)

    def end(self, name: str) -> None:
        """Let a job of the fleet end; it never was if it was placed in this round."""
        self._stop(name)
        self._forget(name)
        self._follow_rights()

    @contextmanager
    def without(self, names: Iterable[str], *, fresh: bool) -> Iterator[None]:
        """A block in which these running jobs are stopped in the fleet's engine, as victims of a bid are."""
        mark = len(self.log)
        try:
            for name in names:
                self._stop(name, self._last_of_victim(self.place[name], fresh))
            yield
        finally:
            self.roll_back(mark)

    def _stop(self, name: str, last: int | None = None) -> None:
        """Stop a running job in the fleet's engine, with what undoes it. ``last``: the last tier that may use what it
        frees; None for that of a job that ends.
        """
        at = self.place[name]
        last = ledger.last_tier_of(self.state, at) if last is None else last
        self.log.append(
            (self._unstop, self.current(name), allocation.Stopped.of(self.state, at, last), self._places_left())
        )
        ledger.stop(self.state, at, last)

    def _unstop(self, running: Running, held: allocation.Stopped, left: int) -> None:
        """Undo that a running job was stopped."""
        self._resume((held,), left)
        self._reenter(running, held.place)

    def hold(self, running: Running, held: tuple[Holding, ...]) -> None:
        """Let a job of the fleet start and hold this, whether there is room for it or not; outside rounds."""
        self.make_room(1, len(held))
        self.log.append((self._unbook, running, self._next_place(self._places_left()), self.started))
        self._enter(running, self._hold(running, held, False))
        self._follow_rights()
        self.started += 1
        self._check_booking(one.server for one in held)

    def _hold(self, running: Running, held: tuple[Holding, ...], fresh: bool) -> int:
        """Hold the servers of a running job in the engine; returns its place."""
        rows, device = self._rows(held)
        return int(hold(self.state, *self._job_row(running), rows, device, fresh))

    def _rows(self, held: tuple[Holding, ...]) -> tuple[Ints, NDArray[np.int32]]:
        """Holdings as the engine has them."""
        rows = [(self.position[one.server], one.cpu_mcores, one.memory_mib) for one in held]
        return np.array(rows, np.int64), np.array([one.device for one in held], np.int32)

    def swap(self, running: Running, held: tuple[Holding, ...], fresh: bool) -> None:
        """Let a running job of the fleet hold this from now on, whether there is room for it or not. ``fresh``: in a
        round.
        """
        name = running.job.name
        old, work = self._running[name], self.state.job[_WORK, self.place[name]].copy()
        work[-1] = -1  # what was looked at went by the GPUs that it held
        self._stop(name)
        if old.job.tenant:
            self.ledger.remove(name)
        self._running[name] = running
        self._hold_in_ledger(running)
        self.make_room(1, len(held))
        self.log.append((self._free, self.place[name]))
        self.state.job[_WORK, self._hold(running, held, fresh)] = work
        self._follow_rights()
        servers = {one.server: None for one in (*old.shares, *running.shares)}
        for server in servers:
            self.capacity_appeared(self.position[server])
        self._check_booking(servers)

    def make_room(self, jobs: int, rows: int) -> None:
        """Have free places for so many jobs and allocations."""
        old, free = self.state, self.state.free_places
        if jobs > free.item(col.N_JOBS) or rows > free.item(col.N_ROWS):
            self.log.append((self._unroom, old, free.copy()))
            self.state = allocation.grown(old, jobs, rows)

    def _unroom(self, old: EngineState, free: Ints) -> None:
        """Undo that the engine's state was given more room."""
        self.state = allocation.restore_arrays(self.state, old, free)

    def _enter(self, running: Running, at: int) -> None:
        """Enter a running job into the inventory at a place of the engine's state, and into the ledger."""
        name = running.job.name
        self._running[name], self.place[name], self.name[at] = running, at, name
        self._hold_in_ledger(running)

    def _strike(self, name: str) -> None:
        """Strike a job that runs no more from the fleet's inventory and the ledger."""
        for table, names in (("_late_rights", self._late_rights), ("restood", self.restood)):
            if name in names:
                self.log.append((setattr, self, table, dict(names)))
                self._drop(table, name)
        self._late_risks.pop(name, None)
        if self._running.pop(name).job.tenant:
            self.ledger.remove(name)
        del self.name[self.place.pop(name)]

    def _forget(self, name: str) -> None:
        """Forget a job of the fleet that has ended: its capacity appears, and over-booked servers may take
        work again.
        """
        for position in self.positions_of(name):
            self.capacity_appeared(position)
        servers = [share.server for share in self._running[name].shares] if self.over_booked else ()
        self._strike(name)
        self._check_booking(servers)

    def current(self, name: str) -> Running:
        """A running job with what it has at risk now."""
        if name in self._late_risks:
            self._running[name] = self._running[name].but_at_risk(self._late_risks[name])
            del self._late_risks[name]
        if self._looked:
            self._running[name] = self._with_work(self._running[name])
        return self._running[name]

    def _with_work(self, one: Running) -> Running:
        """A running job with its work at risk, if the engine's state has looked at that."""
        mgpu = int(self.state.job[col.J_MGPU, at := self.place[one.job.name]])
        began_ms, every_ms, looked_ms = self.state.job[_WORK, at].tolist()
        if began_ms < 0 or looked_ms < 0:
            return one
        gpu_hours = max(0, looked_ms - began_ms) % (every_ms or 1) * mgpu / (WHOLE * HOUR_MS)
        return one if gpu_hours == one.job.gpu_hours_at_risk else one.but_at_risk(gpu_hours)

    def set_work(self, name: str, began_ms: int, checkpoint_ms: int) -> None:
        """Set since when a running job works, and how often it saves that; −1: nobody knows."""
        self._running[name], at = self.current(name), self.place[name]
        work = self.state.job[_WORK, at]
        self.log.append((self._restore_work, at, work.copy()))
        self._restore_work(at, [began_ms, checkpoint_ms, -1])

    def _restore_work(self, at: int, work: Sequence[int] | Ints) -> None:
        """Set what the engine knows of the work of the job at a place."""
        self.state.job[_WORK, at] = work

    def _work_of_all(self) -> dict[str, Ints]:
        """Work of each running job as the engine knows it, to be set again when its state is built anew."""
        known = {name: self.state.job[_WORK, self.place[name]].copy() for name in self.running}
        return {name: work for name, work in known.items() if work[0] >= 0}

    def _set_work_of_all(self, known: Mapping[str, Ints]) -> None:
        """Set what the engine knows of the work of running jobs."""
        for name, work in known.items():
            self._restore_work(self.place[name], work)

    def look_at_work(self, regions: Bools, now_ms: int) -> None:
        """Let the work since the last checkpoint be at risk in all jobs of these regions [R] whose work is known."""
        before = dict(self.running) if self.trials else {}
        self.log.append((self._unlook, before, self.state.job[[col.J_COST, col.J_LOOKED]]))
        self._looked = True
        ledger.look_at_work(self.state, regions, now_ms)

    def _unlook(self, running: Mapping[str, Running], columns: Ints) -> None:
        """Undo that other work was set at risk."""
        self._running.update(running)
        self.state.job[[col.J_COST, col.J_LOOKED]] = columns
        ledger.refresh_all(self.state)

    def set_at_risk(self, gpu_hours: Mapping[str, float]) -> None:
        """Set the GPU-hours that would be lost if these running jobs were stopped now."""
        places = np.array([self.place[name] for name in gpu_hours], np.int64)
        costs = costs_of(np.fromiter(gpu_hours.values(), np.float64, len(gpu_hours)))
        before = [(name, self._running[name], self._late_risks.get(name)) for name in gpu_hours]
        looked_ms = self.state.job[col.J_LOOKED, places]
        self.log.append((self._unset_risks, before, places, self.state.job[col.J_COST, places], looked_ms))
        ledger.set_costs(self.state, places, costs)
        self.state.job[col.J_LOOKED, places] = -1
        self._late_risks.update(gpu_hours)

    def _unset_risks(
        self, before: Iterable[tuple[str, Running, float | None]], places: Ints, costs: Ints, looked_ms: Ints
    ) -> None:
        """Undo that other GPU-hours were set at risk for running jobs."""
        for name, running, late in before:
            self._running[name] = running
            self._late_risks.pop(name, None)
            if late is not None:
                self._late_risks[name] = late
        ledger.set_costs(self.state, places, costs)
        self.state.job[col.J_LOOKED, places], self._looked = looked_ms, True

    def begin_round(self) -> None:
        """Begin a round of the fleet: let tiers find different room on a server."""
        self.log.append((self.state.free_places.__setitem__, col.N_ROUND, 0))
        self.state.free_places[col.N_ROUND] = 1

    def end_round(self) -> None:
        """End the round: what victims left is free for all. To be called again if it was interrupted."""
        if self.trials:
            self.log.append((self._unsettle, allocation.copied(self.state)))
        self.state.free_places[col.N_ROUND] = 0
        ledger.settle(self.state)
        self.freed += 1
        for name in self._late_rights:
            self._restand(name)
        self.log.append((setattr, self, "_late_rights", self._late_rights))
        self._late_rights = {}

    def _unsettle(self, before: tuple[Any, ...]) -> None:
        """Undo the end of a round in the engine's state."""
        for at, was in enumerate(before):
            self.state[at][...] = was

    def set_replicas(self, dataset: str, regions: Collection[str], residency: Collection[str] | None = None) -> None:
        """Set, in the fleet, the regions that hold a dataset from now on, and its residency as in ``Fleet``."""
        held, was = names_in(f"replicas of {dataset}", regions), self.residency.get(dataset)
        allowed = was if residency is None else names_in(f"residency of {dataset}", residency) or None
        self.log.append((self._set_replicas, dataset, self.replicas.get(dataset), was))
        self._set_replicas(dataset, held, allowed)

    def _set_replicas(self, dataset: str, regions: frozenset[str] | None, residency: frozenset[str] | None) -> None:
        """Set, in the fleet, the regions of a dataset and its residency, or (None) forget them, and what followed."""
        for table, value in ((self.replicas, regions), (self.residency, residency)):
            table.pop(dataset, None) if value is None else table.__setitem__(dataset, value)
        self._open.pop(dataset, None)
        self._asked.clear()
