"""Rules of placement as short arithmetic, on generated fleets."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.fgd import Row, arrivals, generated, models, replay
from benchmarks.rule_scores import (
    FEATURES,
    MOST,
    RULES,
    Rule,
    admitted,
    allocated,
    fleet_of,
    operations,
    queue_of,
    written,
)
from benchmarks.rule_search import FOUND, TEST, TRAINING, changed, search, start_of, tree

SERVERS = 24


def generated_case(seed: int = 42) -> tuple[list[Row], list[Row], list[Row]]:
    nodes, pods = generated(SERVERS)
    return nodes, pods, arrivals(pods, 1000 * sum(int(node["gpu"]) for node in nodes), seed)


def test_fgd_allocates_what_the_solver_does_in_the_mean() -> None:
    ours, theirs = [], []
    for seed in range(42, 47):
        nodes, pods, queue = generated_case(seed)
        fleet, kinds = fleet_of(nodes, pods)
        ours.append(allocated(fleet, queue_of(queue, kinds, models(nodes)), RULES["FGD"]))
        theirs.append(replay(nodes, pods, "fgd", seed).curve()[-1])
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=1)


def lone_server(gpus: int, cores: int, model: str = "T4") -> Row:
    return {"sn": "a", "cpu_milli": str(cores), "memory_mib": "1024", "gpu": str(gpus), "model": model}


def pod_of(gpus: int, milli: int = 1000, cores: int = 1000, spec: str = "") -> Row:
    sizes = {"num_gpu": str(gpus), "gpu_milli": str(milli), "cpu_milli": str(cores)}
    return {**sizes, "memory_mib": "1", "gpu_spec": spec}


def taken(nodes: list[Row], queue: list[Row], rule: Rule) -> list[bool]:
    fleet, kinds = fleet_of(nodes, queue)
    answers: list[bool] = admitted(fleet, queue_of(queue, kinds, models(nodes)), rule).tolist()
    return answers


@pytest.mark.parametrize("rule", RULES.values())
def test_nothing_is_placed_where_it_does_not_fit(rule: Rule) -> None:
    assert taken([lone_server(2, 3000)], [pod_of(1, 600), pod_of(1, 600), pod_of(1, 500), pod_of(1, 400)], rule) == [
        True,
        True,
        False,
        True,
    ]
    assert taken([lone_server(2, 1500)], [pod_of(1), pod_of(1)], rule) == [True, False]
    nodes = [lone_server(1, 9000), lone_server(1, 9000, "G2")]
    assert taken(nodes, [pod_of(1, spec="G2"), pod_of(1, spec="G2"), pod_of(1)], rule) == [True, False, True]


def test_the_least_cost_decides() -> None:
    nodes = [lone_server(2, 9000), lone_server(1, 9000)]
    small, large = pod_of(1), pod_of(2)
    assert taken(nodes, [small, large], ("whole_left",)) == [True, True]
    assert taken(nodes, [small, large], ("whole_left", "neg")) == [True, False]


@pytest.mark.parametrize(
    ("feature", "value"),
    {
        "waste": 0.75, "waste_left": 0.75, "room": 1.0, "fill": 1.25, "cpu_left": 0.75, "memory_left": 1023 / 1024,
        "gpu_left": 0.75, "device_left": 0.5, "whole_left": 1.0, "cpu_taken": 0.25, "memory_taken": 1 / 1024,
        "gpu_taken": 0.25, "asked": 0.5, "type_share": 1.0,
    }.items(),
)  # fmt: skip
def test_features_are_what_they_say(feature: str, value: float) -> None:
    nodes, kinds = [lone_server(2, 4000)], [pod_of(1, 500), pod_of(2, cores=2000)]
    fleet, number = fleet_of(nodes, kinds)
    queue = queue_of(kinds[:1], number, models(nodes))
    for shown, other in ((value, False), (value + 0.1, True)):
        unless_equal: Rule = (1.0, feature, shown, "-", "/", *["square"] * 6)
        assert admitted(fleet, queue, unless_equal).tolist() == [other]
    assert {feature} <= set(FEATURES)


def test_a_part_of_a_program_ends_where_it_says() -> None:
    rule: Rule = ("waste", 2.0, "fill", "*", "+", "neg")
    assert [start_of(rule, end) for end in range(len(rule))] == [0, 1, 2, 1, 0, 0]
    assert written(rule) == "neg((waste + (2 * fill)))"
    assert operations(rule) == 3


def test_changes_make_programs() -> None:
    rng = random.Random(1)
    for _ in range(300):
        rule = changed(tree(rng, 3), tree(rng, 3), rng)
        assert start_of(rule, len(rule) - 1) == 0


def test_a_search_repeats_itself_and_gets_better() -> None:
    nodes, pods, queue = generated_case()
    fleet, kinds = fleet_of(nodes, pods)
    cases = [(fleet, queue_of(queue, kinds, models(nodes)))]
    seen: list[float] = []
    best = search(cases, 5, 3, lambda _, people, worth: seen.append(worth))
    assert best == search(cases, 5, 3, lambda _, people, worth: None)
    assert seen == sorted(seen)
    assert max(map(operations, best)) <= MOST
    assert allocated(*cases[0], best[0]) >= max(allocated(*cases[0], rule) for rule in RULES.values())


def test_training_and_test_lists_are_apart() -> None:
    assert len(TRAINING) == 6
    assert len(TEST) == 7
    assert not set(TRAINING) & set(TEST)


def test_the_found_rule_is_short_and_packs_better_than_best_fit() -> None:
    nodes, pods = generated(SERVERS)
    capacity = 1000 * sum(int(node["gpu"]) for node in nodes)
    fleet, kinds = fleet_of(nodes, pods)
    queues = [queue_of(arrivals(pods, capacity, seed), kinds, models(nodes)) for seed in range(42, 47)]
    found, usual = ([allocated(fleet, queue, rule) for queue in queues] for rule in (FOUND, RULES["best fit"]))
    assert operations(FOUND) <= MOST
    assert np.mean(found) > np.mean(usual)
