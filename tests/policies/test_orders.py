"""Policies without a program: Tiresias, Hydra, the tickets of Gandiva-Fair. Known answers, and what always holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_opt.core.errors import UsageError
from mast_opt.live.policies import hydra, tiresias
from mast_opt.live.policies.gandiva_fair import ticket_shares

GPUS, LENGTHS = [2, 1, 2], [2, 8, 6]


@pytest.mark.parametrize(
    ("rule", "mean"),
    [
        (tiresias.fewest_gpus, 34 / 3),
        (tiresias.least_remaining_time, 26 / 3),
        (tiresias.least_remaining_service, 28 / 3),
        (tiresias.least_attained, 35 / 3),
        (tiresias.queues([4]), 10.0),
    ],
)
def test_tiresias_has_the_completion_times_of_the_example(rule: tiresias.Rule, mean: float) -> None:
    assert tiresias.replay(GPUS, LENGTHS, 2, rule).mean() == pytest.approx(mean)


def test_jobs_that_arrive_later_are_counted_from_there() -> None:
    ended = tiresias.replay([1, 1], [2, 2], 1, tiresias.least_remaining_time, arrival_s=[0, 10])
    assert ended.tolist() == [2.0, 2.0]


def test_work_of_the_replay_is_all_done() -> None:
    rng = np.random.default_rng(0)
    gpus, length = rng.integers(1, 4, 12), rng.integers(1, 9, 12)
    for rule in (tiresias.least_attained, tiresias.queues([3, 9]), tiresias.gittins(gpus * length)):
        ended = tiresias.replay(gpus, length, 4, rule, arrival_s=np.arange(12.0))
        assert (ended >= length).all()
        assert (ended + np.arange(12)).max() * 4 >= (gpus * length).sum()


def test_gittins_index_by_its_definition() -> None:
    history = np.array([1.0, 2.0, 2.0, 7.0, 20.0])
    for attained in (0.0, 1.0, 1.5, 6.0, 19.0, 20.0):
        left = history[history > attained] - attained
        ratios = [(left <= span).mean() / np.minimum(left, span).mean() for span in left]
        assert tiresias.gittins_index([attained], history)[0] == pytest.approx(max(ratios, default=0.0))


def test_gittins_is_shortest_remaining_service_where_all_lengths_are_equal() -> None:
    index = tiresias.gittins_index([0, 3, 7], [8])
    assert index == pytest.approx([1 / 8, 1 / 5, 1])


def test_a_starved_job_counts_as_new() -> None:
    assert tiresias.promoted([8, 8, 0], [4, 4, 0], [31, 32, 99], knob=8).tolist() == [8, 0, 0]


@pytest.mark.parametrize(
    ("given_", "weights"),
    [
        ({"pending": [50, 100, 200, 300, 400, 500]}, [1, 1, 0.75, 0.5, 0.25, 0]),
        ({"pending": [300, 0], "scaling": "quadratic"}, [0.75, 1]),
        ({"pending": [700, 600, 50], "edited": 2}, [0, 0, 1]),
        ({"pending": [700, 600, 50], "edited": 1}, [0, 1, 1]),
        ({"pending": [100.25], "high": 100.5}, [0.5]),
        ({"pending": [9999, 50], "least_weight": 0.5}, [0.5, 1]),
        ({"pending": [9999, 9999, 9999], "edited": 3}, [1, 1, 1]),
        ({"pending": [100, 101, 120, 500], "scaling": "log"}, [1, 1, 0.5, 0]),
    ],
)
def test_hydra_weights_sub_clusters_by_their_load(given_: dict[str, object], weights: list[float]) -> None:
    assert hydra.load_weights(**{"low": 100, "high": 500, **given_}) == pytest.approx(weights)  # type: ignore[arg-type]


ASKED = {
    "headroom": [40, 0, 10, 70, 90, np.nan],
    "weights": [0.1, 0.1, 0.1, 0.1, 0, 0.1],
    "active": [True, True, True, False, True, True],
}


@pytest.mark.parametrize(
    ("alpha", "parts"), [(1.0, [60, 0, 15, 0, 0, 25]), (0.5, [43, 12, 20, 0, 0, 25]), (0.0, [25, 25, 25, 0, 0, 25])]
)
def test_hydra_splits_by_headroom_and_weight(alpha: float, parts: list[int]) -> None:
    assert hydra.split(100, alpha=alpha, **ASKED).tolist() == parts  # type: ignore[arg-type]


def test_hydra_splits_equally_where_nobody_has_headroom() -> None:
    assert hydra.split(9, headroom=[0, 0, 0, 5], weights=[1, 2, 3, 0]).tolist() == [3, 3, 3, 0]


def test_hydra_splits_a_tie_exactly() -> None:
    headroom = [40, 0, 40, 70, 90, np.nan]
    assert hydra.split(100, **{**ASKED, "headroom": headroom}).tolist() == [38, 0, 37, 0, 0, 25]  # type: ignore[arg-type]


@given(st.integers(0, 10**6), st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(any))
def test_largest_remainders_add_up(total: int, amounts: list[int]) -> None:
    shares = np.array(amounts) / sum(amounts)
    parts = hydra.largest_remainder(total, shares)
    assert parts.sum() == total
    assert (np.abs(parts - total * shares) < 1 + 1e-6).all()
    assert (parts[shares == 0] == 0).all()


def test_unused_tickets_go_to_the_others() -> None:
    assert ticket_shares([1, 1, 1], [8, 8, 2], 8) == pytest.approx([3, 3, 2])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=8), st.integers(0, 40))
def test_ticket_shares_are_max_min_fair(users: list[tuple[int, int]], gpus: int) -> None:
    tickets, demand = (np.array(column, np.float64) for column in zip(*users, strict=True))
    shares = ticket_shares(tickets, demand, gpus)
    assert shares.sum() == pytest.approx(min(gpus, demand.sum()))
    assert (shares <= demand + 1e-9).all()
    short = shares < demand - 1e-9
    level = shares / tickets
    assert not short.any() or level[short].min() >= level.max() - 1e-9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tiresias.queues([4, 4]), "ascending"),
        (lambda: tiresias.gittins([]), "at least one past job"),
        (lambda: tiresias.replay([3], [1], 2, tiresias.fewest_gpus), r"gpus\[0\] is 3; expected at most the capacity"),
        (lambda: tiresias.replay([1], [np.nan], 2, tiresias.fewest_gpus), r"duration_s\[0\] is nan"),
        (lambda: hydra.load_weights([1], low=5, high=5), "low < high"),
        (lambda: hydra.load_weights([1], low=1, high=2, scaling="log"), "more than 1 apart"),
        (lambda: hydra.load_weights([1], low=1, high=5, scaling="cubic"), "linear, quadratic, log"),
        (lambda: hydra.split(10, headroom=[1], weights=[0]), "no sub-cluster is active"),
        (lambda: hydra.split(-1, headroom=[1], weights=[1]), "containers is -1"),
        (lambda: hydra.largest_remainder(5, [0.5]), "add up to 0.5"),
        (lambda: ticket_shares([0], [1], 1), r"tickets\[0\] is 0"),
    ],
)
def test_wrong_input_is_named(call: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call()  # type: ignore[operator]
