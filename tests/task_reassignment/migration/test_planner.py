"""The order of moves: replayed step by step, it never holds too much and ends at the plan."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.problems.task_reassignment import Plan, TaskReassignment
from mast_opt.problems.task_reassignment.generate import challenge
from mast_opt.problems.task_reassignment.migration import planner as steps_search
from mast_opt.problems.task_reassignment.migration.planner import Steps, migration_plan, steps
from tests.examples import examples
from tests.narrowing import some


def replay(problem: TaskReassignment, plan: Plan, migration_plan: Steps) -> None:
    """Hold everything on both machines during a wave, transient resources to the end; compare with capacities."""
    machine = problem.processes.initial.copy()
    left: list[tuple[int, int]] = []
    for wave in range(migration_plan.waves):
        moves = [step for step in migration_plan.moves if step.wave == wave]
        assert moves
        held = np.zeros_like(problem.machines.capacity)
        np.add.at(held, machine, problem.processes.need)
        services = {(int(problem.processes.service[p]), int(m)) for p, m in enumerate(machine)}
        for step in moves:
            assert machine[step.process] == step.source
            assert (int(problem.processes.service[step.process]), step.target) not in services
            services.add((int(problem.processes.service[step.process]), step.target))
        for process, source in left:
            held[source] += problem.processes.need[process] * problem.resources.transient
        for step in moves:
            held[step.target] += problem.processes.need[step.process]
            machine[step.process] = step.target
        assert (held <= problem.machines.capacity).all()
        left += [(step.process, step.source) for step in moves]
    reached = machine == plan.machine
    assert reached.all() == (not migration_plan.blocked)
    assert sorted(np.flatnonzero(~reached).tolist()) == sorted(blocked.process for blocked in migration_plan.blocked)


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_is_reached_without_holding_too_much(seed: int) -> None:
    problem = challenge(np.random.default_rng(seed), processes=60, machines=8, resources=3)
    solution = mast_opt.solve(problem, "twine", iterations=30, seed=seed, threads=1)
    assert solution.plan is not None
    found = steps(problem, solution.plan)
    replay(problem, solution.plan, found)
    assert len(found.moves) >= some(solution.verdict).metrics["moved_processes"] - len(found.blocked)


def tight(spare: int) -> TaskReassignment:
    """Two machines that are full and have to exchange their processes; a third one with some room."""
    problem = challenge(np.random.default_rng(0), processes=2, machines=3, resources=1)
    return replace(
        problem,
        processes=replace(
            problem.processes, need=np.array([[5], [5]]), initial=np.array([0, 1]), service=np.array([0, 1])
        ),
        machines=replace(problem.machines, capacity=np.array([[5], [5], [spare]])),
        resources=replace(problem.resources, transient=np.array([False])),
        balances=replace(
            problem.balances,
            first=np.zeros(0, np.int64),
            second=np.zeros(0, np.int64),
            target=np.zeros(0, np.int64),
            weight=np.zeros(0, np.int64),
        ),
    )


def test_a_stopover_breaks_a_deadlock() -> None:
    migration_plan = steps(tight(5), Plan(np.array([1, 0])))
    assert [step.hop for step in migration_plan.moves] == [True, False, False]
    assert not migration_plan.blocked
    replay(tight(5), Plan(np.array([1, 0])), migration_plan)


def test_a_deadlock_says_what_is_missing() -> None:
    migration_plan = steps(tight(4), Plan(np.array([1, 0])))
    assert migration_plan.moves == ()
    assert [(blocked.process, blocked.target, blocked.missing.tolist()) for blocked in migration_plan.blocked] == [
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
    problem = challenge(np.random.default_rng(0), processes=P, machines=M, resources=K).with_columns(
        {
            "services.labels": tuple(f"s{n}" for n in range(P)),
            "services.spread_min": np.ones(P, np.int64),
            "dependencies.service": np.zeros(0, np.int64),
            "dependencies.needs": np.zeros(0, np.int64),
            "processes.service": service,
            "processes.need": need,
            "machines.capacity": np.maximum(held, then + stay) + spare,
            "processes.initial": initial,
            "resources.transient": transient,
        }
    )
    return problem, Plan(target)


def fewest(problem: TaskReassignment, plan: Plan) -> int | None:
    """The fewest single moves that lead to the plan, None where no order does. Every one is tried, in plain Python."""
    need, transient = problem.processes.need.tolist(), problem.resources.transient.tolist()
    service, goal = problem.processes.service.tolist(), tuple(plan.machine.tolist())
    resources = range(len(transient))

    def feasible(at: tuple[int, ...], left: tuple[tuple[int, int], ...], moving: int, source: int) -> bool:
        held = [[0] * len(transient) for _ in problem.machines.labels]
        for q, m in enumerate(at):
            for k in resources:
                held[m][k] += need[q][k]
        for k in resources:
            held[source][k] += need[moving][k]
            for q, m in left:
                held[m][k] += need[q][k] * transient[k]
        full = all(held[m][k] <= problem.machines.capacity[m, k] for m in range(len(held)) for k in resources)
        return full and all(q == moving or (service[q], at[q]) != (service[moving], at[moving]) for q in range(len(at)))

    start: tuple[tuple[int, ...], tuple[tuple[int, int], ...]] = (tuple(problem.processes.initial.tolist()), ())
    seen, todo = {start}, deque([(0, start)])
    while todo:
        moves, (at, left) = todo.popleft()
        if at == goal:
            return moves
        for q in range(len(at)):
            for m in range(len(problem.machines)):
                then = (*at[:q], m, *at[q + 1 :])
                if m == at[q] or not feasible(then, left, q, at[q]):
                    continue
                stays = any(need[q][k] and transient[k] for k in resources)  # otherwise ``left`` could grow for ever
                behind = tuple(sorted((*left, (q, at[q])))) if stays else left
                if (then, behind) not in seen:
                    seen.add((then, behind))
                    todo.append((moves + 1, (then, behind)))
    return None


@examples(60)
@given(exchanges(processes=4, machines=3, most_spare=2))
def test_the_search_finds_the_fewest_moves(case: tuple[TaskReassignment, Plan]) -> None:
    problem, plan = case
    found = steps_search.search(
        problem, problem.processes.initial, problem.machines.capacity - problem.held, plan.machine
    )
    assert found.exhausted
    assert (None if found.moves is None else len(found.moves)) == fewest(problem, plan)


@examples(60)
@given(exchanges(processes=4, machines=3, most_spare=2))
def test_a_stuck_answer_has_no_order_and_what_it_names_helps(case: tuple[TaskReassignment, Plan]) -> None:
    problem, plan = case
    found = steps(problem, plan)
    replay(problem, plan, found)
    plan_steps = migration_plan(problem, plan)
    event(f"stuck: {bool(found.blocked)}, conflict: {any(one.conflict for one in found.blocked)}")
    assert found.proven == plan_steps.proven
    assert bool(plan_steps.stuck) == bool(found.blocked)
    if not found.blocked:
        return
    assert found.proven
    assert fewest(problem, plan) is None
    machine = problem.processes.initial.copy()
    free = problem.machines.capacity - problem.held
    for step in found.moves:
        free[step.target] -= problem.processes.need[step.process]
        free[step.source] += problem.processes.need[step.process] * ~problem.resources.transient
        machine[step.process] = step.target
    for one in found.blocked:
        there = machine == one.target
        assert one.conflict == (problem.processes.service[one.process] in problem.processes.service[there])
        assert one.missing.tolist() == np.maximum(problem.processes.need[one.process] - free[one.target], 0).tolist()
        assert one.conflict or one.missing.any()
    able = [one for one in found.blocked if not one.conflict]
    assert bool(plan_steps.relief) == bool(able)
    for words in plan_steps.relief:
        assert any(words.endswith(f"would let {problem.processes.labels[one.process]} move there") for one in able)


def test_where_a_process_of_the_same_service_is_in_the_way_room_is_no_relief() -> None:
    problem = tight(4).with_columns({"processes.service": np.array([0, 0])})
    plan_steps = migration_plan(problem, Plan(np.array([1, 0])))
    assert [one.reason for one in plan_steps.stuck] == [
        "5 of r0 are missing there; a process of the same service is still there"
    ] * 2
    assert plan_steps.relief == ()


def aside() -> TaskReassignment:
    """0 and 1 exchange machines over the third one, which process 2 has to leave for a while."""
    problem = challenge(np.random.default_rng(0), processes=3, machines=4, resources=1)
    return replace(
        problem,
        processes=replace(
            problem.processes, need=np.array([[5], [5], [1]]), initial=np.array([0, 1, 2]), service=np.array([0, 1, 2])
        ),
        machines=replace(problem.machines, capacity=np.array([[5], [5], [5], [1]])),
        resources=replace(problem.resources, transient=np.array([False])),
    )


def test_what_is_in_place_makes_way() -> None:
    plan = Plan(np.array([1, 0, 2]))
    found = steps(aside(), plan)
    replay(aside(), plan, found)
    assert not found.blocked
    assert found.proven
    assert len(found.moves) == 5
    assert [step.hop for step in found.moves].count(True) == 2


def crowd(
    need: list[list[int]],
    capacity: list[list[int]],
    initial: list[int],
    service: list[int] | None = None,
    transient: list[bool] | None = None,
) -> TaskReassignment:
    """Processes by what they need, and machines by what they have, of each resource."""
    P, M, K = len(need), len(capacity), len(capacity[0])
    return challenge(np.random.default_rng(0), processes=P, machines=M, resources=K).with_columns(
        {
            "services.labels": tuple(f"s{n}" for n in range(P)),
            "services.spread_min": np.ones(P, np.int64),
            "dependencies.service": np.zeros(0, np.int64),
            "dependencies.needs": np.zeros(0, np.int64),
            "processes.service": np.array(range(P) if service is None else service),
            "processes.need": np.array(need),
            "machines.capacity": np.array(capacity),
            "processes.initial": np.array(initial),
            "resources.transient": np.array([False] * K if transient is None else transient),
        }
    )


def test_a_direct_move_that_makes_others_longer_waits() -> None:
    """1 and 2 change machines, and 0 comes to machine 0. If 0 comes first, 1 has to make a stopover."""
    problem = crowd(need=[[1], [1], [1]], capacity=[[2], [1], [1]], initial=[2, 0, 1])
    target = np.array([0, 1, 0])
    found = steps_search.search(problem, problem.processes.initial, problem.machines.capacity - problem.held, target)
    assert found.moves == ((2, 1, 0), (1, 0, 1), (0, 2, 0))


def rows(found: Steps) -> list[tuple[int, int, int, int, bool]]:
    return [(step.wave, step.process, step.source, step.target, step.hop) for step in found.moves]


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in instances that are too large for one."""
    monkeypatch.setattr(steps_search, "STATES", 0)


