"""Means, gaps, times to a target and profiles, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from mast_opt.core.sense import Sense
from mast_opt.planner.bench.results import metrics as figures
from tests.bench.conftest import result


def test_the_shifted_geometric_mean() -> None:
    assert figures.shifted_geometric_mean([0.0, 3.0]) == pytest.approx(1.0)
    assert figures.shifted_geometric_mean([2.0, 2.0, 2.0], 0.5) == pytest.approx(2.0)
    assert figures.shifted_geometric_mean([]) is None


def test_the_best_known_value_is_the_least_of_all_sources() -> None:
    results = [result("a", 5.0), result("b", 4.0, reference={"best": 3.5, "bound": 3.0}), result("c", None)]
    one = figures.instance(results[0])
    assert figures.best_values(results, {one: 4.5}) == {one: 3.5}
    assert figures.best_values(results[:1], {one: 4.5}) == {one: 4.5}


def test_terms_in_their_order_are_no_value_to_be_averaged() -> None:
    one = result("a", 5.0, bound=4.0, gap=0.2, order=["x"], terms={"x": 5.0})
    assert [look(one) for look in (figures.objective, figures.bound, figures.gap)] == [None] * 3
    assert figures.best_values([one], {}) == figures.best_bounds([one]) == {}


@pytest.mark.parametrize(
    ("ours", "theirs", "position"),
    [
        ((2.0, 0.0), (1.0, 9.0), 0),
        ((1.0, 3.0), (1.0, 2.0), 1),
        ((1.0 + 1e-9, 2.0), (1.0, 3.0), None),
        ((0.5, 9.0), (1.0, 0.0), None),
        ((1.0, 2.0), (1.0, 2.0), None),
    ],
)
def test_the_first_term_that_differs_decides(
    ours: tuple[float, float], theirs: tuple[float, float], position: int | None
) -> None:
    one, other = (result("a", 1.0, order=["x", "y"], terms=dict(zip("xy", terms))) for terms in (ours, theirs))
    assert figures.behind(one, other) == position


def test_results_that_do_not_know_the_order_of_terms_take_it_from_others() -> None:
    terms = {"x": 1.0, "y": 2.0}
    before, crashed, other = result("a", 1.0, terms=terms), result("b", None), result("a", 1.0, instance="j")
    known = figures.with_orders([before, result("c", 1.0, terms=terms, order=["y", "x"]), crashed, other])
    assert [figures.order(one) for one in known] == [("y", "x")] * 3 + [()]
    assert figures.values(known[0]) == (2.0, 1.0)


def test_an_instance_is_the_same_in_every_entry_and_another_where_its_source_is() -> None:
    here, there = result("a", 5.0), result("b", 4.0, entry="longer")
    other = result("b", 3.0, source={"kind": "data-placement"})
    assert list(figures.best_values([here, there, other], {}).values()) == [4.0, 3.0]


def test_gaps() -> None:
    assert figures.gap_to(5.0, 4.0) == pytest.approx(0.25)
    assert figures.gap_to(4.0 + 1e-9, 4.0) == 0.0
    assert figures.gap_to(None, 4.0) is None
    assert figures.gap_to(0.0, 0.0) == 0.0
    assert figures.target_of(4.0, 0.25) == 5.0


def test_where_more_is_better_everything_is_the_other_way_round() -> None:
    events = [[0.5, 2.0, 9.0], [1.0, 4.0, 8.0]]
    good = result("a", 4.0, sense="max", bound=8.0, events=events)
    poor = result("b", 3.0, sense="max", bound=7.0, reference={"best": 3.5, "bound": 7.5})
    one = figures.instance(good)
    assert figures.best_values([poor, good], {one: 3.9}) == {one: 4.0}
    assert figures.best_values([poor], {}) == {one: 3.5}
    assert figures.best_bounds([poor, good]) == {one: 7.0}
    assert figures.known_gaps([good, poor], {one: 4.0}) == [0.0, 0.25]
    assert figures.winners([good, poor], [good, poor], {one: 4.0}) == 1
    assert figures.leader([poor, good]) is good
    assert (figures.behind(poor, good), figures.behind(good, poor)) == (0, None)
    assert figures.target_of(4.0, 0.25, Sense.MAX) == 3.0
    assert [figures.time_to(good, target) for target in (2.0, 3.0, 4.1)] == [0.5, 1.0, None]
    assert figures.time_to({**good, "events": []}, 3.0) == 1.5


def test_a_run_without_an_answer_takes_the_sense_from_others() -> None:
    known = figures.with_orders([result("a", None, reference={"best": 2.0}), result("b", 1.0, sense="max")])
    assert figures.best_values(known, {}) == {figures.instance(known[0]): 2.0}


def test_time_to_a_target_is_when_it_was_first_reached() -> None:
    run = result("a", 5.0)
    assert figures.time_to(run, 10.0) == 0.5
    assert figures.time_to(run, 7.0) == 1.0
    assert figures.time_to(run, 4.9) is None
    silent = result("a", 5.0, events=[])
    assert figures.time_to(silent, 5.0) == 1.5


def test_a_run_that_came_to_no_end_counts_its_limit() -> None:
    assert figures.time_s(result("a", 5.0)) == 1.5
    assert figures.time_s(result("a", None, status="TIMEOUT")) == 10.0


def test_what_is_proven() -> None:
    statuses = ("OPTIMAL", "INFEASIBLE", "FEASIBLE", "NO_SOLUTION", "CRASHED")
    assert [figures.solved(result("a", 1.0, status=status)) for status in statuses] == [True, True, False, False, False]


def test_the_performance_profile() -> None:
    """Task 1: a 1 s, b 2 s. Task 2: a fails, b 3 s. Task 3: nobody."""
    never = math.inf
    costs = {"a": {1: [1.0], 2: [never], 3: [never]}, "b": {1: [2.0], 2: [3.0], 3: [never]}}
    profile = figures.performance_profile(costs)
    assert [part.tolist() for part in profile["a"]] == [[1.0], [0.5]]
    assert [part.tolist() for part in profile["b"]] == [[1.0, 2.0], [0.5, 1.0]]
    assert math.isclose(profile["b"][1][-1], 1.0)


def test_a_profile_counts_the_runs_that_a_contestant_has() -> None:
    """a has four seeds on one task, b one on each of two: the quickest run of a task is the measure for all."""
    profile = figures.performance_profile({"a": {1: [2.0, 1.0, math.inf, 4.0]}, "b": {1: [3.0], 2: [5.0]}})
    assert [part.tolist() for part in profile["a"]] == [[1.0, 2.0, 4.0], [0.25, 0.5, 0.75]]
    assert [part.tolist() for part in profile["b"]] == [[1.0, 3.0], [0.5, 1.0]]
