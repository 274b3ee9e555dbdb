"""A state as bytes: every part of it comes back, and what cannot be read is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.store import state_format
from mast_opt.live.store.state_format import MAGIC, OtherState, state_bytes, state_from
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.store.logs import log, replayed


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_state_that_was_read_goes_on_as_the_one_that_was_written(share: float) -> None:
    events = log()
    cut = int(share * len(events))
    state = replayed(events[:cut])
    again = state_from(state_bytes(state))
    assert again.digest() == state.digest()
    assert again.fleet.running() == state.fleet.running()
    for stored in events[cut:]:
        for one in (state, again):
            one.apply(stored.seq, stored.at_ms, stored.event)
    assert again.digest() == state.digest() == replayed(events).digest()
    assert list(again.reclaimable.grown(0) or ()) == list(state.reclaimable.grown(0) or ())


def test_objects_stay_the_same_ones() -> None:
    state = state_from(state_bytes(replayed(log()[: len(log()) // 2])))
    assert state.inventory.lagging is state.fleet
    assert state.inventory.reclaimable is state.reclaimable


def test_other_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = state_bytes(replayed(()))
    for wrong in (b"", b"x" * 100, data[:-1], data[:-1] + bytes([data[-1] ^ 1])):
        with pytest.raises(OtherState):
            state_from(wrong)
    monkeypatch.setattr(state_format, "FLEET_VERSION", -1)
    with pytest.raises(OtherState, match="another version"):
        state_from(data)
    assert data.startswith(MAGIC)


def test_what_a_state_cannot_hold_is_named() -> None:
    state: State = replayed(())
    state.extra = object()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="it holds a object"):
        state_bytes(state)


@pytest.mark.second_tier
def test_the_same_bytes_in_every_process() -> None:
    code = (
        "import hashlib; from tests.store.logs import log, replayed;"
        "from mast_opt.live.store.state_format import state_bytes;"
        "print(hashlib.sha256(state_bytes(replayed(log()[:len(log()) // 2]))).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_equal_jobs_are_written_once_and_what_follows_is_still_itself() -> None:
    state = State([Server("s", "r", "c", "k", "H100", 8, 0, 0)], tiers=(1,))
    coming: list[ev.Event] = [*state.opening(), ev.QuotaSet("t", 1000)]
    coming += [ev.Submitted(name, JobSpec(tenant="t", gpu_types={"H100": 2000})) for name in "abc"]
    for event in coming:
        state.apply(state.seq + 1, 0, event)
    again = state_from(state_bytes(state))
    assert again.digest() == state.digest()
    assert again.inventory.lagging is again.fleet
