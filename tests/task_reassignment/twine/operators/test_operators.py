"""Every neighbourhood of ``twine`` evaluates exactly: after thousands of changes nothing differs from a fresh count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.exact_sums_jit import compiled
from mast_opt.problems.task_reassignment.generate import FAMILIES
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment
from mast_opt.problems.task_reassignment.twine.annealing.kernel import OperatorShares, anneal
from mast_opt.problems.task_reassignment.twine.instance_arrays import TwineArrays, twine_arrays_of
from mast_opt.problems.task_reassignment.twine.operators.process_moves import (
    ejection_move,
    shift_process,
    swap_processes,
)
from mast_opt.problems.task_reassignment.twine.params import OperatorParams
from mast_opt.problems.task_reassignment.twine.state import COST, TwineState, state_of
from mast_opt.problems.task_reassignment.verification.verifier import verify

PRICES = (7.0, 1e9, 0.0)
"""Of excess, of broken rules and of being away."""
COUNTED = (
    "level",
    "spare",
    "cost",
    "excess",
    "locations",
    "at_location",
    "at_neighbourhood",
    "moved",
    "with_moved",
    "most_moved",
    "total",
)


def drawn(seed: int, family: str = "challenge") -> TaskReassignment:
    return FAMILIES[family].generate(np.random.default_rng(seed), processes=40, machines=9, resources=4)


def begun(problem: TaskReassignment, seed: int) -> tuple[TwineArrays, TwineState]:
    fleet = twine_arrays_of(problem, OperatorParams())
    return fleet, state_of(problem, fleet, problem.processes.initial, np.random.default_rng(seed))


def weighed(state: TwineState) -> float:
    cost, excess, broken = state.total
    return float(cost + PRICES[0] * excess + PRICES[1] * broken)


def assert_counted(problem: TaskReassignment, fleet: TwineArrays, state: TwineState) -> None:
    fresh = state_of(problem, fleet, state.machine.astype(np.int64), np.random.default_rng(0))
    for name in COUNTED:
        assert np.array_equal(getattr(state, name), getattr(fresh, name)), name


def assert_allowed(problem: TaskReassignment, state: TwineState) -> None:
    """Conflicts and transient capacities are never broken on the way."""
    verdict = verify(problem, Plan(state.machine.astype(np.int64)))
    transient = {
        name
        for name, is_transient in zip(problem.resources.labels, problem.resources.transient, strict=True)
        if is_transient
    }
    for violation in verdict.violations:
        assert violation.constraint != "conflict"
        assert violation.constraint != "capacity" or violation.index[1] not in transient
    if state.total[1] == state.total[2] == 0:
        assert verdict.ok
    assert verdict.objective == state.total[COST]


@compiled
def shift(
    fleet: TwineArrays, state: TwineState, p: int, to: int, hot: float, prices: tuple[float, float, float]
) -> bool:
    return bool(shift_process(fleet, state, p, to, hot, prices[0], prices[1], prices[2]))


@compiled
def swap(fleet: TwineArrays, state: TwineState, p: int, q: int, hot: float, prices: tuple[float, float, float]) -> bool:
    return bool(swap_processes(fleet, state, p, q, hot, prices[0], prices[1], prices[2]))


@compiled
def eject(
    fleet: TwineArrays, state: TwineState, p: int, q: int, to: int, hot: float, prices: tuple[float, float, float]
) -> bool:
    return bool(ejection_move(fleet, state, p, q, to, hot, prices[0], prices[1], prices[2]))


@pytest.mark.parametrize("name", ["shift", "swap", "eject"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_made_is_counted_and_what_is_refused_changes_nothing(name: str, seed: int) -> None:
    problem = drawn(seed)
    fleet, state = begun(problem, seed)
    rng = np.random.default_rng(seed)
    made = refused = 0
    for _ in range(1_500):
        state.trail_end[0] = 0
        p, q = rng.choice(len(problem.processes), 2, replace=False).tolist()
        machine, before = state.machine.copy(), weighed(state)
        hot = float(fleet.size.max()) if rng.random() < 0.5 else 1.0
        others = np.setdiff1d(np.arange(len(problem.machines)), machine[[p, q]])
        if name != "shift" and machine[p] == machine[q]:
            continue
        if name == "shift":
            done = shift(fleet, state, p, int(rng.choice(others)), hot, PRICES)
        elif name == "swap":
            done = swap(fleet, state, p, q, hot, PRICES)
        else:
            done = eject(fleet, state, p, q, int(rng.choice(others)), hot, PRICES)
        moved = np.flatnonzero(state.machine != machine)
        if done:
            made += 1
            assert moved.tolist() == ([p] if name == "shift" else sorted([p, q]))
            assert weighed(state) - before <= 37 * hot
        else:
            refused += 1
            assert not len(moved)
            assert weighed(state) == before
    assert made > 5
    assert refused > 5
    assert_counted(problem, fleet, state)
    assert_allowed(problem, state)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize(
    "shares",
    [
        (0.0, 0.0, 0.0, 0.5, 0.0),
        (1.0, 0.5, 0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0, 0.0, 1.0),
        (0.0, 0.0, 1.0, 0.0, 0.5),
        (0.4, 0.5, 0.2, 0.5, 0.5),
    ],
)
def test_annealing_keeps_count(family: str, shares: tuple[float, ...]) -> None:
    problem = drawn(8, family)
    fleet, state = begun(problem, 8)
    best, best_cost = state.machine.copy(), np.array([np.inf])
    size = float(fleet.size.max())
    for temperature in (size, size / 100, 1.0):
        anneal(fleet, state, 4_000, temperature, *PRICES, len(best), OperatorShares(*shares), best, best_cost)
    assert_counted(problem, fleet, state)
    assert_allowed(problem, state)
    if np.isfinite(best_cost[0]):
        verdict = verify(problem, Plan(best.astype(np.int64)))
        assert verdict.ok
        assert verdict.objective == best_cost[0]


def test_at_no_temperature_nothing_gets_worse() -> None:
    problem = drawn(5)
    fleet, state = begun(problem, 5)
    best, best_cost = state.machine.copy(), np.array([np.inf])
    shares = OperatorShares(0.4, 0.5, 0.1, 0.1, 0.5)
    anneal(fleet, state, 4_000, float(fleet.size.max()), *PRICES, len(best), shares, best, best_cost)
    costs = [weighed(state)]
    for _ in range(5):
        anneal(fleet, state, 2_000, 1e-9, *PRICES, len(best), shares, best, best_cost)
        costs.append(weighed(state))
    assert costs == sorted(costs, reverse=True)
    assert costs[1] < costs[0]


def test_no_change_puts_a_process_where_it_never_fits() -> None:
    """The second machine has room for the small process alone, which is at home on the first."""
    problem = FAMILIES["containers"].generate(np.random.default_rng(0), processes=2, machines=3, resources=1)
    problem = replace(
        problem,
        processes=replace(problem.processes, need=np.array([[20], [10]]), initial=np.array([0, 2])),
        machines=replace(problem.machines, capacity=np.array([[40], [15], [40]]), safety=np.array([[0], [15], [0]])),
    )
    fleet, state = begun(problem, 0)
    assert not shift(fleet, state, 0, 1, 1e9, PRICES)
    assert not eject(fleet, state, 1, 0, 1, 1e9, PRICES)
    assert shift(fleet, state, 1, 1, 1e9, PRICES)
    assert not swap(fleet, state, 0, 1, 1e9, PRICES)
    assert state.machine.tolist() == [0, 1]
    assert_counted(problem, fleet, state)
