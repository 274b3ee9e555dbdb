"""Inventory of the live fleet (job placement): jobs that start, end and change, each change with what undoes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.engine.arrival_mix import ANY, shape_of, together
from mast_opt.problems.job_placement.engine.booking_kernel import book, book_amounts
from mast_opt.problems.job_placement.engine.capacity_ledger import (
    last_tier_of,
    last_tier_of_victim,
    new_job,
    new_row,
    set_costs,
    settle,
    start,
    stop,
)
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.server_selection import Placement
from mast_opt.problems.job_placement.engine.state import N_ROUND
from mast_opt.problems.job_placement.engine.state_allocation import copied, grown
from mast_opt.problems.job_placement.engine.stopped_job import Stopped, restore_arrays, restore_values, resume_all
from mast_opt.problems.job_placement.live_fleet.part_gangs import gangs_of
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Running, cost_of, costs_of
from mast_opt.problems.job_placement.live_fleet.running_jobs import RunningJobs
from mast_opt.problems.job_placement.live_fleet.types import Job, Share, names_in
from mast_opt.problems.job_placement.units import LEVELS, Ints


class FleetInventory(RunningJobs):
    """Everything about a fleet but its lock."""

    def expect(self, jobs: Iterable[Job]) -> None:
        """Count jobs as arrivals before any has come."""
        for job in jobs:
            self._count_arrival(job)
        self.draw()

    def count_arrival(self, job: Job) -> None:
        """Count a job in the mix of arrivals."""
        if self._count_arrival(job):
            self.draw()

    def _count_arrival(self, job: Job) -> bool:
        """Whether samples are due."""
        if self.mix is None:
            return False
        due = False
        for gang in gangs_of(job):
            needs = {ANY: gang.mgpu} if gang.gpu_types is None else gang.gpu_types
            close = together(LEVELS.index(gang.within), LEVELS.index(gang.prefer))
            due |= self.mix.add(*shape_of(needs, gang.cpu_mcores, gang.memory_mib, gang.tasks, close, self.largest))
        return due

    def start(
        self, running: Running, request: Request, placed: Placement, victims: tuple[str, ...], fresh: bool
    ) -> None:
        """Stop the victims and start a job without parts; see ``place.take``. Raises UsageError, with nothing changed,
        if there is no room."""

        def booked(victims: Ints, limit: int, cost: int) -> int:
            return int(book(self.state, request, placed, victims, limit, cost, fresh))

        self.make_room(1, len(placed.server))
        self._start(running, victims, fresh, booked, running.shares)

    def start_parts(self, running: Running, held: tuple[Holding, ...], victims: tuple[str, ...], fresh: bool) -> None:
        """Start a job that holds this, one for each of its servers."""
        rows = np.array([(self.position[one.server], one.cpu_mcores, one.memory_mib) for one in held], np.int64)
        device = np.array([one.device for one in held], np.int32)

        def booked(victims: Ints, limit: int, cost: int) -> int:
            return int(book_amounts(self.state, running.tier, rows, device, victims, limit, cost, fresh))

        self.make_room(1, len(held))
        self._start(running, victims, fresh, booked, held)

    def _start(
        self,
        running: Running,
        victims: tuple[str, ...],
        fresh: bool,
        booked: Callable[[Ints, int, int], int],
        rows: Sequence[Share] | Sequence[Holding],
    ) -> None:
        job, places = running.job, np.array([self.place[name] for name in victims], np.int64)
        limit = self.limit_of(running)
        stopped: list[Stopped] = []
        if self._undo is not None:
            for place in places.tolist():
                last = last_tier_of_victim(self.state, place) if fresh else self.ranks.levels - 1
                stopped.append(Stopped.of(self.state, place, last))
        at = booked(places, limit, cost_of(job))
        if at < 0:
            server = rows[-1 - at].server
            tasks = sum(share.tasks for share in running.shares if share.server == server)
            raise UsageError(
                f"the bid for {job.name}: {server} has no room for {tasks} of its tasks there; ask for a new bid"
            )
        if self._undo is not None:
            self._undo.append(self._unstarted(running, at, [self.running[name] for name in victims], stopped))
        for name in victims:
            self._forget(name)
        self._enter(running, at)
        self._follow_rights()
        self.started += 1
        if self._count_arrival(job):
            self.draw()

    def _unstarted(self, running: Running, at: int, ended: list[Running], stopped: list[Stopped]) -> Callable[[], None]:
        def undo() -> None:
            stop(self.state, at, last_tier_of(self.state, at))
            self._strike(running.job.name)
            resume_all(self.state, stopped)
            for one, held in zip(reversed(ended), reversed(stopped)):
                self._enter(one, held.place)
                self._in_order = False
            self._follow_rights()

        return undo

    def end(self, name: str) -> None:
        """A job ends, or never was if it was placed in this round."""
        at = self.place[name]
        self._stop(at)
        self._forget(name)
        self._follow_rights()

    def _stop(self, at: int) -> None:
        last = last_tier_of(self.state, at)
        if self._undo is not None:
            held, running = Stopped.of(self.state, at, last), self.running[self.name[at]]

            def undo() -> None:
                held.resume(self.state)
                self._enter(running, at)
                self._follow_rights()
                self._in_order = False

            self._undo.append(undo)
        stop(self.state, at, last)

    def hold(self, running: Running, held: tuple[Holding, ...]) -> None:
        """A job starts and holds this, whether there is room for it or not; outside rounds."""
        at = self._hold(running, held, False)
        self._undoing(self._unstarted(running, at, [], []))
        self._enter(running, at)
        self._follow_rights()
        self.started += 1
        self._check_booking(one.server for one in held)

    def _hold(self, running: Running, held: tuple[Holding, ...], fresh: bool) -> int:
        self.make_room(1, len(held))
        tier, limit, cost = self._job_row(running)
        at = int(new_job(self.state, tier, limit, cost, fresh))
        for one in held:
            new_row(self.state, at, self.position[one.server], one.cpu_mcores, one.memory_mib, one.device)
        start(self.state, at, tier if fresh else self.ranks.levels - 1)
        return at

    def swap(self, running: Running, held: tuple[Holding, ...], fresh: bool) -> None:
        """A running job holds this from now on, whether there is room for it or not. ``fresh``: in a round."""
        name = running.job.name
        old, at = self.running[name], self.place[name]
        last = last_tier_of(self.state, at)
        before = None if self._undo is None else Stopped.of(self.state, at, last)
        stop(self.state, at, last)
        self._put(old, running)
        self._hold(running, held, fresh)
        self._follow_rights()
        if before is not None:
            self._undo_swap(old, running, before)
        servers = {one.server: None for one in (*old.shares, *running.shares)}
        for server in servers:
            self.capacity_appeared(self.position[server])
        self._check_booking(servers)

    def _put(self, old: Running, new: Running) -> None:
        self.ledger.remove(old.job.name)
        self._running[new.job.name] = new
        self._hold_in_ledger(new)

    def _undo_swap(self, old: Running, new: Running, before: Stopped) -> None:
        def undo() -> None:
            stop(self.state, before.place, last_tier_of(self.state, before.place))
            before.resume(self.state)
            self._put(new, old)
            self._follow_rights()

        self._undoing(undo)

    def make_room(self, jobs: int, rows: int) -> None:
        """Have free places for so many jobs and allocations."""
        old = self.state
        free = None if self._undo is None else old.free_places.copy()
        self.state = grown(old, jobs, rows)
        if free is not None and self.state is not old:
            self._undoing(lambda: setattr(self, "state", restore_arrays(self.state, old, free)))

    def _enter(self, running: Running, at: int) -> None:
        name = running.job.name
        self._running[name], self.place[name], self.name[at] = running, at, name
        self._hold_in_ledger(running)

    def _strike(self, name: str) -> None:
        self._late_risks.pop(name, None)
        self._late_rights.pop(name, None)
        self.restood.pop(name, None)
        del self._running[name]
        self.ledger.remove(name)
        del self.name[self.place.pop(name)]

    def _forget(self, name: str) -> None:
        for position in self.positions_of(name):
            self.capacity_appeared(position)
        servers = [share.server for share in self._running[name].shares] if self.over_booked else ()
        self._strike(name)
        self._check_booking(servers)

    def set_at_risk(self, gpu_hours: Mapping[str, float]) -> None:
        """Set the GPU-hours that would be lost if these running jobs were stopped now."""
        if self._undo is not None:
            old = {name: self.running[name] for name in gpu_hours}
            self._undo.append(lambda: self._put_back(old))
        places = np.array([self.place[name] for name in gpu_hours], np.int64)
        set_costs(self.state, places, costs_of(np.fromiter(gpu_hours.values(), np.float64, len(gpu_hours))))
        self._late_risks.update(gpu_hours)

    def _put_back(self, running: Mapping[str, Running]) -> None:
        """Undo ``set_at_risk`` of what runs again as it did then."""
        for name, one in running.items():
            self._late_risks.pop(name, None)
            self._running[name] = one
        places = np.array([self.place[name] for name in running], np.int64)
        set_costs(self.state, places, np.array([cost_of(one.job) for one in running.values()], np.int64))

    def begin_round(self) -> None:
        """Let tiers find different room on a server."""
        self.state.free_places[N_ROUND] = 1
        self._undoing(lambda: self.state.free_places.__setitem__(N_ROUND, 0))

    def end_round(self) -> None:
        """End the round: what victims left is free for all."""
        if self._undo is not None:
            old = copied(self.state)
            self._undo.append(lambda: setattr(self, "state", restore_values(old, self.state)))
        self.state.free_places[N_ROUND] = 0
        settle(self.state)
        self.freed += 1
        names, self._late_rights = self._late_rights, {}
        before = {name: was for name in names if (was := self._restand(name)) is not None}
        if before:
            self._undoing(lambda: self._late_rights.update(names))
            self._undoing(lambda: self._running.update(before))

    def set_replicas(self, dataset: str, regions: Collection[str]) -> None:
        """The regions that hold a dataset from now on."""
        held, before = names_in(f"replicas of {dataset}", regions), self.replicas.get(dataset)

        def put(now: frozenset[str] | None) -> None:
            self._open.pop(dataset, None)
            self._asked.clear()
            self.replicas.pop(dataset, None) if now is None else self.replicas.__setitem__(dataset, now)

        put(held)
        self._undoing(lambda: put(before))
