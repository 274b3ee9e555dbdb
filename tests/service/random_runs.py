"""The whole service under one seed: clients, loop, store and host in one process and one thread, on a clock of its own.

    python -m tests.service.random_runs --seeds 1000 --turns 500

Answers of the host are lost, doubled, late and out of order; it restarts and loses its work; what it says that it runs
is some time old. Commits fail, before or after the data is on the disk, or take long; the clock goes back an hour; the
service ends at any point and starts again; clients repeat what was not answered. Servers break. Then the faults end,
and everything that was acknowledged has to end too.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command, Start
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.live import Live, LiveParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.turn_requests import Key, Request
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.recovery import recovered
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.service.loops import SERVERS
from tests.store.in_memory import Unreliable

OBSERVE_S, TTL_S = 20.0, 15.0
MOST_TO_END = 5000
"""Turns without faults in which everything has to end."""


@dataclass(frozen=True)
class Odds:
    """Of what may go wrong, each time that it may."""

    lost: float = 0.05
    doubled: float = 0.1
    late: float = 0.2
    commit: float = 0.02
    slow: float = 0.02
    ends: float = 0.01
    host_restarts: float = 0.01
    stale: float = 0.3
    back: float = 0.005
    server: float = 0.02


NONE = Odds(*([0.0] * 10))


class UnreliableHost(SimulatedLiveHost):
    """A host of its own, which outlives the loop. An attempt is started once, whatever it is told."""

    def __init__(self, rng: np.random.Generator, spec_of: Callable[[str], ev.JobSpec]) -> None:
        super().__init__(spec_of)
        self.rng, self.odds = rng, Odds()
        self._late: list[ev.Event] = []
        self._ended: dict[tuple[str, int], ev.Event] = {}
        self._seen: Collection[tuple[str, int]] = ()
        self.starts: Counter[tuple[str, int]] = Counter()

    def point_to(self, spec_of: Callable[[str], ev.JobSpec]) -> UnreliableHost:
        """The loop has begun again."""
        self._spec_of = spec_of
        return self

    def carry_out(self, now_ms: int, command: Command) -> None:
        of = command.job, command.attempt  # type: ignore[union-attr]
        if of in self._ended:
            self._late.append(self._ended[of])
            return
        if isinstance(command, Start) and of not in self._host.running():
            self.starts[of] += 1
        for _ in range(1 + (self.rng.random() < self.odds.doubled)):
            super().carry_out(now_ms, command)

    def reports(self, now_ms: int) -> Sequence[ev.Event]:
        fresh = [*super().reports(now_ms)]
        for event in fresh:
            if isinstance(event, (ev.Stopped, ev.Finished)):
                self._ended[event.job, event.attempt] = event
        held, self._late = self._late, []
        found: list[ev.Event] = []
        for event in (*fresh, *held):
            draw = self.rng.random(3)
            if draw[0] < self.odds.lost:
                continue
            (self._late if draw[1] < self.odds.late else found).append(event)
            if draw[2] < self.odds.doubled:
                self._late.append(event)
        return [found[at] for at in self.rng.permutation(len(found))] if self.odds.late else found

    def observe(self) -> Collection[tuple[str, int]]:
        stale, self._seen = self._seen, set(super().observe())
        return stale if self.rng.random() < self.odds.stale else self._seen

    def truth(self) -> Collection[tuple[str, int]]:
        """What it runs now."""
        return set(super().observe())

    def restart(self) -> None:
        """All work is lost, and nobody is told."""
        for job, attempt in super().observe():
            self._ended[job, attempt] = ev.Stopped(job, attempt, 0, 0)
        fresh = SimulatedLiveHost(self._spec_of)
        self._work, self._host, self._late = fresh._work, fresh._host, []

    def next_ms(self) -> int | None:
        times = [time_ms for time_ms in (super().next_ms(), 0 if self._late else None) if time_ms is not None]
        return min(times) if times else None


class Run:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.odds = Odds()
        self.now_ms, self.ticks_s = 10**12, 0.0
        self.database = Unreliable(self._fault)
        self.host: UnreliableHost | None = None
        self.pending: dict[str, tuple[Request, Future[tuple[int, str]]]] = {}
        self.acknowledged: list[str] = []
        self.names = itertools.count()
        self.lives = 0
        self._begin()

    def _fault(self) -> str:
        if self.rng.random() < self.odds.slow:
            self._pass(5.0)
        if self.rng.random() < self.odds.commit:
            return "before" if self.rng.random() < 0.5 else "after"
        return ""

    def _pass(self, seconds: float) -> None:
        self.ticks_s += seconds
        self.now_ms += round(1000 * seconds)

    def _begin(self) -> None:
        """A process starts, as often as it takes."""
        while True:
            with suppress(StoreError):
                self.store = SqlStore(self.database)
                break
        self.live = self._live()
        while True:
            with suppress(StoreError):
                self.live.begin()
                break
        self.lives += 1

    def _live(self) -> Live:
        def host_of(spec_of: Callable[[str], ev.JobSpec]) -> UnreliableHost:
            self.host = self.host.point_to(spec_of) if self.host is not None else UnreliableHost(self.rng, spec_of)
            return self.host

        params = LiveParams(ttl_s=TTL_S, snapshot_every=200, observe_s=OBSERVE_S, retry_s=0)
        opening = opening_of(self.store, SERVERS)
        return Live(self.store, opening, Mast, host_of, params, lambda: self.now_ms, lambda: self.ticks_s)

    def _end_process(self) -> None:
        self.store.close()
        self._begin()

    def _submit(self) -> None:
        name = f"job-{next(self.names)}"
        spec = ev.JobSpec(
            tier=int(self.rng.integers(4)),
            tasks=int(self.rng.integers(1, 3)),
            mgpu=1000 * int(self.rng.choice([1, 2, 4, 8])),
            duration_ms=int(self.rng.integers(60_000)),
            checkpoint_ms=int(self.rng.choice([0, 5000])),
            preemptible=bool(self.rng.random() < 0.7),
        )
        self._ask(name, ev.Submitted(name, spec))

    def _ask(self, name: str, event: ev.Event) -> None:
        request = Request((event,), lambda verdicts: (201, verdicts[0]), Key("client", name, name))
        self.pending[name] = request, self.live.submit(request)

    def _hear(self) -> None:
        """Clients take their answers, and repeat what was not answered."""
        for name, (request, done) in list(self.pending.items()):
            if done.done() and done.exception() is None:
                assert done.result() == (201, "accepted"), (name, done.result())
                self.acknowledged.append(name)
                del self.pending[name]
            elif done.done() or self.live.problem:
                again = Request(request.events, request.respond, request.key)
                self.pending[name] = again, self.live.submit(again)

    def _servers(self) -> None:
        """A server breaks, or comes back."""
        server = SERVERS[int(self.rng.integers(len(SERVERS)))]
        up = server.name in self.live._engine.state.inventory.up
        self._report(ev.ServerDown(server.name, "test") if up else _up(server))

    def turn(self) -> None:
        """Something happens, and the loop takes a turn."""
        assert self.host is not None
        self.host.odds = self.odds
        draw = self.rng.random(4)
        if draw[0] < self.odds.back:
            self.now_ms -= 3_600_000
        if draw[1] < self.odds.host_restarts:
            self.host.restart()
        if draw[2] < self.odds.server:
            self._servers()
        self._pass(float(self.rng.exponential(2.0)))
        goes_on = self.live.step()
        if not goes_on or draw[3] < self.odds.ends:
            for name, (request, _) in self.pending.items():  # whoever waits is not answered
                self.pending[name] = request, Future()
            self._end_process()
            for name, (request, _) in list(self.pending.items()):
                again = Request(request.events, request.respond, request.key)
                self.pending[name] = again, self.live.submit(again)
        self._hear()

    def end(self) -> None:
        """Without faults, everything ends."""
        self.odds = NONE
        for _ in range(MOST_TO_END):
            self._repair()
            self.turn()
            if not self.pending and not self.live._engine.state.jobs:
                break
        assert not self.pending, sorted(self.pending)
        left = [(one.name, one.state, one.attempt) for one in self.live._engine.state.jobs.values()]
        assert not left, left[:5]
        for _ in range(5 * round(OBSERVE_S)):  # what nobody asked for is stopped
            self.turn()
        assert self.host is not None
        assert not self.host.truth()

    def _repair(self) -> None:
        """Servers that are out of service come back."""
        up = self.live._engine.state.inventory.up
        self._report(*(_up(server) for server in SERVERS if server.name not in up))

    def _report(self, *events: ev.Event) -> None:
        if events:
            self.live.submit(Request(events, lambda verdicts: (200, "")))

    def check(self) -> int:
        """Raises AssertionError; returns the number of events."""
        log = list(self.store.read())
        found = [one for one in check_log(log, all_end=True) if one.what != "work"]  # a late answer shortens an attempt
        assert not found, [str(one) for one in found[:5]]
        submitted = Counter(one.event.job for one in log if isinstance(one.event, ev.Submitted))
        assert set(self.acknowledged) == set(submitted)
        assert max(submitted.values()) == 1
        assert self.host is not None
        assert max(self.host.starts.values()) == 1, self.host.starts.most_common(3)
        assert self.store.open_commands() == []
        self.live._save_snapshot()
        opening = opening_of(self.store)
        digests = {self.live._engine.state.digest(), recovered(self.store, opening).state.digest()}
        self.store._db.execute("DELETE FROM snapshots")
        digests.add(recovered(self.store, opening).state.digest())
        assert len(digests) == 1
        self.store.close()
        return len(log)


def _up(one: Server) -> ev.ServerUp:
    place = one.region, one.cluster, one.rack, one.gpu_type, one.gpus, one.cpu_mcores, one.memory_mib
    return ev.ServerUp(one.name, *place)


def run(seed: int, turns: int) -> tuple[int, int, int]:
    """Events, acknowledged jobs and processes of a run. Raises AssertionError where anything is wrong."""
    one = Run(seed)
    for _ in range(turns):
        if one.rng.random() < 0.3:
            one._submit()
        one.turn()
    one.end()
    return one.check(), len(one.acknowledged), one.lives


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--turns", type=int, default=500)
    given = parser.parse_args()
    begun, totals = time.process_time(), np.zeros(3, np.int64)
    for seed in range(given.first, given.first + given.seeds):
        try:
            totals += run(seed, given.turns)
        except BaseException:
            print(f"seed {seed}:")
            raise
    events, jobs, lives = totals.tolist()
    assert jobs >= given.seeds, f"{jobs} jobs acknowledged: little was tested"
    print(
        f"{given.seeds} seeds of {given.turns} turns: {jobs:,} jobs acknowledged and ended, {events:,} events, "
        f"{lives:,} processes; {time.process_time() - begun:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
