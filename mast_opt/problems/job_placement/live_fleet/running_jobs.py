"""Running jobs of the live fleet (job placement): by name, and their places in the engine's arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from mast_opt.core.ledger import Ledger, Ranks, Reclaim, Right
from mast_opt.core.quotas import Quotas
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix, Arrivals
from mast_opt.problems.job_placement.engine.capacity_ledger import (
    block,
    load,
    set_price,
)
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.state import (
    J_COST,
    J_FRESH,
    J_ROW,
    J_STACK,
    J_TIER,
    L_AFTER,
    L_CPU,
    L_JOB,
    L_MEMORY,
    L_NEXT,
    L_SERVER,
    N_JOBS,
    N_LARGEST,
    R_MGPU,
    R_USED,
    S_BLOCKED,
    S_DEVICES,
    S_GROUP,
    S_ROW,
    S_SIZE,
    EngineState,
)
from mast_opt.problems.job_placement.engine.state_allocation import copied, empty_state, grown, valued
from mast_opt.problems.job_placement.engine.stopped_job import restore_values
from mast_opt.problems.job_placement.live_fleet.part_gangs import gangs_of
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Places, Running, cost_of
from mast_opt.problems.job_placement.live_fleet.server_inventory import ServerInventory, changed
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from mast_opt.problems.job_placement.quota_standing import best_right
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools

ALLOWED = (Right.WITHIN, Right.BORROWED)
"""The rights by which work may start, the best first."""


class Option(NamedTuple):
    """A right by which a job could start."""

    right: Right
    requests: tuple[Request, ...]
    """The job, or each of its parts."""


class RunningJobs(ServerInventory):
    """Running jobs of a fleet's servers, and the engine's state of them."""

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
        super().__init__(servers, replicas, residency, remote_mb_price)
        self.tiers = tiers
        self.ledger = Ledger(quotas)
        """Holdings of the jobs of tenants, and their rights."""
        self.ranks = Ranks(len(tiers), bool(quotas), reclaim)
        self.restood: dict[str, None] = {}
        """Running jobs whose right has changed since somebody looked."""
        self._touched: list[str] = []
        """The servers of those whose right has changed since the last operation."""
        self._late_rights: dict[str, None] = {}
        """Jobs that began in this round, whose right has changed since."""
        self.mix = mix
        """Mix of the arrivals so far; None where loss of value does not decide between servers."""
        self.limits = limits
        """Limits of the search for victims."""
        self._running: dict[str, Running] = {}
        self._late_risks: dict[str, float] = {}
        """Running job → GPU-hours at risk that the engine's state knows and ``_running`` does not yet."""
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
        self._undo: list[Callable[[], None]] | None = None
        """Functions that undo each change of a trial; None outside one."""
        self._load({}, None)
        self.draw()

    @property
    def running(self) -> dict[str, Running]:
        """The running jobs by name. What they have at risk changes often and is asked for less often than that."""
        for name, gpu_hours in self._late_risks.items():
            self._running[name] = self._running[name].but_at_risk(gpu_hours)
        self._late_risks.clear()
        return self._running

    def shares_of(self, name: str) -> tuple[Share, ...] | None:
        """Shares of a running job; None if it does not run."""
        running = self._running.get(name)
        return None if running is None else running.shares

    def change_servers(self, added: Iterable[Server], removed: Collection[str]) -> None:
        """Lay the fleet out again, with the running jobs where they were. Nothing changes if a server is refused."""
        servers = changed(self.servers, added, removed)
        held = {name: self.holdings(name) for name in self.names()}
        self._undoing_attributes()
        self._lay_out(servers)
        self.blocked.difference_update(removed)
        self._load(held, None)
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
        size = 2 * len(held) + 64 if places is None else len(places.job) + len(places.free)
        supply = self.supply[self.layout.position]
        self.state = empty_state(self.layout, supply, self.ranks.levels, size, 4 * len(held) + 256)
        if places is not None:
            self.state.job[J_STACK, :size] = [*places.free, *reversed(places.job)]
        jobs = [self._job_row(self.running[name]) for name in held]
        every = [(number, one) for number, holdings in enumerate(held.values()) for one in holdings]
        rows = [(number, self.position[one.server], one.cpu_mcores, one.memory_mib) for number, one in every]
        device = np.zeros((len(every), self.state.row_device.shape[1]), np.int32)
        for at, (_, one) in enumerate(every):
            assert not one.device[device.shape[1] :].any(), f"GPUs of {one.server} that are in use are gone"
            device[at, : len(one.device)] = one.device[: device.shape[1]]
        order = np.arange(len(every)) if places is None else places.row
        self.state = grown(self.state, 0, len(every))
        found = load(
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
            block(self.state, self.position[name], 1)

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
        free = self.state.job[J_STACK, : self.state.free_places[N_JOBS]].tolist()
        rows = np.array([row for rows in lists for row in rows], np.int64)
        return Places(tuple(self.place[name] for name in names), tuple(free), rows)

    def _job_row(self, running: Running) -> tuple[int, int, int]:
        return running.tier, self.limit_of(running), cost_of(running.job)

    def limit_of(self, running: Running) -> int:
        """Work of levels below this may stop a running job; 0 if none may."""
        tier, right = self.tiers.index(running.job.tier), Right.BORROWED if running.over_quota else Right.WITHIN
        return self.ranks.limit(tier, right, preemptible=running.job.preemptible)

    def copy(self) -> Self:
        """Books that can go their own way."""
        twin = copy(self)
        twin._running, twin.place, twin.name = dict(self.running), dict(self.place), dict(self.name)
        twin._late_risks = {}
        twin.ledger, twin._open, twin._asked = self.ledger.copy(), dict(self._open), {}
        twin.restood, twin._touched, twin._late_rights = {}, [], {}
        twin.blocked, twin.over_booked, twin.replicas = set(self.blocked), set(self.over_booked), dict(self.replicas)
        twin.mix = None if self.mix is None else self.mix.copy()
        twin.state, twin.freed, twin._undo = copied(self.state), self.freed.copy(), None
        return twin

    def names(self) -> tuple[str, ...]:
        """The running jobs, in the order in which they started."""
        if not self._in_order:
            running = dict(sorted(self.running.items(), key=lambda pair: pair[1].number))
            place = {name: self.place[name] for name in running}
            self._running.clear()
            self._running.update(running)
            self.place.clear()
            self.place.update(place)
            self._in_order = True
        return tuple(self._running)

    def load_of(self, region: int) -> float:
        """Share of the region's GPUs in use."""
        every = int(self.state.region[R_MGPU, region])
        return int(self.state.region[R_USED, region]) / every if every else 0.0

    # --- quotas ---

    def amounts(self, shares: Iterable[Share]) -> dict[str, int]:
        """Milli-GPUs of each type that shares hold."""
        found: dict[str, int] = {}
        for share in shares:
            kind = self.servers[share.server].gpu_type
            found[kind] = found.get(kind, 0) + sum(share.gpus.values())
        return found

    def right_of(self, job: Job, amounts: Mapping[str, int]) -> Right:
        """Right by which a job would hold so much of each type, in the place of what runs under its name."""
        old, tier = self._running.get(job.name), self.tiers.index(job.tier)
        if old is None or not self.ledger.is_limited(job.tenant):
            return self.ledger.right(job.tenant, tier, amounts)
        self.ledger.remove(job.name)
        right = self.ledger.right(job.tenant, tier, amounts)
        self._hold_in_ledger(old)
        self.ledger.take_changes()
        return right

    def level_of(self, job: Job, right: Right) -> int:
        """The level at which a job stands by some right."""
        return self.ranks.level(self.tiers.index(job.tier), right)

    def starting(self, job: Job, shares: tuple[Share, ...], number: int | None = None) -> Running:
        """A job as it runs there, in the place of what runs under its name. ``number``: None for the next one."""
        right = Right.WITHIN
        if self.ledger.is_limited(job.tenant):
            right = self.right_of(job, self.amounts(shares))
        number = self.started if number is None else number
        return Running(job, self.level_of(job, right), shares, right is not Right.WITHIN, number)

    def is_over_quota(self, name: str) -> bool:
        """Whether a running job is beyond the quotas of its tenant."""
        return self._running[name].over_quota

    def best_right(self, job: Job) -> Right:
        """Best right by which a job that does not run could start."""
        if not self.ledger.is_limited(job.tenant):
            return Right.WITHIN
        asked = [self._asked_by_type(gang) for gang in gangs_of(job)]
        return best_right(self.ledger, job.tenant, self.tiers.index(job.tier), asked)[0]

    def options(self, job: Job) -> tuple[Option, ...]:
        """The rights by which a job could start, the best first, with the job, or each of its parts, as the kernels see
        it on the types where it has that right. None if its tenant may not hold so much."""
        gangs = gangs_of(job)
        if not self.ledger.is_limited(job.tenant):
            return (self._option(job, Right.WITHIN, gangs),)
        if len(gangs) > 1:
            best = self.best_right(job)
            return tuple(self._option(job, right, gangs) for right in ALLOWED if right >= best)
        by_type = {kind: self.right_of(job, {kind: mgpu}) for kind, mgpu in self._asked_by_type(gangs[0]).items()}
        rights = set(by_type.values()) or {Right.WITHIN}
        return tuple(
            self._option(job, right, gangs, [kind for kind, other in by_type.items() if other is not right])
            for right in ALLOWED
            if right in rights
        )

    def _option(self, job: Job, right: Right, gangs: tuple[Job, ...], closed: Iterable[str] = ()) -> Option:
        level, requests = self.level_of(job, right), []
        for gang in gangs:
            request = self.request(gang, level)
            if closed:
                mgpu = request.mgpu.copy()
                mgpu[[self.types[kind] for kind in closed]] = -1
                request = request._replace(mgpu=mgpu)
            requests.append(request)
        return Option(right, tuple(requests))

    def _asked_by_type(self, gang: Job) -> dict[str, int]:
        """Milli-GPUs that all tasks take on each type of the fleet that they accept."""
        needs = dict.fromkeys(self.types, gang.mgpu) if gang.gpu_types is None else gang.gpu_types
        return {kind: gang.tasks * mgpu for kind, mgpu in needs.items() if kind in self.types}

    def _hold_in_ledger(self, running: Running) -> None:
        job = running.job
        tier, amounts = self.tiers.index(job.tier), self.amounts(running.shares) if job.tenant else {}
        self.ledger.add(job.name, job.tenant, tier, running.number, amounts)

    def _follow_rights(self) -> None:
        """Let running jobs stand where the ledger has them. Those that began in this round do when it ends."""
        for name in self.ledger.take_changes():
            if name in self.place and self.state.job[J_FRESH, self.place[name]]:
                self._late_rights[name] = None
            else:
                self._restand(name)

    def _restand(self, name: str) -> Running | None:
        """Let a job stand where the ledger has it; returns what it was before, None if it stood there already."""
        old, right = self._running[name], self.ledger.standing(name)
        over = right is not Right.WITHIN
        if over == old.over_quota:
            return None
        level = self.ranks.level(self.tiers.index(old.job.tier), right)
        new = self._running[name] = replace(old, tier=level, over_quota=over)
        self.restood[name] = None
        self._touched += old.servers
        if name in self.place:
            self._set_rank(new)
            for position in self.positions_of(name):
                self.capacity_appeared(position)
        return old

    def take_touched(self) -> list[str]:
        """The servers of jobs whose right has changed since the last call."""
        touched, self._touched = self._touched, []
        return touched

    def tier_of(self, level: int) -> int:
        """The tier that counts at a level: of work that borrows, the lowest one."""
        return self.tiers[min(level, len(self.tiers) - 1)]

    def importance_of(self, level: int) -> int:
        """A number like that of a tier, which goes on beyond the lowest tier for levels of work that borrows."""
        return self.tiers[level] if level < len(self.tiers) else self.tiers[-1] + 1 + level - len(self.tiers)

    def _set_rank(self, running: Running) -> None:
        at = self.place[running.job.name]
        self.state.job[J_TIER, at] = running.tier
        places = np.array([at], np.int64)
        set_price(self.state, places, self.limit_of(running), self.state.job[J_COST, places])

    def set_quotas(self, quotas: Quotas) -> None:
        """The quotas from now on; outside rounds. Raises UsageError, with nothing changed, for quotas that contradict
        one another."""
        old = self.ledger.quotas
        self.ledger.set_quotas(quotas)
        self._undoing(self._follow_rights)
        self._undoing(lambda: self.ledger.set_quotas(old))
        if quotas and not self.ranks.quotas:
            self._lay_out_again(lambda: setattr(self, "ranks", replace(self.ranks, quotas=True)))
        self._follow_rights()

    def positions_of(self, name: str) -> list[int]:
        """The servers that a running job holds something on."""
        return list(map(self.position.__getitem__, self._running[name].servers))

    def holdings(self, name: str) -> tuple[Holding, ...]:
        """Holdings of a running job on each server, in order of position."""
        state, found = self.state, []
        row = int(state.job[J_ROW, self.place[name]])
        while row >= 0:
            at = int(state.row[L_SERVER, row])
            cpu, memory = int(state.row[L_CPU, row]), int(state.row[L_MEMORY, row])
            found.append((at, Holding(self.server_at(at), cpu, memory, state.row_device[row].copy())))
            row = int(state.row[L_NEXT, row])
        return tuple(holding for _, holding in sorted(found, key=lambda pair: pair[0]))

    def holdings_by_share(self, name: str) -> list[Holding]:
        """Holdings of a running job without parts, in the order of its shares."""
        held = {one.server: one for one in self.holdings(name)}
        return [held[share.server] for share in self._running[name].shares]

    def jobs_on(self, server: str) -> tuple[str, ...]:
        """The jobs that hold something on a server, in the order in which they started."""
        return self.names_of(self._places_on(self.position[server]))

    def names_of(self, places: Iterable[int]) -> tuple[str, ...]:
        """The jobs at these places of the state, in the order in which they started."""
        return tuple(sorted((self.name[int(at)] for at in places), key=lambda name: self._running[name].number))

    def _places_on(self, position: int) -> Iterator[int]:
        row = int(self.state.server[S_ROW, position])
        while row >= 0:
            yield int(self.state.row[L_JOB, row])
            row = int(self.state.row[L_AFTER, row])

    def draw(self) -> None:
        """Draw samples of arrivals; what is known of values of servers is forgotten."""
        if self.mix is not None:
            self.value_by(self.mix.draw(self.types, self.classes()))

    def value_by(self, arrivals: Arrivals) -> None:
        """Value servers by these arrivals."""
        if self.mix is None:
            return
        old, sampling = self.state, self.mix.sampling
        self.state = valued(old, arrivals, sampling.slots, sampling.memo)
        self._undoing(lambda: setattr(self, "state", restore_values(self.state, old)))

    def set_supply(self, server: Server) -> bool:
        """Give the server of this name other GPUs, cores and memory, without a check of what runs there; returns
        whether the fleet had to be laid out again."""
        old, width = self.servers[server.name], self.state.row_device.shape[1]
        if server.gpus == old.gpus or (server.pool and old.pool) or (server.gpus <= width and not old.pool):
            at = self.position[server.name]
            blocked = int(self.state.server[S_BLOCKED, at])
            self._set_supply_of(server)
            self._undoing(lambda: block(self.state, at, blocked))
            self._undoing(lambda: self._set_supply_of(old))
            return False
        self._lay_out_again(lambda: self._lay_out({**self.servers, server.name: server}))
        return True

    def _lay_out_again(self, change: Callable[[], None]) -> None:
        """Make a change to which the arrays have to be fitted, with the running jobs where they were."""
        places = self.places()
        held = {name: self.holdings(name) for name in self.names()}
        arrivals = Arrivals(self.state.sample, self.state.demand)
        self._undoing_attributes()
        change()
        self._load(held, places)
        self.value_by(arrivals)

    def _set_supply_of(self, server: Server) -> None:
        old, at, state = self.servers[server.name], self.position[server.name], self.state
        state.slack[0, at] += server.cpu_mcores - old.cpu_mcores
        state.slack[1, at] += server.memory_mib - old.memory_mib
        if server.pool:
            state.slack_device[at, 0] += (server.gpus - old.gpus) * WHOLE
            state.server[S_SIZE, at] = server.gpus * WHOLE
        else:
            state.slack_device[at, old.gpus : server.gpus] = WHOLE
            state.slack_device[at, server.gpus : old.gpus] = 0
            state.server[S_DEVICES, at] = server.gpus
        state.region[R_MGPU, self.regions[server.region]] += (server.gpus - old.gpus) * WHOLE
        self.servers = {**self.servers, server.name: server}
        self._supply_changed(np.where(np.arange(len(self.supply))[:, None] == at, server.amounts, self.supply))
        state.free_places[N_LARGEST] = max(int(self.supply[:, GPU].max()), WHOLE)
        over = self._is_over_booked(at)
        (self.over_booked.add if over else self.over_booked.discard)(server.name)
        block(state, at, int(over or server.name in self.blocked))
        self.capacity_appeared(at)

    def _set_block(self, server: str) -> None:
        at = self.position[server]
        old, new = int(self.state.server[S_BLOCKED, at]), int(server in self.blocked or server in self.over_booked)
        if old != new:
            block(self.state, at, new)
            self._undoing(lambda: block(self.state, at, old))

    def _check_booking(self, servers: Iterable[str]) -> None:
        """Note which of these servers are over-booked now, and let those take no work."""
        for server in servers:
            at = self.position[server]
            if (server in self.over_booked) != self._is_over_booked(at):
                self.over_booked.symmetric_difference_update({server})
                self._set_block(server)

    def _are_over_booked(self, at: slice = slice(None)) -> Bools:
        """[·] whether more runs on servers than they have."""
        state = self.state
        less = state.slack[:, at, :1] < 0, state.slack_device[at, :, :1] < 0
        over: Bools = np.logical_or(less[0].any(axis=(0, 2)), less[1].any(axis=(1, 2)))
        return over

    def _is_over_booked(self, at: int) -> bool:
        return bool(self._are_over_booked(slice(at, at + 1))[0])

    def stop_taking(self, server: str) -> None:
        """Let a server take no work."""
        self.blocked.add(server)
        self._set_block(server)

    def take_again(self, server: str) -> None:
        """Let a server take work again."""
        self.blocked.discard(server)
        self._set_block(server)
        self.capacity_appeared(self.position[server])

    def out_of_service(self) -> Bools:
        """[S] by position: servers that take no work."""
        blocked: Bools = self.state.server[S_BLOCKED] == 1
        return blocked

    def capacity_appeared(self, position: int) -> None:
        """Something was freed on a server."""
        group = int(self.state.server[S_GROUP, position])
        self.freed[self.layout.group_region[group], self.layout.group_type[group]] += 1

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """All that changes within is undone at the end, last changes first, at a cost in proportion to what changed."""
        saved = {
            name: getattr(self, name)
            for name in ("mix", "freed", "blocked", "over_booked", "started", "limits", "_late_rights", "_undo")
        }
        log: list[Callable[[], None]] = []
        self._undo, self.freed = log, self.freed.copy()
        self.blocked, self.over_booked = set(self.blocked), set(self.over_booked)
        self._late_rights = dict(self._late_rights)
        self.mix = None if self.mix is None else self.mix.copy()
        try:
            yield
        finally:
            while log:
                log.pop()()
            vars(self).update(saved)

    def _undoing(self, undo: Callable[[], None]) -> None:
        if self._undo is not None:
            self._undo.append(undo)

    def _undoing_attributes(self) -> None:
        """Undo what sets attributes of the inventory and leaves the objects that they had as they are."""
        if self._undo is not None:
            saved = {**vars(self), "_in_order": False}
            self._undo.append(lambda: vars(self).update(saved))
