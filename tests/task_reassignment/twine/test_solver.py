"""The solver ``twine``: verified plans, no worse than today, a true bound, the same answer for the same seed."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Event, SolveParams, SolveResult, Status
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, StoppingCriteria
from mast_opt.problems.task_reassignment.generate import FAMILIES
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine.annealing.chain import Chain
from mast_opt.problems.task_reassignment.twine.instance_arrays import twine_arrays_of
from mast_opt.problems.task_reassignment.twine.params import TwineParams
from mast_opt.problems.task_reassignment.twine.solver import choose_strategy, initial_assignment, twine
from mast_opt.problems.task_reassignment.twine.state import EXCESS
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from mast_opt.problems.task_reassignment.verification.verifier import verify

PARAMS = TwineParams()
SHARES = choose_strategy(100, 10, True, PARAMS).shares


def chain_at(problem: TaskReassignment, machine: Ints) -> Chain:
    arrays = twine_arrays_of(problem, PARAMS.operators)
    return Chain(problem, arrays, machine, np.random.default_rng(0), PARAMS)


def drawn(family: str, seed: int) -> TaskReassignment:
    chosen = FAMILIES[family]
    sizes = {name: min(size, 12) for name, size in chosen.sizes.items()}
    return chosen.generate(np.random.default_rng(seed), **sizes)


def no_solver(mip: object, params: SolveParams) -> SolveResult:
    return SolveResult(Status.NO_SOLUTION, None, None, None, None, "")


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("seed", [1, 2])
def test_between_the_bound_and_today(family: str, seed: int) -> None:
    problem = drawn(family, seed)
    solution = mast_opt.solve(problem, "twine", iterations=20, seed=seed, threads=2)
    exact = mast_opt.solve(problem, "highs", time_limit_s=30)
    assert solution.verdict is not None
    assert solution.verdict.ok
    assert solution.objective is not None
    today = verify(problem, Plan(problem.processes.initial.copy()))
    assert solution.objective <= today.objective or not today.ok
    if exact.bound is not None:
        assert solution.objective >= exact.bound - 1e-6 * abs(exact.bound) - 1e-9
    if exact.objective is not None:
        assert aggregate_bound(problem) <= exact.objective + 1e-6
    again = mast_opt.solve(problem, "twine", iterations=20, seed=seed, threads=2)
    assert again.plan is not None
    assert solution.plan is not None
    assert (again.plan.machine == solution.plan.machine).all()


def test_other_seeds_search_elsewhere() -> None:
    problem = FAMILIES["challenge"].generate(np.random.default_rng(3), processes=150, machines=12, resources=4)
    plans = [mast_opt.solve(problem, "twine", iterations=3, seed=seed, threads=1).plan for seed in (1, 2)]
    assert plans[0] is not None
    assert plans[1] is not None
    assert (plans[0].machine != plans[1].machine).any()


@pytest.mark.parametrize(
    ("processes", "machines", "listed", "race", "same_service", "away"),
    [
        (200, 20, True, True, 0.3, 0.0),
        (2_999, 10, True, True, 0.3, 3.0),
        (3_000, 100, True, False, 0.3, 0.0),
        (40_000, 100, False, False, 0.6, 3.0),
    ],
)
def test_the_strategy_by_size(
    processes: int, machines: int, listed: bool, race: bool, same_service: float, away: float
) -> None:
    strategy = choose_strategy(processes, machines, listed, PARAMS)
    assert strategy.schedule == (PARAMS.few if race else PARAMS.many)
    assert strategy.schedule.race == race
    assert strategy.shares.same_service == same_service
    assert strategy.away == away
    assert strategy.hot_rounds == 6 * processes
    assert strategy.facts["schedule.race"] == race
    assert ("race" in strategy.words, "3 temperatures" in strategy.words) == (race, away > 0)


def test_a_start_is_never_lost() -> None:
    problem = drawn("challenge", 4)
    first = mast_opt.solve(problem, "twine", iterations=20, seed=1, threads=1)
    further = mast_opt.solve(problem, "twine", iterations=1, seed=2, threads=1, start=first.plan)
    assert further.objective is not None
    assert first.objective is not None
    assert further.objective <= first.objective


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_cooling_that_ends_with_excess_is_made_good(seed: int) -> None:
    """The first cooling ends with machines that exceed their capacity; the search used to end at today's cost."""
    problem = mast_opt.generate("task-reassignment", "challenge", seed=2, processes=3000, machines=60, resources=12)
    watch = SearchMonitor(StoppingCriteria(gap=0.0, iterations=100))
    found = twine(problem, SearchContext(np.random.default_rng(seed), watch, 1, lambda name: no_solver), None, PARAMS)
    assert found.plan is not None
    today = verify(problem, Plan(problem.processes.initial))
    assert verify(problem, found.plan).objective < 0.9 * today.objective


