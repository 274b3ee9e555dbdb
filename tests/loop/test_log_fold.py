"""The fold of a log agrees with the loop's state at each event, and what reads it counts what it says."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.history import history
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.log_fold import LogFold
from mast_opt.live.loop.past_state import PastState
from mast_opt.live.loop.state import State
from mast_opt.problems.job_placement.live_fleet.types import Share
from tests.loop import test_sharing
from tests.loop.test_metrics import stored
from tests.simulation import test_driver

UP = ev.ServerUp("s", "east", "c", "b", "A", 2, 0, 0)
ON = (Share("s", 1, {0: 1000}),)
PLACED = ev.Placed("a", 1, "east", "c", ON)


def agree(state: State, fold: LogFold) -> None:
    assert list(fold.jobs) == list(state.jobs)
    for name, record in state.jobs.items():
        job = fold.jobs[name]
        assert (job.placed.shares if job.placed is not None else ()) == record.shares
        assert job.claims == (record.state in (JobState.STARTING, JobState.RUNNING))
        assert job.is_guest or not record.is_guest  # who shared with a job that stops does so until that has stopped
        assert job.cancelled == record.cancelled
        assert job.bound == record.bound
    for name, server in fold.servers.items():
        assert server.in_service == (name in state.inventory.up)
        assert server.moves == (name in state.inventory.moving)


def both(log: Iterable[ev.Stored], state: State) -> None:
    fold = LogFold()
    for one in log:
        state.apply(one.seq, one.at_ms, one.event)
        fold.take(one.at_ms, one.event)
        agree(state, fold)


@pytest.mark.parametrize("name", ["mast", "random", "mast-packed"])
def test_with_the_state_of_the_loop(name: str) -> None:
    _, log, _ = test_driver.run(name, seed=5)
    both(log, test_driver.fresh())


def test_with_the_state_where_jobs_share_gpus() -> None:
    both(stored(*test_sharing.LOG), State([test_sharing.UP.as_server()], tiers=(0,)))


def events(*given: tuple[int, ev.Event]) -> list[ev.Stored]:
    return [ev.Stored(seq, at, event) for seq, (at, event) in enumerate(given, start=1)]


@pytest.mark.parametrize("end", [ev.Failed("a", 1), ev.Stopped("a", 1, 0, 0)])
def test_a_job_that_ends_before_it_runs_waits_no_longer(end: ev.Event) -> None:
    cancelled = [(20, ev.Cancelled("a"))] if isinstance(end, ev.Stopped) else []
    found = history(events((0, UP), (0, ev.Submitted("a", JobSpec())), (10, PLACED), *cancelled, (30, end)))
    assert [(wait.end_ms, wait.open) for wait in found.waits] == [(30, False)]
    assert found.waiting_jobs.amount.tolist() == [1, 0]


def test_adopted_and_resized_work_takes_its_room() -> None:
    past, more = PastState(), (Share("s", 2, {0: 1000, 1: 1000}),)
    for event in (UP, ev.Submitted("a", JobSpec()), ev.Adopted("a", 1, "east", "c", ON)):
        past.take(0, event)
    assert past.servers["s"].free[0] == 1000
    past.take(1, ev.Resized("a", 1, 2, more))
    assert past.servers["s"].free[0] == 0
    past.take(2, ev.ServerDown("s"))
    past.take(3, UP)
    past.take(4, ev.Stopped("a", 1, 0, 0))  # its host says so when the server is back
    assert past.servers["s"].free[0] == 2000
