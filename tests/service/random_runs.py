"""The whole service under one seed: web server, routes, loop, store, solves and host in one process, in virtual time.

    python -m tests.service.random_runs --seeds 200 --turns 500
    python -m tests.service.random_runs --first 17 --seeds 1

Answers of the host are lost, doubled, late and out of order; it restarts and loses its work; what it says that it runs
is some time old. Commits fail, before or after the data is on the disk, or take long; the disk is full; snapshots are
written meanwhile, and old events deleted; the clock goes back an hour. Requests come in pieces, late, twice, or not at
all, and answers are lost; clients repeat what was not answered, ask too much, and for what is not theirs. The service
ends at any point and starts again, or is overtaken by another process. Then the faults end, and everything that was
acknowledged has to end too. The same seed gives the same log, byte by byte.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.event_log import fields_of
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.turn_requests import Request
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.recovery import recovered
from tests.service.loops import SERVERS
from tests.service.virtual_clients import WEIGHTS, Clients
from tests.service.virtual_service import OBSERVE_S, Outside
from tests.service.virtual_time import one_seed

ACTORS = 4
MOST_TO_END = 5000
"""Turns without faults in which everything has to end."""


class Run:
    """One run."""

    def __init__(self, outside: Outside) -> None:
        self.outside, self.rng = outside, outside.rng
        self.clients = Clients(outside)
        self.odds = {"back": 0.005, "ends": 0.01, "overtaken": 0.002}
        self.lives = 1
        self.outside.begin()

    # --- the service ---

    async def turn(self) -> None:
        """Some time passes, something happens, and the loop takes a turn."""
        outside, process, draw = self.outside, self.outside.process, self.rng.random(4)
        live = process.live
        await asyncio.sleep(float(self.rng.exponential(0.1)) if live._waiting else min(2.0, 0.01 + live._pause_s()))
        if draw[0] < self.odds["back"]:
            outside.clock.now_ms -= 3_600_000
        host = outside.host
        assert host is not None
        host.odds = outside.host_odds
        if draw[1] < host.odds.restarts:
            host.restart()
        goes_on = live.step()
        self.outside.note()
        if draw[3] < self.odds["overtaken"]:
            self._is_overtaken()
        elif not goes_on or outside.killed or draw[2] < self.odds["ends"]:
            process.end(killed=outside.killed or not goes_on or self.rng.random() < 0.5)
            self.outside.note()
            outside.begin()
            self.lives += 1
            self.outside.note()

    def _is_overtaken(self) -> None:
        """Another process leads; what the first one still tries is refused, and it ends."""
        before = self.outside.process
        self.outside.begin()
        self.lives += 1
        self.outside.note()
        late = before.live.submit(Request((ev.Submitted("late", JobSpec()),), lambda verdicts: (201, "")))
        with suppress(StoreError):
            while before.live.step():
                assert not late.done(), "a leader whose epoch is over writes on"
        assert late.exception() is not None
        assert self.outside.process.store.last_seq() == len(self.outside.log)
        before.end(killed=True)

    async def run(self, turns: int) -> None:
        """So many turns with faults, and then as many as it takes."""
        actors = [asyncio.ensure_future(self.clients.acts(WEIGHTS)) for _ in range(ACTORS)]
        for _ in range(turns):
            await self.turn()
            self._look(actors)
        self.clients.stopping = True
        self.clients.network_odds = 0.0
        self.odds = dict.fromkeys(self.odds, 0.0)
        self.outside.be_reliable()
        repair = asyncio.ensure_future(self._repair())
        for _ in range(MOST_TO_END):
            await self.turn()
            self._look([*actors, repair])
            if all(one.done() for one in (*actors, repair)) and not self.outside.process.live._engine.state.jobs:
                break
        left = [(one.name, one.state, one.attempt) for one in self.outside.process.live._engine.state.jobs.values()]
        assert not left, left[:5]
        assert all(one.done() for one in actors), actors
        until = self.outside.loop.time() + 4 * OBSERVE_S
        while self.outside.loop.time() < until:  # what nobody asked for is stopped, what has gone is given back
            await self.turn()
        assert self.outside.host is not None
        assert not self.outside.host.truth()

    @staticmethod
    def _look(tasks: Sequence[asyncio.Future[None]]) -> None:
        """Raise what a client has found wrong."""
        for one in tasks:
            if one.done():
                one.result()

    async def _repair(self) -> None:
        """Servers come back and are open, and nobody has a quota."""
        ask = self.clients.until_answered
        for server in SERVERS:
            place = {name: getattr(server, name) for name in ("region", "cluster", "rack", "gpu_type", "gpus")}
            assert (await ask("ops", "PUT", f"/v1/servers/{server.name}", {"state": "up", **place})).status == 200
            opened = {"of": "server", "name": server.name, "state": "open"}
            assert (await ask("ops", "POST", "/v1/drains", opened)).status == 200
        assert (await ask("ops", "PUT", "/v1/quotas/red", {"gpus": None})).status == 200

    # --- what has to be so ---

    def check(self) -> str:
        """Raises AssertionError; returns a digest of the log."""
        clients, process, log = self.clients, self.outside.process, self.outside.log
        found = [one for one in check_log(log, all_end=True) if one.what != "work"]  # a late answer shortens an attempt
        assert not found, [str(one) for one in found[:5]]
        submitted = {one.event.job: one for one in log if isinstance(one.event, ev.Submitted)}
        assert len(submitted) == sum(isinstance(one.event, ev.Submitted) for one in log)
        assert {name for name, one in clients.jobs.items() if one.acknowledged} == set(submitted)
        for name, stored in submitted.items():
            wanted = clients.jobs[name]
            assert stored.by in wanted.by, (stored, wanted)
            assert isinstance(stored.event, ev.Submitted)
            assert stored.event.spec.tenant == wanted.tenant
        cancelled = [(one.by.split()[0], one.event.job) for one in log if isinstance(one.event, ev.Cancelled)]
        assert set(clients.cancels) <= set(cancelled)
        assert all(who in ("ops", clients.jobs[name].tenant) for who, name in cancelled), cancelled
        for kind in (ev.ServerDown, ev.ServerClosed, ev.QuotaSet, ev.SolveAsked, ev.PlanAdopted):
            assert all(one.by.startswith("ops ") for one in log if isinstance(one.event, kind)), kind
        asked, ended = (Counter(one.event.path for one in log if isinstance(one.event, kind)) for kind in _SOLVES)
        assert asked == ended, (asked, ended)
        host = self.outside.host
        assert host is not None
        assert max(host.starts.values()) == 1, host.starts.most_common(3)
        assert process.store.open_commands() == []
        assert not self.outside.loop.failed, self.outside.loop.failed
        self._check_nothing_is_held()
        self._check_the_state()
        process.end(killed=True)
        said = [(one.seq, one.at_ms, one.by, type(one.event).__name__, fields_of(one.event)) for one in log]
        return hashlib.blake2b(repr(said).encode(), digest_size=8).hexdigest()

    def _check_nothing_is_held(self) -> None:
        """Nothing that was lent to requests is still held."""
        process = self.outside.process
        assert process.streams._open.total() == 0, process.streams._open
        assert process.access._reads.total() == 0, process.access._reads
        assert process.access.body_bytes.total() == 0, process.access.body_bytes
        assert process.live._asking.total() == 0, process.live._asking
        assert process.solves._beginning == 0
        assert len(process.live._stored) == 0

    def _check_the_state(self) -> None:
        """Snapshot and tail lead to where the loop is; so does the whole log where it is kept."""
        process = self.outside.process
        process.live._save_snapshot()
        opening = opening_of(process.store)
        digests = {process.live._engine.state.digest(), recovered(process.store, opening).state.digest()}
        if process.store.first_seq() == 1:
            process.store._db.execute("DELETE FROM snapshots")
            digests.add(recovered(process.store, opening).state.digest())
        assert len(digests) == 1


_SOLVES = (ev.SolveAsked, ev.SolveEnded)


def run(seed: int, turns: int) -> tuple[int, int, int, str, Counter[str]]:
    """Events, acknowledged jobs and processes of a run, a digest of its log, and what clients have met. Raises
    AssertionError where anything is wrong."""
    rng = np.random.Generator(np.random.PCG64(seed))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        outside = Outside(rng, Path(folder))
        for target, name, value in outside.patches():
            patch.setattr(target, name, value)
        with one_seed(rng, outside.clock):
            one = Run(outside)
            outside.loop.run_until_complete(one.run(turns))
            digest = one.check()
            outside.loop.run_until_complete(asyncio.sleep(1))  # tasks end
        outside.loop.close()
    jobs = sum(job.acknowledged for job in one.clients.jobs.values())
    return len(one.outside.log), jobs, one.lives, digest, one.clients.seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--turns", type=int, default=500)
    given = parser.parse_args()
    begun, totals, met = time.process_time(), np.zeros(3, np.int64), Counter[str]()
    for seed in range(given.first, given.first + given.seeds):
        try:
            *counts, _, seen = run(seed, given.turns)
        except BaseException:
            print(f"seed {seed}:")
            raise
        totals, met = totals + counts, met + seen
    events, jobs, lives = totals.tolist()
    assert jobs >= given.seeds, f"{jobs} jobs acknowledged: little was tested"
    print(*(f"{what}: {count:,}" for what, count in sorted(met.items())), sep=", ", file=sys.stderr)
    print(
        f"{given.seeds} seeds of {given.turns} turns: {jobs:,} jobs acknowledged and ended, {events:,} events, "
        f"{lives:,} processes; {time.process_time() - begun:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
