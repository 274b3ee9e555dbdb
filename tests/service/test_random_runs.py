"""The whole service under a few seeds; ``python -m tests.service.random_runs`` takes a thousand."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.service.random_runs import run

SEEDS = range(1, 9)
MET = (
    *("POST 201", "POST 401", "POST 403", "POST 415", "POST 421", "POST 422", "PUT 200", "PUT 403"),
    *("DELETE 202", "DELETE 403", "PATCH 405", "GET 429", "cancel by ops", "cancel by owner", "solve OPTIMAL"),
)
"""Answers that a few seeds together have met: without them little was tested."""
_MET: Counter[str] = Counter()


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_nothing_is_lost_and_everything_ends(seed: int) -> None:
    events, jobs, _, _, met = run(seed, 150)
    assert events > jobs > 0
    assert met["followed"]
    _MET.update(met)


def test_little_was_left_untested() -> None:
    if not _MET:
        pytest.skip("the runs were not made")
    assert [what for what in MET if not _MET[what]] == []


def test_a_seed_replays_exactly() -> None:
    assert run(5, 80) == run(5, 80)
