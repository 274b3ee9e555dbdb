"""The groups of a job's states."""

from __future__ import annotations

from mast_opt.live.loop.job_states import ENDED, HOLDING, WAITING, JobState


def test_states_are_of_one_group_each() -> None:
    assert len(WAITING) + len(HOLDING) + len(ENDED) == len(JobState)
    assert set(JobState) == WAITING | HOLDING | ENDED
