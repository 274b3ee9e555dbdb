"""A log that is replayed leads to the state, and to the fleet, to which its events lead one by one."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.events import CorruptLog
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import HOLDING, JobState
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.store.recovery import replay
from mast_opt.live.store.state_format import state_bytes, state_from
from mast_opt.problems.job_placement.live_fleet.snapshot_format import DIGEST, HEAD
from mast_opt.problems.job_placement.live_fleet.types import Server, Share
from tests.store.logs import log, opening, replayed

SERVERS = tuple(Server(f"s{n}", "east" if n < 4 else "west", f"c{n // 2}", "r", "H100", 8, 0, 0) for n in range(6))


def content(state: State) -> dict[str, Any]:
    """What a fleet holds, but for the places of jobs in its arrays and for their numbers, whose order counts."""
    found: dict[str, Any] = json.loads(zlib.decompress(state.fleet.snapshot_bytes()[HEAD + DIGEST :]))
    del found["places"], found["started"]
    numbers = found.pop("numbers")
    assert numbers == sorted(numbers)
    return found


def same(events: Sequence[ev.Stored], opened: State, one_by_one: State) -> State:
    for stored in events:
        one_by_one.apply(stored.seq, stored.at_ms, stored.event)
    replay(opened, events)
    assert opened.digest() == one_by_one.digest()
    assert content(opened) == content(one_by_one)
    return opened


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7, 1.0])
def test_a_simulated_log(share: float) -> None:
    events = log()[: int(share * len(log()))]
    same(events, opening(), opening())
    middle = len(events) // 2
    same(events[middle:], replayed(events[:middle]), replayed(events[:middle]))


def busy_log(seed: int) -> list[ev.Stored]:
    """Jobs of tenants that come, are placed, stop others and end; servers that break, shrink and come back; quotas."""
    rng = np.random.default_rng(seed)
    engine = Engine(State(SERVERS), Mast())
    found = list(engine.advance(0, engine.state.opening()).events)
    for turn in range(1, 300):
        inbox: list[ev.Event] = []
        for record in engine.state.jobs.values():
            if record.state in HOLDING and not record.blockers and rng.random() < 0.3:
                of = record.name, record.attempt
                if record.state is JobState.STARTING:
                    inbox.append(ev.Started(*of))
                elif record.state is JobState.STOPPING:
                    inbox.append(ev.Stopped(*of, 0, 0))
                else:
                    inbox.append(ev.Finished(*of))
        tenant, tier = f"t{rng.integers(3)}", int(rng.integers(4))
        mgpu = 1000 * int(rng.choice([1, 2, 8]))
        spec = JobSpec(tier, mgpu=mgpu, tenant=tenant, preemptible=tier > 1, checkpoint_ms=3_600_000)
        inbox.append(ev.Submitted(f"j{turn}", spec))
        server = SERVERS[rng.integers(6)].name
        if rng.random() < 0.1:
            inbox.append(ev.CapacitySet(server, int(rng.integers(4, 9))))
        if rng.random() < 0.1:
            inbox.append(ev.ServerDown(server))
        downs = sorted(set(engine.state.inventory.server_of) - engine.state.inventory.up)
        inbox += [ev.ServerUp(down, "", "", "", "H100", 8) for down in downs if rng.random() < 0.2]
        if turn == 150 and seed % 2:
            inbox.append(ev.QuotaSet("t0", 4000, "H100" if seed % 4 == 1 else ""))
        found += engine.advance(turn, inbox).events
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_log_with_quotas_and_servers_that_change(seed: int) -> None:
    events = busy_log(seed)
    kinds = {type(stored.event) for stored in events}
    assert {ev.Finished, ev.Stopped, ev.ServerDown, ev.CapacitySet} <= kinds
    assert (ev.QuotaSet in kinds) == bool(seed % 2)
    assert any(stored.event.victims for stored in events if isinstance(stored.event, ev.Placed))
    most = 0.0
    for end in (100, len(events) // 3, len(events) // 2, len(events)):
        alone = State(SERVERS)
        state = same(events[:end], State(SERVERS), alone)
        assert not state.work.defers
        at_risk = []
        for one in (state, state_from(state_bytes(state)), alone):
            one.fleet.look_at_work(tuple(one.inventory.supply_mgpu), state.now_ms + 100_000)
            at_risk.append([one.fleet.job(name).gpu_hours_at_risk for name in state.fleet.running()])
        assert at_risk[0] == at_risk[1] == at_risk[2]
        most = max(most, *at_risk[0])
        runs = {one.name for one in state.jobs.values() if one.state in (JobState.STARTING, JobState.RUNNING)}
        assert set(state.fleet.running()) == runs
    assert most > 0


def test_what_does_not_fit_is_refused() -> None:
    events = [ev.Stored(at, 0, event) for at, event in enumerate(State(SERVERS).opening(), start=1)]
    spec = JobSpec(mgpu=8000)
    wrong = ev.Placed("a", 1, "east", "c0", (Share("s0", 2, {0: 1000}),))  # it has one task
    for more in ((ev.Started("a", 1),), (ev.Submitted("a", spec), wrong)):
        log = [*events, *(ev.Stored(len(events) + at, 0, event) for at, event in enumerate(more, start=1))]
        with pytest.raises(CorruptLog):
            replay(State(SERVERS), log)
