"""The whole service under a few seeds; ``python -m tests.service.random_runs`` takes a thousand."""

from __future__ import annotations

from collections import Counter

from tests.service.random_runs import run

SEEDS = range(1, 9)
MET = (
    *("POST 201", "POST 401", "POST 403", "POST 415", "POST 421", "POST 422", "PUT 200", "PUT 403"),
    *("DELETE 202", "DELETE 403", "PATCH 405", "GET 429", "cancel by ops", "cancel by owner", "solve OPTIMAL"),
)
"""Answers that a few seeds together have met: without them little was tested."""


def test_whatever_fails_nothing_is_lost_and_everything_ends() -> None:
    every = Counter[str]()
    for seed in SEEDS:
        events, jobs, _, _, met = run(seed, 150)
        assert events > jobs > 0
        assert met["followed"]
        every.update(met)
    assert [what for what in MET if not every[what]] == []


def test_a_seed_replays_exactly() -> None:
    assert run(5, 80) == run(5, 80)
