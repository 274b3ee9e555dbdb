"""Snapshots by another process, restarts from them, and logs whose beginning has gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import IO, Any

import pytest

from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.service import forecast_child, snapshot_child
from mast_opt.live.service.live import MOST_SAVING_S, Live, LiveParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.store.errors import Fenced
from mast_opt.live.store.records import Batch
from mast_opt.live.store.recovery import recovered, snapshot_of
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.live.store.state_format import state_bytes, state_from
from tests.service.loops import LONG, SERVERS, running, submit
from tests.service.test_live import until


class Child:
    """Stands for a process."""

    def __init__(self, code: int | None = None) -> None:
        self.returncode = code

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        self.returncode = -9

    def wait(self) -> int | None:
        return self.returncode


def test_the_loop_goes_on_while_another_process_saves(tmp_path: Path) -> None:
    store, begun, ticks = open_sqlite(tmp_path), list[Child](), 0.0

    def saves(epoch: int) -> Any:
        begun.append(Child())
        return begun[-1]

    params = LiveParams(snapshot_every=20)
    live = Live(store, opening_of(store, SERVERS), Mast, SimulatedLiveHost, params, saves=saves, ticks=lambda: ticks)
    live.begin()
    for number in range(30):
        submit(live, f"a{number}", spec=LONG)
        assert live.step()
    assert len(begun) == 1
    snapshot_child.save(store, live.epoch, 0)
    begun[0].returncode = 0
    live.step()
    assert live._snapshot_seq == store.newest_snapshot() > 20
    for number in range(25):
        submit(live, f"b{number}", spec=LONG)
        live.step()
    assert len(begun) == 2
    begun[1].returncode = 1  # it has failed: not at once again, and not never
    for number in range(10):
        submit(live, f"c{number}", spec=LONG)
        live.step()
    assert len(begun) == 3
    ticks += MOST_SAVING_S
    live.step()
    assert begun[2].returncode is None
    ticks += 1  # it hangs
    live.step()
    assert begun[2].returncode == -9
    for number in range(10):
        submit(live, f"d{number}", spec=LONG)
        live.step()
    assert len(begun) == 4
    with pytest.raises(Fenced):
        snapshot_child.save(store, live.epoch - 1, 0)
    live.close()
    assert begun[3].returncode == -9
    store.close()


def test_a_process_that_cannot_begin_stops_no_turn(tmp_path: Path) -> None:
    store, tried = open_sqlite(tmp_path), list[int]()

    def saves(epoch: int) -> Any:
        tried.append(epoch)
        raise BlockingIOError(11, "Resource temporarily unavailable")

    def predicts(now_ms: int, out: IO[bytes]) -> Any:
        tried.append(now_ms)
        raise OSError(12, "Cannot allocate memory")

    params, opening, ticks = LiveParams(snapshot_every=20), opening_of(store, SERVERS), count(0.0, 1.0)
    live = Live(
        store, opening, Mast, SimulatedLiveHost, params, saves=saves, predicts=predicts, ticks=partial(next, ticks)
    )
    live.begin()
    engine = live._engine
    for number in range(30):
        submit(live, f"a{number}", spec=LONG)
        assert live.step()
    assert live._engine is engine  # the log was not read again
    assert live.epoch in tried
    assert len(tried) < 30
    assert any(one != live.epoch for one in tried)
    live.close()
    store.close()


@pytest.mark.second_tier
def test_the_process_saves(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        submit(live, "a", "b").result(60)
        child = snapshot_child.begin(str(tmp_path), live.epoch, 0)
        assert child.wait(120) == 0
        assert store.newest_snapshot() > 0
        wrong = snapshot_child.begin(str(tmp_path), live.epoch + 1, 0)
        assert wrong.wait(120) != 0


@pytest.mark.second_tier
def test_a_process_ends_with_the_service() -> None:
    """The output of both is one pipe, which ends with the last of them."""
    child = "from mast_opt.live.service import snapshot_child as s; s.stay_behind(); import time; time.sleep(60)"
    begins = f"begin_child('timeit', ('-n', '1', '-r', '1', {child!r}), '')"
    service = f"import time; from mast_opt.live.service.snapshot_child import *; {begins}; print(); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", service], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as out:
        out.readline()
        process.kill()
        process.wait()
        begun_s = time.monotonic()
        out.read()
    assert time.monotonic() - begun_s < 30


def test_old_events_go_and_nothing_is_forgotten(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        for number in range(30):
            submit(live, f"a{number}", spec=JobSpec(duration_ms=0)).result(60)
        until(lambda: not live._engine.state.jobs)
        submit(live, "z").result(60)
    store = open_sqlite(tmp_path)
    epoch = store.take_lead("x", 0)
    before = recovered(store, opening_of(store)).state.digest()
    store._db.execute("DELETE FROM snapshots")
    last = store.last_seq()
    for _ in range(2):  # both snapshots lie after what goes
        snapshot_child.save(store, epoch, 0)
    snapshot_child.SOME, some = 7, snapshot_child.SOME
    try:
        snapshot_child.save(store, epoch, 1)
    finally:
        snapshot_child.SOME = some
    assert store.first_seq() > 100
    assert store.first_seq() <= last + 1
    assert recovered(store, opening_of(store)).state.digest() == before
    assert store.known_jobs(["a0", "a29", "z", "none"]) == {"a0", "a29", "z"}
    assert store.check() == last + 1 - store.first_seq()
    store.release_lead(epoch)
    store.close()
    with running(tmp_path) as (live, _):
        assert submit(live, "a0").result(60)[1] == "exists"


def test_events_of_the_last_days_stay(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    epoch = store.take_lead("x", 0)
    state = State(SERVERS, tiers=range(10))
    events = [*state.opening(), *(ev.Submitted(f"a{number}", JobSpec()) for number in range(40))]
    log = [ev.Stored(at, 1000 * at, event) for at, event in enumerate(events, start=1)]
    store.append(epoch, Batch(0, log))
    assert [store.seq_before(ms) for ms in (0, 1000, 1001, 20_500, 10**9)] == [0, 0, 1, 20, 43]
    snapshot_child.save(store, epoch, 10_000)
    assert store.first_seq() == 33
    store.close()


@pytest.mark.parametrize("waiting", [1, 50, 2000])
def test_jobs_come_back_as_they_were(waiting: int) -> None:
    state = State(SERVERS, tiers=range(10))
    specs = [
        JobSpec(tier=number % 4, tenant=f"t{number % 3}", duration_ms=number * 7, datasets=("d",) if number % 5 else ())
        for number in range(waiting)
    ]
    specs[0] = JobSpec(gpu_types={"H100": 1000, "A100": 2000}, limit_ms=5, workload="w")
    events = [*state.opening(), *(ev.Submitted(f"j{at}", spec) for at, spec in enumerate(specs))]
    for at, event in enumerate(events, start=1):
        state.apply(at, at, event)
    state.apply(state.seq + 1, state.seq + 1, ev.Refused("j0", "held", "test"))
    again = state_from(state_bytes(state))
    assert again.digest() == state.digest()
    assert list(again.jobs) == list(state.jobs)
    for name, record in state.jobs.items():
        other = again.jobs[name]
        assert (other.spec, other.job, other.demand, other.asked_mgpu) == (
            record.spec, record.job, record.demand, record.asked_mgpu,
        )  # fmt: skip
    assert snapshot_of(again).digest == snapshot_of(state).digest


@pytest.mark.parametrize(
    "begin",
    [lambda url: snapshot_child.begin(url, 3, 0), lambda url: forecast_child.begin(url, MastParams(), 3, BytesIO())],
)
def test_a_reader_of_the_environment_gets_no_url(monkeypatch: pytest.MonkeyPatch, begin: Any) -> None:
    """The state is not among the arguments of the process, where every user could read it."""
    seen: dict[str, Any] = {}
    monkeypatch.setattr(subprocess, "Popen", lambda command, **named: seen.update(command=command, **named))
    begin("postgresql://me:secret@host/x")
    assert "secret" not in str(seen["command"])
    assert seen["env"][snapshot_child.STATE].endswith("host/x")
    assert seen["env"].keys() >= os.environ.keys()