def test_a_retry_keeps_to_capacities_where_an_assignment_is_known() -> None:
    problem = FAMILIES["challenge"].generate(np.random.default_rng(3), processes=300, machines=12, resources=4)
    chain = chain_at(problem, problem.processes.initial)
    chain.retry(SHARES, 0.0)
    for at in range(20):
        chain.round(at / 20)
        assert chain._state.total[EXCESS] == 0.0
    assert chain.cost < verify(problem, Plan(problem.processes.initial)).objective


def test_a_request_to_stop_ends_the_round_and_keeps_the_plan() -> None:
    problem = FAMILIES["challenge"].generate(np.random.default_rng(0), processes=400, machines=20, resources=4)
    cancel = threading.Event()
    events: list[Event] = []

    def stop_at_the_third(event: Event) -> None:
        events.append(event)
        if len(events) == 3:
            cancel.set()

    watch = SearchMonitor(StoppingCriteria(gap=0.0, cancel=cancel), stop_at_the_third)
    found = twine(problem, SearchContext(np.random.default_rng(0), watch, 2, lambda name: no_solver), None, PARAMS)
    assert len(events) == 3
    assert found.limit is mast_opt.Limit.INTERRUPT
    assert found.plan is not None
    assert verify(problem, found.plan).ok


def test_events_get_better_and_end_at_the_plan() -> None:
    problem = FAMILIES["challenge"].generate(np.random.default_rng(5), processes=200, machines=15, resources=3)
    events: list[Event] = []
    solution = mast_opt.solve(problem, "twine", iterations=30, seed=0, threads=2, on_event=events.append)
    costs = [event.incumbent for event in events if event.incumbent is not None]
    assert len(costs) > 2
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == solution.objective
    assert {event.bound for event in events} == {aggregate_bound(problem)}


def test_a_broken_start_is_no_plan() -> None:
    """Where nothing feasible is found, nothing is returned: today's assignment breaks the capacity of one machine
    and the other one is too small for either process."""
    problem = FAMILIES["containers"].generate(np.random.default_rng(0), processes=2, machines=2, resources=1)
    problem = replace(
        problem,
        processes=replace(problem.processes, need=np.array([[10], [10]]), initial=np.array([0, 0])),
        machines=replace(problem.machines, capacity=np.array([[15], [5]]), safety=np.array([[15], [5]])),
    )
    watch = SearchMonitor(StoppingCriteria(gap=0.0, iterations=2))
    found = twine(problem, SearchContext(np.random.default_rng(0), watch, 1, lambda name: no_solver), None, PARAMS)
    assert found.plan is None
    assert found.limit is mast_opt.Limit.ITERATIONS


def few(**given: Any) -> TaskReassignment:
    """Some processes of services of their own, and machines alike, unless more is given."""
    sizes = {"processes": len(given["need"]), "machines": len(given["capacity"]), "resources": len(given["need"][0])}
    problem = FAMILIES["containers"].generate(np.random.default_rng(0), **sizes)
    changes: dict[str, Any] = {"safety": given["capacity"], **given}
    groups = {"service": "processes", "need": "processes", "initial": "processes", "move_cost": "processes"}
    groups |= {"capacity": "machines", "safety": "machines", "transient": "resources", "load_weight": "resources"}
    return problem.with_columns({f"{groups[name]}.{name}": np.array(value) for name, value in changes.items()})


def searched(problem: TaskReassignment, *start: int) -> float:
    """The objective of a short search, which says of no assignment that it is one if it is not allowed."""
    events: list[Event] = []
    plan = Plan(np.array(start)) if start else None
    solution = mast_opt.solve(problem, "twine", start=plan, iterations=9, seed=0, threads=1, on_event=events.append)
    assert solution.verdict is not None
    assert solution.verdict.ok
    assert solution.objective is not None
    incumbents = [event.incumbent for event in events if event.incumbent is not None]
    assert min(incumbents) == solution.objective
    return solution.objective


def test_a_service_without_processes_spreads_nowhere() -> None:
    problem = few(need=[[5], [6]], capacity=[[10], [10]], initial=[0, 1])
    empty = replace(
        problem,
        services=replace(problem.services, labels=(*problem.services.labels, "empty"), spread_min=np.array([1, 1, 2])),
    )
    assert searched(empty) == 0


