"""Running jobs of the live fleet (job placement): by name, and their places in the engine's arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Self

import numpy as np

from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix, Arrivals
from mast_opt.problems.job_placement.engine.capacity_ledger import (
    block,
    load,
)
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.state import (
    J_ROW,
    J_STACK,
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
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Places, Running, cost_of
from mast_opt.problems.job_placement.live_fleet.server_inventory import ServerInventory, changed
from mast_opt.problems.job_placement.live_fleet.types import Server, Share
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools


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
    ) -> None:
        super().__init__(servers, replicas, residency, remote_mb_price)
        self.tiers = tiers
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
        self._used: dict[tuple[str, str | None], int] = {}
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
            self._count(one, 1)
        self._load(held, places)
        self.draw()

    def _load(self, held: Mapping[str, tuple[Holding, ...]], places: Places | None) -> None:
        size = 2 * len(held) + 64 if places is None else len(places.job) + len(places.free)
        supply = self.supply[self.layout.position]
        self.state = empty_state(self.layout, supply, len(self.tiers), size, 4 * len(held) + 256)
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
        tier = running.tier
        return tier, tier if running.stoppable else 0, cost_of(running.job)

    def copy(self) -> Self:
        """Books that can go their own way."""
        twin = copy(self)
        twin._running, twin.place, twin.name = dict(self.running), dict(self.place), dict(self.name)
        twin._late_risks = {}
        twin._used, twin._open, twin._asked = dict(self._used), dict(self._open), {}
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

    def used_by(self, tenant: str, gpu_type: str | None = None) -> int:
        """Milli-GPUs of one type (None: of all) that the tenant's running jobs hold, less those over its quota."""
        return self._used.get((tenant, gpu_type), 0)

    def load_of(self, region: int) -> float:
        """Share of the region's GPUs in use."""
        every = int(self.state.region[R_MGPU, region])
        return int(self.state.region[R_USED, region]) / every if every else 0.0

    def _count(self, running: Running, sign: int) -> None:
        job = running.job
        if job.tenant and not running.over_quota:
            for share in running.shares:
                mgpu = sign * sum(share.gpus.values())
                for key in ((job.tenant, None), (job.tenant, self.servers[share.server].gpu_type)):
                    self._used[key] = self._used.get(key, 0) + mgpu

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
        places = self.places()
        held = {name: self.holdings(name) for name in self.names()}
        arrivals = Arrivals(self.state.sample, self.state.demand)
        self._undoing_attributes()
        self._lay_out({**self.servers, server.name: server})
        self._load(held, places)
        self.value_by(arrivals)
        return True

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
            for name in ("mix", "freed", "blocked", "over_booked", "started", "limits", "_undo")
        }
        log: list[Callable[[], None]] = []
        self._undo, self.freed = log, self.freed.copy()
        self.blocked, self.over_booked = set(self.blocked), set(self.over_booked)
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
