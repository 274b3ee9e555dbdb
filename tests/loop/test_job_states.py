"""Which events a job can have in which state."""

from __future__ import annotations

import pytest

from mast_opt.loop.events import EVENTS, Adopted, Event, JobSpec, Placed, Started, Stopped, Submitted
from mast_opt.loop.job_states import ENDED, HOLDING, TRANSITIONS, WAITING, JobState, state_after


def test_states_are_of_one_group_each() -> None:
    assert len(WAITING) + len(HOLDING) + len(ENDED) == len(JobState)
    assert set(JobState) == WAITING | HOLDING | ENDED


def test_nothing_happens_after_the_end() -> None:
    assert not any(set(moves) & ENDED for moves in TRANSITIONS.values())


def test_only_events_that_end_an_attempt_give_servers_back() -> None:
    for cls, moves in TRANSITIONS.items():
        freed = any(before in HOLDING and after not in HOLDING for before, after in moves.items())
        assert freed == (cls.__name__ in ("Stopped", "Finished", "Failed"))


def test_all_are_events() -> None:
    assert all(EVENTS[cls.__name__] is cls for cls in TRANSITIONS)


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        (None, Submitted("a", JobSpec()), JobState.SUBMITTED),
        (None, Adopted("a", 1, "r", "c", ()), JobState.RUNNING),
        (None, Started("a", 1), None),
        (JobState.RUNNING, Submitted("a", JobSpec()), None),
        (JobState.QUEUED, Placed("a", 1, "r", "c", ()), JobState.STARTING),
        (JobState.QUEUED, Placed("a", 1, "r", "c", (), at_once=True), JobState.RUNNING),
        (JobState.RUNNING, Placed("a", 1, "r", "c", (), at_once=True), None),
        (JobState.STOPPING, Started("a", 1), JobState.STOPPING),
        (JobState.RUNNING, Stopped("a", 1, 0, 0), JobState.QUEUED),
    ],
)
def test_transitions(before: JobState | None, event: Event, after: JobState | None) -> None:
    assert state_after(before, event) is after
