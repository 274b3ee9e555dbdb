"""The order of moves: replayed step by step, it never holds too much and ends at the plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.task_reassignment import Plan, TaskReassignment
from mast_opt.task_reassignment.generate import challenge
from mast_opt.task_reassignment.steps import Steps, steps
from tests.data_placement.support import examples


def replay(problem: TaskReassignment, plan: Plan, order: Steps) -> None:
    """Hold everything on both machines during a wave, transient resources to the end; compare with capacities."""
    machine = problem.initial.copy()
    left: list[tuple[int, int]] = []
    for wave in range(order.waves):
        moves = [step for step in order.moves if step.wave == wave]
        assert moves
        held = np.zeros_like(problem.capacity)
        np.add.at(held, machine, problem.need)
        services = {(int(problem.service[p]), int(m)) for p, m in enumerate(machine)}
        for step in moves:
            assert machine[step.process] == step.source
            assert (int(problem.service[step.process]), step.target) not in services
            services.add((int(problem.service[step.process]), step.target))
        for process, source in left:
            held[source] += problem.need[process] * problem.transient
        for step in moves:
            held[step.target] += problem.need[step.process]
            machine[step.process] = step.target
        assert (held <= problem.capacity).all()
        left += [(step.process, step.source) for step in moves]
    reached = machine == plan.machine
    assert reached.all() == (not order.blocked)
    assert sorted(np.flatnonzero(~reached).tolist()) == sorted(blocked.process for blocked in order.blocked)


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_is_reached_without_holding_too_much(seed: int) -> None:
    problem = challenge(np.random.default_rng(seed), processes=60, machines=8, resources=3)
    solution = mast_opt.solve(problem, "twine", iterations=30, seed=seed, threads=1)
    assert solution.plan is not None
    order = steps(problem, solution.plan)
    replay(problem, solution.plan, order)
    assert len(order.moves) >= solution.verdict.metrics["moved_processes"] - len(order.blocked)


def tight(spare: int) -> TaskReassignment:
    """Two machines that are full and have to exchange their processes; a third one with some room."""
    problem = challenge(np.random.default_rng(0), processes=2, machines=3, resources=1)
    return replace(
        problem,
        need=np.array([[5], [5]]),
        capacity=np.array([[5], [5], [spare]]),
        initial=np.array([0, 1]),
        service=np.array([0, 1]),
        transient=np.array([False]),
        balance_first=np.zeros(0, np.int64),
        balance_second=np.zeros(0, np.int64),
        balance_target=np.zeros(0, np.int64),
        balance_weight=np.zeros(0, np.int64),
    )


def test_a_stopover_breaks_a_deadlock() -> None:
    order = steps(tight(5), Plan(np.array([1, 0])))
    assert [step.hop for step in order.moves] == [True, False, False]
    assert not order.blocked
    replay(tight(5), Plan(np.array([1, 0])), order)


def test_a_deadlock_says_what_is_missing() -> None:
    order = steps(tight(4), Plan(np.array([1, 0])))
    assert order.moves == ()
    assert [(blocked.process, blocked.target, blocked.missing.tolist()) for blocked in order.blocked] == [
        (0, 1, [5]),
        (1, 0, [5]),
    ]


def test_a_plan_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        steps(tight(4), Plan(np.zeros(3, np.int64)))


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[TaskReassignment, Plan]:
    """Full machines whose processes change places, some of them of one service, some resources transient."""
    P, M, K = draw(st.integers(2, 6)), draw(st.integers(2, 4)), draw(st.integers(1, 2))
    amounts = st.lists(st.integers(0, 4), min_size=K, max_size=K)
    need = np.array([draw(amounts) for _ in range(P)])
    places = st.lists(st.integers(0, M - 1), min_size=P, max_size=P)
    service = np.array(draw(st.lists(st.integers(0, P - 1), min_size=P, max_size=P)))
    initial, target = np.array(draw(places)), np.array(draw(places))
    for machine in (initial, target):
        pairs = list(zip(service.tolist(), machine.tolist()))
        if len(set(pairs)) < len(pairs):
            service = np.arange(P)
    transient = np.array([draw(st.booleans()) for _ in range(K)])
    held = np.zeros((M, K), np.int64)
    then = np.zeros((M, K), np.int64)
    np.add.at(held, initial, need)
    np.add.at(then, target, need)
    stay = np.zeros((M, K), np.int64)
    moved = np.flatnonzero(initial != target)
    np.add.at(stay, initial[moved], need[moved] * transient)
    spare = np.array([draw(amounts) for _ in range(M)])
    problem = replace(
        challenge(np.random.default_rng(0), processes=P, machines=M, resources=K),
        services=tuple(f"s{n}" for n in range(P)),
        spread_min=np.ones(P, np.int64),
        dependent=np.zeros(0, np.int64),
        dependency=np.zeros(0, np.int64),
        service=service,
        need=need,
        capacity=np.maximum(held, then + stay) + spare,
        initial=initial,
        transient=transient,
    )
    return problem, Plan(target)


@examples(200)
@given(exchanges())
def test_any_exchange_keeps_capacities_on_the_way(case: tuple[TaskReassignment, Plan]) -> None:
    replay(*case, steps(*case))
