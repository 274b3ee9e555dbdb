"""Questions of task reassignment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt import Scenario
from mast_opt.planner.analysis.scenario_files import happened
from mast_opt.problems.registry import kind_of
from mast_opt.problems.task_reassignment import Plan, TaskReassignment
from tests.analysis.support import check_conflict, check_repairs
from tests.narrowing import some

CROWDED = mast_opt.read(Path(__file__).parents[3] / "instances" / "task_reassignment" / "crowded-machine")
BEST = Plan(
    np.array([CROWDED.machines.labels.index(name) for name in ("a1", "b1", "b1", "a2")])[
        [("web-1", "web-2", "cache-1", "batch-1").index(name) for name in CROWDED.processes.labels]
    ]
)
"""cache-1 moves to b1; all else stays."""
CPU = CROWDED.resources.labels.index("cpu")


def half() -> TaskReassignment:
    """Half the CPU everywhere: nothing that shows without solving, and no plan."""
    capacity = CROWDED.machines.capacity.copy()
    capacity[:, CPU] //= 2
    problem: TaskReassignment = replace(CROWDED, machines=replace(CROWDED.machines, capacity=capacity))
    return problem


def test_too_little_cpu() -> None:
    answer = mast_opt.explain(half())
    assert not answer.seen
    check_conflict(half(), answer)
    check_repairs(half(), answer)
    assert answer.conflict[0].startswith("cpu of machine a1 (5)")
    assert any("cache-1 must run" in words for words in answer.conflict)
    assert answer.repairs[0].changes == ("raise disk of machine a2 by 1",)


SHORT: dict[str, TaskReassignment] = {
    "resources": replace(CROWDED, machines=replace(CROWDED.machines, capacity=CROWDED.machines.capacity // 4)),
    "transient": replace(
        CROWDED,
        machines=replace(CROWDED.machines, capacity=np.minimum(CROWDED.machines.capacity, [[9, 8], [9, 4], [9, 8]])),
    ),
    "spread": replace(CROWDED, services=replace(CROWDED.services, spread_min=np.full(len(CROWDED.services), 3))),
    "conflict": replace(
        CROWDED,
        processes=replace(CROWDED.processes, service=np.zeros(len(CROWDED.processes), np.int64)),
        services=replace(CROWDED.services, spread_min=np.zeros_like(CROWDED.services.spread_min)),
        dependencies=replace(CROWDED.dependencies, service=np.zeros(0, np.int64), needs=np.zeros(0, np.int64)),
    ),
}


@pytest.mark.parametrize("name", SHORT)
def test_what_shows_without_solving(name: str) -> None:
    answer = mast_opt.explain(SHORT[name])
    assert answer.seen
    check_conflict(SHORT[name], answer)
    check_repairs(SHORT[name], answer)
    assert bool(answer.repairs) == (name != "conflict")


def test_why_a_process_runs_where_it_runs() -> None:
    (cache,) = mast_opt.explain(CROWDED, BEST, ["cache-1"]).reasons
    assert cache.now == "runs on b1"
    home, barred = cache.options
    assert home.words == "on a1 (where it runs today)"
    assert home.change == pytest.approx(308 - 219)
    assert not home.forbidden
    assert barred.forbidden == ("disk of machine a2 (8) would be exceeded by 1",)


def test_broken_rules_in_words() -> None:
    (web,) = mast_opt.explain(CROWDED, BEST, ["web-2"]).reasons
    forbidden = {option.place: option.forbidden for option in web.options}
    assert "cache-1 would lack web in its neighbourhood" in forbidden["a2"]
    assert "machine a1 runs another process of web" in forbidden["a1"]
    assert "service web would run in 1 of the 2 locations that it needs" in forbidden["a1"]


def test_scenarios() -> None:
    scenarios = [
        Scenario("a2 out", {"drain_machines": ["a2"]}),
        Scenario("more", {"grow_demand": {"cpu": 1.3}, "weights": {"load": 2}}),
        Scenario("room", {"add_capacity": [{"machine": "a1", "resource": "cpu", "amount": 5}]}),
    ]
    answer = mast_opt.whatif(CROWDED, scenarios, BEST)
    assert answer.base.solution.objective == 219
    drained, grown, roomy = answer.outcomes
    assert CROWDED.machines.labels.index("a2") not in some(drained.solution.plan).machine
    assert drained.moved["reassigned_processes"] >= 1
    assert drained.base_verdict is not None
    assert not drained.base_verdict.ok
    assert grown.problem.objective.weights["load"] == 2
    assert int(roomy.problem.machines.safety[CROWDED.machines.labels.index("a1"), CPU]) == 11
    assert some(roomy.solution.objective) <= 219
    assert all(mast_opt.verify(one.problem, one.solution.plan).ok for one in answer.outcomes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"drain_locations": ["moon"]}, "no location called 'moon'"),
        ({"grow_demand": {"joy": 2}}, "no resource called 'joy'"),
        ({"add_capacity": [{"machine": "a1", "resource": "cpu", "amount": -99}]}, "takes more cpu from a1"),
        (
            {
                "add_capacity": [
                    {
                        "machine": "a1",
                        "resource": "cpu",
                        "amount": -int(CROWDED.machines.capacity[CROWDED.machines.labels.index("a1"), CPU]),
                    },
                    {"machine": "a2", "resource": "cpu", "amount": -99},
                ]
            },
            "takes more cpu from a2",
        ),
        ({"add_capacity": [{"machine": "a1", "resource": "cpu", "amount": 0.4}]}, "is 0.4; expected a whole number"),
        ({"weights": {"load": -1}}, "at least 0"),
    ],
)
def test_values_that_make_no_sense(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.whatif(CROWDED, [Scenario("it", changes)], BEST)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"grow_demand": 1e6}, "scenario it: grow_demand makes the instance too large: needs, column amount: found"),
        (
            {"add_capacity": [{"machine": "a1", "resource": "cpu", "amount": 1e12}] * 10_000},
            "scenario it: add_capacity makes the instance too large: capacities, column capacity: found",
        ),
    ],
)
def test_sums_that_are_no_longer_exact(changes: dict[str, Any], words: str) -> None:
    large = replace(
        CROWDED,
        processes=replace(CROWDED.processes, need=CROWDED.processes.need * 10**9),
        machines=replace(CROWDED.machines, capacity=CROWDED.machines.capacity * 10**9),
    )
    with pytest.raises(mast_opt.UsageError, match=words):
        happened(kind_of(large), large, Scenario("it", changes))


def test_a_safety_capacity_without_end_stays_one() -> None:
    endless = replace(
        CROWDED,
        machines=replace(CROWDED.machines, safety=np.full_like(CROWDED.machines.safety, np.iinfo(np.int64).max)),
    )
    change = {"add_capacity": {"machine": "a1", "resource": "cpu", "amount": 8}}
    assert (
        happened(kind_of(endless), endless, Scenario("it", change)).machines.safety == endless.machines.safety
    ).all()


@pytest.mark.parametrize(("needs", "stays"), [("disk", True), ("cpu", False)])
def test_what_needs_only_transient_resources_may_stay_on_a_drained_machine(needs: str, stays: bool) -> None:
    need = CROWDED.processes.need.copy()
    process = int(np.flatnonzero(CROWDED.processes.initial == CROWDED.machines.labels.index("a2"))[0])
    need[process] = [int(name == needs) for name in CROWDED.resources.labels]
    drained = happened(
        kind_of(CROWDED),
        replace(CROWDED, processes=replace(CROWDED.processes, need=need)),
        Scenario("it", {"drain_machines": "a2"}),
    )
    broken = mast_opt.verify(drained, Plan(CROWDED.processes.initial)).violations
    assert (("a2", needs) not in [one.index for one in broken]) == stays


def test_a_drained_machine_costs_no_balance() -> None:
    """Its disk is transient and stays as capacity; with nothing there, the goal would ask for cores."""
    disk = CROWDED.resources.labels.index("disk")
    transient = np.arange(len(CROWDED.resources)) == disk
    goal = replace(
        CROWDED,
        resources=replace(CROWDED.resources, transient=transient),
        balances=replace(
            CROWDED.balances,
            first=np.array([disk]),
            second=np.array([CPU]),
            target=np.array([10]),
            weight=np.array([1]),
        ),
    )
    drained = happened(kind_of(goal), goal, Scenario("it", {"drain_machines": ["a2"]}))
    away = np.where(
        CROWDED.processes.initial == CROWDED.machines.labels.index("a2"),
        CROWDED.machines.labels.index("b1"),
        BEST.machine,
    )
    free = goal.machines.capacity.copy()
    np.subtract.at(free, away, goal.processes.need)
    lacks = np.maximum(10 * free[:, disk] - free[:, CPU], 0)
    left = np.arange(len(goal.machines)) != goal.machines.labels.index("a2")
    assert mast_opt.verify(drained, Plan(away)).terms["balance"] == lacks[left].sum()
    drained_load = replace(
        drained, machines=replace(drained.machines, balanced=np.ones_like(drained.machines.balanced))
    )
    assert mast_opt.verify(drained_load, Plan(away)).terms["balance"] > lacks[left].sum()


def test_no_units_to_buy_and_nothing_robust() -> None:
    with pytest.raises(mast_opt.UsageError, match="whatif"):
        mast_opt.marginal_values(CROWDED, BEST)
    with pytest.raises(mast_opt.UsageError, match="before it is known"):
        mast_opt.whatif(CROWDED, [Scenario("x", {"drain_machines": ["a2"]})], BEST, robust="worst")


def test_the_frontier_of_load_and_moves() -> None:
    answer = mast_opt.pareto(CROWDED, ("load", "machine_move"), points=3)
    assert [(point.terms["load"], point.terms["machine_move"]) for point in answer.points] == [(0, 2), (300, 0)]
    assert all(point.proven for point in answer.points)
    assert all(mast_opt.verify(CROWDED, point.plan).ok for point in answer.points)
    assert answer.points[0].bound == pytest.approx(2)


def test_all_capacity_may_be_taken_and_a_drained_machine_has_no_safety_capacity() -> None:
    """Safety capacity below what is taken ends at 0; a drained machine has none, whatever it had."""
    a1 = CROWDED.machines.labels.index("a1")
    low = replace(CROWDED, machines=replace(CROWDED.machines, safety=np.minimum(CROWDED.machines.safety, 1)))
    everything = {"machine": "a1", "resource": "cpu", "amount": -int(CROWDED.machines.capacity[a1, CPU])}
    emptied = happened(kind_of(low), low, Scenario("it", {"add_capacity": everything}))
    assert (emptied.machines.capacity[a1, CPU], emptied.machines.safety[a1, CPU]) == (0, 0)
    drained = happened(kind_of(CROWDED), CROWDED, Scenario("it", {"drain_machines": "a1"}))
    assert CROWDED.machines.safety[a1].any()
    assert not drained.machines.safety[a1].any()


def test_reassigned_processes_are_those_on_another_machine() -> None:
    moved = kind_of(CROWDED).analysis.hooks().moved(CROWDED, CROWDED, Plan(CROWDED.processes.initial), BEST)
    assert moved == {"reassigned_processes": 1}