@pytest.mark.usefixtures("no_search")
def test_the_smallest_process_makes_the_stopover() -> None:
    """0 and 1 exchange machines; the third one has just enough room for 1. Both of 0's resources fit, to the last."""
    problem = crowd(need=[[5, 1], [3, 1]], capacity=[[5, 1], [5, 1], [5, 1]], initial=[0, 1])
    plan = Plan(np.array([1, 0]))
    found = steps(problem, plan)
    replay(problem, plan, found)
    assert rows(found) == [(0, 1, 1, 2, True), (1, 0, 0, 1, False), (2, 1, 2, 0, False)]
    narrow = replace(problem, machines=replace(problem.machines, capacity=np.array([[5, 1], [5, 1], [3, 1]])))
    assert rows(steps(narrow, plan)) == rows(found)
    for lacking in ([2, 1], [3, 0]):
        assert steps(
            replace(problem, machines=replace(problem.machines, capacity=np.array([[5, 1], [5, 1], lacking]))), plan
        ).blocked


@pytest.mark.usefixtures("no_search")
def test_a_stopover_is_where_nobody_waits() -> None:
    """0 and 1 exchange machines, 2 and 3 too. There is room for 3 on machine 1, which 0 waits for, and on machine 4."""
    problem = crowd(
        need=[[5], [3], [9], [2]],
        capacity=[[5], [5], [9], [9], [9]],
        initial=[0, 1, 3, 2],
    )
    plan = Plan(np.array([1, 0, 2, 3]))
    found = steps(problem, plan)
    replay(problem, plan, found)
    assert not found.blocked
    assert rows(found)[0] == (0, 3, 2, 4, True)


