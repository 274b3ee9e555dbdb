"""The order of moves: replayed step by step, it never holds too much and ends at the plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.task_reassignment import Plan, TaskReassignment, steps_search
from mast_opt.task_reassignment.generate import challenge
from mast_opt.task_reassignment.order import order
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
    found = steps(problem, solution.plan)
    replay(problem, solution.plan, found)
    assert len(found.moves) >= solution.verdict.metrics["moved_processes"] - len(found.blocked)


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
def exchanges(
    draw: st.DrawFn, *, processes: int = 6, machines: int = 4, most_spare: int = 4
) -> tuple[TaskReassignment, Plan]:
    """Full machines whose processes change places, some of them of one service, some resources transient."""
    P, M, K = draw(st.integers(2, processes)), draw(st.integers(2, machines)), draw(st.integers(1, 2))
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
    spare = np.minimum([draw(amounts) for _ in range(M)], most_spare)
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


def reachable(problem: TaskReassignment, plan: Plan) -> bool:
    """Is there an order of single moves? Every one is tried, in plain Python."""
    need, transient = problem.need.tolist(), problem.transient.tolist()
    service, goal = problem.service.tolist(), tuple(plan.machine.tolist())
    resources = range(len(transient))

    def lawful(at: tuple[int, ...], left: tuple[tuple[int, int], ...], moving: int, source: int) -> bool:
        held = [[0] * len(transient) for _ in problem.machines]
        for q, m in enumerate(at):
            for k in resources:
                held[m][k] += need[q][k]
        for k in resources:
            held[source][k] += need[moving][k]
            for q, m in left:
                held[m][k] += need[q][k] * transient[k]
        full = all(held[m][k] <= problem.capacity[m, k] for m in range(len(held)) for k in resources)
        return full and all(q == moving or (service[q], at[q]) != (service[moving], at[moving]) for q in range(len(at)))

    start: tuple[tuple[int, ...], tuple[tuple[int, int], ...]] = (tuple(problem.initial.tolist()), ())
    seen, todo = {start}, [start]
    while todo:
        at, left = todo.pop()
        if at == goal:
            return True
        for q in range(len(at)):
            for m in range(len(problem.machines)):
                then = (*at[:q], m, *at[q + 1 :])
                if m == at[q] or not lawful(then, left, q, at[q]):
                    continue
                behind = tuple(sorted((*left, (q, at[q])))) if any(transient) else ()
                if (then, behind) not in seen:
                    seen.add((then, behind))
                    todo.append((then, behind))
    return False


@examples(60)
@given(exchanges(processes=4, machines=3, most_spare=2))
def test_a_stuck_answer_has_no_order_and_what_it_names_helps(case: tuple[TaskReassignment, Plan]) -> None:
    problem, plan = case
    found = steps(problem, plan)
    replay(problem, plan, found)
    told = order(problem, plan)
    event(f"stuck: {bool(found.blocked)}, conflict: {any(one.conflict for one in found.blocked)}")
    assert found.proven == told.proven
    assert bool(told.stuck) == bool(found.blocked)
    if not found.blocked:
        return
    assert found.proven
    assert not reachable(problem, plan)
    machine = problem.initial.copy()
    free = problem.capacity - problem.held
    for step in found.moves:
        free[step.target] -= problem.need[step.process]
        free[step.source] += problem.need[step.process] * ~problem.transient
        machine[step.process] = step.target
    for one in found.blocked:
        there = machine == one.target
        assert one.conflict == (problem.service[one.process] in problem.service[there])
        assert one.missing.tolist() == np.maximum(problem.need[one.process] - free[one.target], 0).tolist()
        assert one.conflict or one.missing.any()
    able = [one for one in found.blocked if not one.conflict]
    assert bool(told.relief) == bool(able)
    for words in told.relief:
        assert any(words.endswith(f"would let {problem.processes[one.process]} move there") for one in able)


def test_where_a_process_of_the_same_service_is_in_the_way_room_is_no_relief() -> None:
    problem = replace(tight(4), service=np.array([0, 0]))
    told = order(problem, Plan(np.array([1, 0])))
    assert [one.reason for one in told.stuck] == [
        "5 of r0 are missing there; a process of the same service is still there"
    ] * 2
    assert told.relief == ()


def aside() -> TaskReassignment:
    """0 and 1 exchange machines over the third one, which process 2 has to leave for a while."""
    problem = challenge(np.random.default_rng(0), processes=3, machines=4, resources=1)
    return replace(
        problem,
        need=np.array([[5], [5], [1]]),
        capacity=np.array([[5], [5], [5], [1]]),
        initial=np.array([0, 1, 2]),
        service=np.array([0, 1, 2]),
        transient=np.array([False]),
    )


def test_what_is_in_place_makes_way() -> None:
    plan = Plan(np.array([1, 0, 2]))
    found = steps(aside(), plan)
    replay(aside(), plan, found)
    assert not found.blocked
    assert found.proven
    assert len(found.moves) == 5
    assert [step.hop for step in found.moves].count(True) == 2


def test_a_search_that_is_cut_short_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_search, "STATES", 1)
    found = steps(aside(), Plan(np.array([1, 0, 2])))
    assert found.blocked
    assert not found.proven
    assert not order(aside(), Plan(np.array([1, 0, 2]))).proven


@examples(200)
@given(exchanges())
def test_any_exchange_keeps_capacities_on_the_way(case: tuple[TaskReassignment, Plan]) -> None:
    replay(*case, steps(*case))
