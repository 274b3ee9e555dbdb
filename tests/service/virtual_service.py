"""Processes of the whole service, one after another, in this process and in virtual time.

A process has everything that ``mast-opt serve`` has: the web server's connections, door, routes, loop, store, snapshots
and solves. Outside are the database, the host, the folder of plans, the file of tokens and the processes that solve:
they outlive it.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service import handlers, one_solve, solve_child, solves, streams
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.door import AccessLog
from mast_opt.live.service.live import Live, LiveParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.snapshot_child import save
from mast_opt.live.service.solve_files import OUTCOME
from mast_opt.live.service.turn_requests import Request, Unavailable
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.planner.io.atomic import new_file
from tests.service.loops import SERVERS
from tests.service.unreliable_host import NO_FAULT, HostOdds, UnreliableHost
from tests.service.virtual_network import Network
from tests.service.virtual_time import Clock, VirtualLoop
from tests.store.in_memory import Unreliable

OBSERVE_S, TTL_S = 20.0, 15.0
MOST_CONNECTIONS = 40
RATE = 40.0
KEEP_MS = 900_000


class Child:
    """A process of the service that does its work at its end, in virtual time."""

    def __init__(self, loop: VirtualLoop, takes_s: float, work: Callable[[], None]) -> None:
        self._loop, self._until, self._work = loop, loop.time() + takes_s, work
        self.returncode: int | None = None
        self.stdin = self

    def poll(self) -> int | None:
        if self.returncode is None and self._loop.time() >= self._until:
            self.returncode = 0
            try:
                self._work()
            except StoreError:
                self.returncode = 1
        return self.returncode

    def wait(self) -> int:
        self._until = self._loop.time()
        return self.poll() or 0

    def kill(self) -> None:
        self.returncode = -9 if self.returncode is None else self.returncode

    def close(self) -> None:
        """Its standard input ends, so it ends soon."""
        self._until = min(self._until, self._loop.time() + 1)


class VirtualSolves(solves.Solves):
    """Solves whose ends are waited for in virtual time."""

    def __init__(self, world: Outside, live: Live, store: SqlStore) -> None:
        super().__init__(live, store, world.plans)
        self.world = world
        self.tasks: list[asyncio.Task[None]] = []

    def _watch(self, solve: one_solve.Solve) -> None:
        async def wait() -> None:
            while (child := self.world.solving.get(solve.id)) is not None and child.poll() is None:
                await asyncio.sleep(0.5)
            self._end(solve)

        self.tasks.append(self.world.loop.create_task(wait()))

    def _tell(self, event: ev.SolveEnded) -> bool:
        while not self._closing:
            done = self._live.submit(Request((event,), lambda verdicts: (200, "")))
            if done.done() or not self._live.step():
                self.world.clock.go_on(0.2)
            self.world.note()
            if done.done() and done.exception() is None:
                return True
            if self._live.problem:
                return False
        return False

    def launch_later(self, solve: one_solve.Solve) -> None:
        async def wait() -> None:
            while not self._closing:
                with suppress(Unavailable):
                    self.launch(solve)
                    return
                await asyncio.sleep(0.2)

        self.tasks.append(self.world.loop.create_task(wait()))


class Process:
    """One process of the service. Raises StoreError where it cannot begin."""

    def __init__(self, world: Outside) -> None:
        self.world = world
        self.store = SqlStore(world.database)
        try:
            params = LiveParams(
                f"process {next(world.numbers)}", TTL_S, 200, observe_s=OBSERVE_S, retry_s=0, most_jobs_of_tenant=60
            )
            self.live = Live(
                self.store, opening_of(self.store, SERVERS), Mast, world.host_of, params,
                lambda: world.clock.now_ms, lambda: world.clock.ticks_s, self._saves,
            )  # fmt: skip
            self.live.begin()
        except StoreError:
            self.store.close()
            raise
        self.access = Access(world.tokens, RATE, clock=lambda: world.clock.ticks_s)
        self.streams = streams.Streams()
        self.solves = VirtualSolves(world, self.live, self.store)
        self.solves.resume()
        log = AccessLog(world.folder / "access.jsonl", 200_000)
        app = build(self.live, self.store, self.access, self.solves, self.streams, log=log)
        self.network = Network(app, world.loop, MOST_CONNECTIONS)

    def _saves(self, epoch: int) -> Any:
        def work() -> None:
            store = SqlStore(self.world.database)
            try:
                save(store, epoch, KEEP_MS)
            finally:
                store.close()

        return Child(self.world.loop, float(self.world.rng.exponential(3)), work)

    def end(self, *, killed: bool) -> None:
        """End as by SIGKILL or SIGTERM."""
        if not killed:
            self.streams.end()
            while self.live._waiting and self.live.step():
                pass
            self.live.close()
        self.network.cut()
        self.solves._closing = True
        for task in self.solves.tasks:
            task.cancel()
        for child in self.world.solving.values():
            child.close()
        self.store.close()


class Outside:
    """What is there whatever becomes of a process, and what may go wrong with it.

    Args:
        folder: empty.
    """

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng, self.folder = rng, folder
        self.clock = Clock()
        self.loop = VirtualLoop(self.clock)
        self.numbers = itertools.count(1)
        self.plans, self.tokens = folder / "plans", folder / "tokens.json"
        self.host: UnreliableHost | None = None
        self.host_odds = HostOdds()
        self.commit, self.slow, self.kill, self.full = 0.02, 0.02, 0.003, 0.05
        self.database = Unreliable(self._fault)
        self.solving: dict[str, Child] = {}
        self.killed = False
        """Whether the process ends now, in the middle of what it does."""
        self.process: Process
        self.log: list[ev.Stored] = []
        """Every event that there ever was."""

    def note(self) -> None:
        """Keep the events that are in the log; old ones may be deleted there."""
        self.log.extend(self.process.store.read(len(self.log)))

    def be_reliable(self) -> None:
        """Nothing goes wrong any more."""
        self.host_odds = NO_FAULT
        self.commit = self.slow = self.kill = self.full = 0.0

    def _fault(self) -> str:
        """What goes wrong with a commit."""
        draw = self.rng.random(4)
        if self.killed:
            return "before"
        if draw[0] < self.slow:
            self.clock.go_on(5.0)
        if draw[3] < self.kill and threading.current_thread().name == "mast-opt store":
            self.killed = True
            if hasattr(self, "process"):  # not while the first one begins
                self.process.live._stopping = True
        if self.killed or draw[1] < self.commit:
            return "before" if draw[2] < 0.5 else "after"
        return ""

    def host_of(self, spec_of: Callable[[str], JobSpec]) -> UnreliableHost:
        self.host = self.host.point_to(spec_of) if self.host is not None else UnreliableHost(self.rng, spec_of)
        return self.host

    def begin(self) -> Process:
        """A process begins, as often as it takes."""
        while True:
            self.killed = False
            with suppress(StoreError):
                self.process = Process(self)
                return self.process

    def solve(self, folder: Path) -> Child:
        """A process that solves what is in a folder."""
        how = self.rng.random()

        def work() -> None:
            solve_child.run(folder, threading.Event())
            if how < 0.2:  # it was killed, or the disk has damaged what it left
                content = (folder / OUTCOME).read_bytes()
                (folder / OUTCOME).write_bytes(content[: len(content) // 2] if how < 0.1 else b"")

        self.solving[folder.name] = child = Child(self.loop, float(self.rng.exponential(20)), work)
        return child

    def patches(self) -> list[tuple[object, str, Any]]:
        """Names of the service that have another meaning here."""

        def written(path: Path) -> Any:
            if self.rng.random() < self.full:
                raise OSError(28, "No space left on device")
            return whole(path)

        whole = new_file
        return [
            (solves, "begin_process", self.solve),
            (solves, "new_file", written),
            (solve_child, "_limit", lambda memory_mib, file_mib: None),
            (handlers, "MOST_BYTES", 4096),
            (handlers, "MOST_BODY_BYTES", 8 * 4096),
        ]
