"""Starts of waiting jobs: predicted by limits and by past runs, and compared with what came true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.forecast import PastRuns, predicted
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.run import run_trace
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.simulation.test_order_only import trace_of

SERVERS = tuple(Server(f"s{at}", "r", "c", "k", "h100", 4, 0, 0) for at in range(2))
JOB = JobSpec(tier=1, mgpu=4000, limit_ms=100, duration_ms=50)


def stopped_at(until_ms: int, *jobs: tuple[int, JobSpec]) -> tuple[State, PastRuns]:
    """The state at a time, and the runs that have ended by then."""
    state, past = State(SERVERS, tiers=(0, 1)), PastRuns()
    work = {f"j{at}": Work(spec.duration_ms or 0, 0, limit_ms=spec.limit_ms) for at, (_, spec) in enumerate(jobs)}
    coming = [(at_ms, ev.Submitted(f"j{at}", spec)) for at, (at_ms, spec) in enumerate(jobs)]

    def keep(turn: object) -> None:
        for stored in turn.events:  # type: ignore[attr-defined]
            past.take(stored.at_ms, stored.event)

    simulate(Engine(state, Mast()), SimulatedHost(work), coming, until_ms=until_ms, on_turn=keep)
    state.now_ms = until_ms
    return state, past


def test_the_queue_is_played_forward() -> None:
    gang, last = replace(JOB, tasks=2), replace(JOB, limit_ms=90)
    state, past = stopped_at(20, (0, JOB), (10, replace(JOB, limit_ms=None)), (20, gang), (20, last))
    before = state.digest()
    found = predicted(state, Mast, past)
    assert state.digest() == before
    assert {name: one.by_ms for name, one in found.items()} == {"j2": None, "j3": 100}
    state, past = stopped_at(20, (0, JOB), (10, JOB), (20, gang), (20, last))
    assert {name: one.by_ms for name, one in predicted(state, Mast, past).items()} == {"j2": 110, "j3": 210}


def test_expected_times_go_by_past_runs() -> None:
    """Jobs of tenant a use half of their limits, those of b all of it; a job that has run longer than most runs on."""
    past = PastRuns()  # a name may come again
    for tenant, run_ms in [("a", 50)] * 9 + [("a", 90)] + [("b", 100)] * 10:
        name = f"{tenant}{run_ms}"
        past.take(0, ev.Submitted(name, replace(JOB, tenant=tenant)))
        past.take(0, ev.Started(name, 1))
        past.take(run_ms, ev.Finished(name, 1))
    lengths = [past.length_ms(replace(JOB, tenant=tenant), 0) for tenant in ("a", "b", "c")]
    assert lengths == [54, 100, 77]
    assert past.length_ms(replace(JOB, tenant="a", limit_ms=1000), 0) == 540
    assert past.length_ms(replace(JOB, tenant="a"), 60) == 90
    assert past.length_ms(replace(JOB, tenant="a"), 95) == 100
    assert past.length_ms(replace(JOB, tenant="a", limit_ms=None), 0) is None


def test_jobs_without_limits_are_expected_by_past_runs() -> None:
    free = replace(JOB, limit_ms=None)
    state, past = stopped_at(510, *[(0, free)] * 22)
    found = predicted(state, Mast, past)
    assert {(one.by_ms, one.expected_ms) for one in found.values()} == {(None, 550)} or not found
    state, past = stopped_at(260, *[(0, free)] * 20)
    found = predicted(state, Mast, past)
    assert [found[f"j{at}"].expected_ms for at in (12, 13, 14)] == [300, 300, 350]
    assert {one.by_ms for one in found.values()} == {None}


@pytest.mark.parametrize(("share", "started"), [(1, 1.0), (4, 1.0)])
def test_a_run_compares_what_it_predicted(share: int, started: float) -> None:
    rows = [{"mgpu": 4000, "duration_ms": 100, "limit_ms": 100 * share, "submitted_ms": 10 * at} for at in range(60)]
    found = run_trace(trace_of(*rows), "mast", {"estimates": "30"}).starts
    assert found.keys() == {"promised", "usually_by", "expected"}
    assert {one["started_by_then"] for name, one in found.items() if name != "expected"} == {started}
    assert 20 < found["expected"]["jobs"] <= 30
    assert run_trace(trace_of(*rows), "mast").starts.keys() == {"promised"}