@pytest.mark.usefixtures("no_search")
def test_a_stopover_helps_if_one_of_those_that_wait_can_come() -> None:
    """0 and 4 wait for machine 1, where 3 is of the service of 4. 1 makes room for 0. 3 cannot make a stopover, since 5
    is of its service."""
    problem = crowd(
        need=[[4], [3], [0], [1], [1], [0]],
        capacity=[[4], [5], [3], [1]],
        initial=[0, 1, 3, 1, 3, 2],
        service=[0, 1, 2, 3, 3, 3],
    )
    plan = Plan(np.array([1, 0, 3, 0, 1, 2]))
    found = steps(problem, plan)
    replay(problem, plan, found)
    assert not found.blocked
    assert rows(found)[:2] == [(0, 1, 1, 2, True), (1, 0, 0, 1, False)]


def test_what_transient_resources_block_is_searched_from_the_beginning() -> None:
    """1 comes first, since it needs a third of r1, and leaves some of it on machine 0: then no order leads on. If 2
    leaves machine 0 first, one does."""
    problem = crowd(
        need=[[2, 0], [1, 1], [2, 0]],
        capacity=[[3, 1], [4, 1], [0, 1]],
        initial=[1, 0, 0],
        transient=[False, True],
    )
    plan = Plan(np.array([0, 1, 1]))
    found = steps(problem, plan)
    replay(problem, plan, found)
    assert rows(found) == [(0, 2, 0, 1, False), (1, 0, 1, 0, False), (2, 1, 0, 1, False)]
    assert found.proven
    stuck = replace(
        problem,
        machines=replace(problem.machines, capacity=np.array([[3, 1], [3, 1], [0, 1]])),
        processes=replace(problem.processes, need=np.array([[2, 0], [1, 1], [1, 0]])),
    )
    plan_steps = steps(stuck, plan)
    replay(stuck, plan, plan_steps)
    assert bool(plan_steps.blocked) == (fewest(stuck, plan) is None)


def test_a_search_that_is_cut_short_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_search, "STATES", 1)
    found = steps(aside(), Plan(np.array([1, 0, 2])))
    assert found.blocked
    assert not found.proven
    assert not migration_plan(aside(), Plan(np.array([1, 0, 2]))).proven


@examples(200)
@given(exchanges())
def test_any_exchange_keeps_capacities_on_the_way(case: tuple[TaskReassignment, Plan]) -> None:
    replay(*case, steps(*case))
