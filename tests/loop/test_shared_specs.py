"""Jobs that ask for the same share it in memory, also where many others have come between them."""

from __future__ import annotations

import pytest

from mast_opt.live.loop import jobs
from mast_opt.live.loop.events import Submitted
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.store.state_format import state_bytes, state_from
from tests.service.loops import SERVERS


def _spec(duration_ms: int, tenant: str = "research") -> JobSpec:
    return JobSpec(gpu_types={"H100": 2000}, duration_ms=duration_ms, tenant=tenant, datasets=("d",))


@pytest.mark.parametrize("restarts", [False, True])
def test_equal_jobs_are_in_memory_once(monkeypatch: pytest.MonkeyPatch, restarts: bool) -> None:
    monkeypatch.setattr(jobs, "MOST_KEPT", 3)
    state = State(SERVERS)
    for server in state.opening():
        state.apply(state.seq + 1, 1, server)
    for name, spec in (("a", _spec(5)), ("b", _spec(5)), ("c", _spec(6))):
        state.apply(state.seq + 1, 1, Submitted(name, spec))
    if restarts:
        state = state_from(state_bytes(state))
    for number in range(9):
        state.apply(state.seq + 1, 1, Submitted(f"other-{number}", _spec(5, tenant=f"t{number}")))
    state.apply(state.seq + 1, 1, Submitted("z", _spec(5)))
    a, b, c, z = (state.jobs[name] for name in "abcz")
    assert a.spec is b.spec
    assert (a.spec, c.spec.duration_ms) == (_spec(5), 6)
    assert a.of is b.of is c.of is z.of