@pytest.mark.parametrize(
    ("need", "service", "start"),
    [([5, 6], [0, 1], [1, 1]), ([7, 6], [0, 1], [1, 0]), ([6, 5], [0, 0], [1, 0])],
    ids=["a guest", "two that have changed places", "two that block the way home"],
)
def test_a_start_that_breaks_a_transient_capacity_is_mended(
    need: list[int], service: list[int], start: list[int]
) -> None:
    """What runs on the first machine is expensive, so the start costs less than today, all that is allowed."""
    capacity, safety = [[10], [10]], [[0], [10]]
    problem = few(
        need=[[amount] for amount in need],
        capacity=capacity,
        safety=safety,
        initial=[0, 1],
        service=service,
        transient=[True],
        load_weight=[99],
    )
    broken, today = verify(problem, Plan(np.array(start))), verify(problem, Plan(problem.processes.initial))
    assert not broken.ok
    assert today.ok
    assert broken.objective < today.objective
    assert initial_assignment(problem, np.array(start)).tolist() == [0, 1]
    assert searched(problem, *start) == today.objective


def test_only_as_many_go_home_as_have_to() -> None:
    """The largest guest is enough; the other one stays."""
    problem = few(need=[[2], [4], [5]], capacity=[[9], [9], [9]], initial=[0, 1, 2], transient=[True])
    assert initial_assignment(problem, np.array([2, 2, 2])).tolist() == [2, 1, 2]


def test_of_two_of_a_service_one_goes_where_transient_room_is() -> None:
    """Disk is short where the largest share of all would be left."""
    problem = few(
        need=[[4, 0], [4, 5], [0, 6]],
        capacity=[[10, 40], [12, 10], [3, 40]],
        initial=[0, 0, 1],
        service=[0, 0, 1],
        transient=[False, True],
    )
    assert initial_assignment(problem, problem.processes.initial).tolist() == [0, 2, 1]
    assert searched(problem) > 0


def test_of_two_of_a_service_the_search_finds_which_has_to_go() -> None:
    """The initial assignment looks for room for the second only, and there is none; for the first there is."""
    problem = few(need=[[2], [8], [5]], capacity=[[10], [10]], initial=[0, 0, 1], service=[0, 0, 1], transient=[True])
    assert initial_assignment(problem, problem.processes.initial).tolist() == [0, 0, 1]
    assert not verify(problem, Plan(problem.processes.initial)).ok
    assert searched(problem) == 1 + 10


@pytest.mark.parametrize("safety", [10**18, 2**62])
def test_a_safety_capacity_without_end_leaves_the_capacity_as_it_is(safety: int) -> None:
    problem = few(need=[[5], [6]], capacity=[[10], [10]], initial=[0, 0], safety=[[safety], [safety]])
    assert aggregate_bound(problem) == 0
    assert searched(problem) > 0


def test_two_of_a_service_on_one_machine_are_parted() -> None:
    problem = FAMILIES["containers"].generate(np.random.default_rng(0), processes=6, machines=3, resources=2)
    together = replace(
        problem,
        processes=replace(
            problem.processes, service=np.array([0, 0, 0, 1, 2, 3]), initial=np.array([0, 0, 0, 1, 1, 2])
        ),
        services=replace(problem.services, labels=("a", "b", "c", "d"), spread_min=np.ones(4, np.int64)),
        machines=replace(problem.machines, capacity=problem.machines.capacity * 2, safety=problem.machines.safety * 2),
    )
    solution = mast_opt.solve(together, "twine", iterations=3, seed=0, threads=1)
    assert solution.plan is not None
    assert len(set(solution.plan.machine[:3].tolist())) == 3


def test_where_only_moves_are_left_each_of_them_counts() -> None:
    """Needs weigh millions, but all have room: what an assignment costs is one for each move."""
    problem = mast_opt.generate("task-reassignment", "containers", seed=1, processes=50, machines=5, resources=1)
    wide = problem.machines.capacity * 50
    problem = replace(
        problem,
        machines=replace(problem.machines, capacity=wide, safety=wide),
        resources=replace(problem.resources, load_weight=problem.resources.load_weight * 10**6),
    )
    chain = chain_at(problem, (problem.processes.initial + 1) % 5)
    assert chain.cost == 50 + 10  # a move each, and the most moves of a service, which weigh 10
    chain.reheat(0.2, 0.4, SHARES, 0.0, 1.0)
    assert chain._to < 0.1
