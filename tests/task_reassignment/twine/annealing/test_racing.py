"""Coolings that race: which go on, and what becomes of one that falls behind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult, StoppingCriteria
from mast_opt.problems.task_reassignment.generate import FAMILIES
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.twine.annealing.chain import Chain
from mast_opt.problems.task_reassignment.twine.annealing.racing import Racing, Runner
from mast_opt.problems.task_reassignment.twine.solver import initial_assignment, twine
from mast_opt.problems.task_reassignment.verification.verifier import verify
from tests.task_reassignment.twine.test_solver import PARAMS, SHARES, chain_at, no_solver

ROUNDS = 60
RACE = PARAMS.racing
LAST = len(RACE.rungs) - 1
SHORT = replace(PARAMS, changes_per_process=30_000)
"""A cooling from hot takes 12 rounds of 20 processes, a tenth of the usual."""


def arrived(rung: int, energy: float) -> Runner:
    """A cooling that has just come to a rung, with the same energy at those before."""
    runner = Runner(RACE)
    runner.energies, runner.judged = [energy] * (rung + 1), rung
    return runner


def behind(race: Racing, rung: int, energy: float) -> bool:
    runner = arrived(rung, energy)
    race.judge([runner])
    return runner.behind


def cooled(runner: Runner | None, end: float = 0.5) -> tuple[Chain, int]:
    """A chain after a cooling from hot, and the rounds that it was given."""
    problem = FAMILIES["challenge"].generate(np.random.default_rng(3), processes=150, machines=12, resources=4)
    begin = initial_assignment(problem, problem.processes.initial)
    chain = chain_at(problem, begin)
    chain.heat(SHARES, 0.0, end, runner)
    for at in range(ROUNDS):
        if chain.over(end * at / ROUNDS):
            return chain, at
        chain.round(end * at / ROUNDS)
    return chain, ROUNDS


def test_the_first_goes_on_and_the_worse_half_does_not() -> None:
    race = Racing(RACE)
    assert [behind(race, 0, energy) for energy in (10.0, 11.0, 10.5, 9.0, 10.7)] == [False, True, False, False, True]


def test_only_the_best_passes_the_last_rung() -> None:
    race = Racing(RACE)
    assert [behind(race, LAST, energy) for energy in (5.0, 6.0, 4.0, 4.5, 3.0)] == [False, True, False, True, False]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_those_that_arrive_together_are_compared_together(order: tuple[int, ...]) -> None:
    race, runners = Racing(RACE), [arrived(LAST, energy) for energy in (5.0, 4.0, 6.0)]
    race.judge([runners[at] for at in order])
    assert [runner.behind for runner in runners] == [True, False, True]


def test_nobody_is_judged_twice() -> None:
    race, runner = Racing(RACE), arrived(0, 5.0)
    race.judge([runner])
    for energy in (1.0, 2.0, 3.0):
        behind(race, 0, energy)
    race.judge([runner])
    assert not runner.behind


def test_a_struck_cooling_is_no_measure_for_others() -> None:
    race, runner = Racing(RACE), arrived(0, 1.0)
    race.judge([runner])
    for _ in range(LAST):
        runner.energies.append(1.0)
        race.judge([runner])
    assert behind(race, LAST, 2.0)
    race.remove(runner)
    assert not behind(race, LAST, 1.5)


@pytest.mark.parametrize("rung", range(len(RACE.rungs)))
def test_a_runner_averages_what_it_had_before_a_rung(rung: int) -> None:
    runner, at = Runner(RACE), RACE.rungs[rung]
    runner.energies = [0.0] * rung
    for part, energy in ((at - 0.05, 100.0), (at - 0.02, 4.0), (at - 0.01, 5.0), (at + 0.001, 6.0)):
        runner.observe(part, energy)
    assert runner.energies[rung:] == [5.0]


def test_a_cooling_that_falls_behind_is_over() -> None:
    runner = Runner(RACE)
    runner.behind = True
    _, rounds = cooled(runner)
    assert rounds == 0


def test_the_last_cooling_of_a_search_is_not_given_up() -> None:
    runner = Runner(RACE)
    runner.behind = True
    _, rounds = cooled(runner, end=1.0)
    assert rounds == ROUNDS


def test_a_cooling_that_leads_passes_every_rung() -> None:
    runner = Runner(RACE)
    chain, _ = cooled(runner)
    problem = chain._problem
    assert len(runner.energies) == len(RACE.rungs)
    assert chain.cost < verify(problem, Plan(problem.processes.initial)).objective


def test_the_pace_only_falls_and_ends_cold() -> None:
    parts, reached = RACE.pace_parts, RACE.pace_at
    assert list(parts) == sorted(parts)
    assert list(reached) == sorted(reached)
    assert (parts[0], parts[-1], reached[-1]) == (0.0, 1.0, 1.0)


def searched(rounds: int, threads: int) -> tuple[SearchResult[Plan], int]:
    """What a search finds, and its coolings from hot."""
    problem = FAMILIES["challenge"].generate(np.random.default_rng(3), processes=20, machines=6, resources=3)
    watch = SearchMonitor(StoppingCriteria(None, 0.0, rounds))
    found = twine(problem, SearchContext(np.random.default_rng(0), watch, threads, lambda name: no_solver), None, SHORT)
    assert found.plan is not None
    assert verify(problem, found.plan).ok
    return found, int(found.message.split(", ")[2].split()[0])


@pytest.mark.parametrize("threads", [1, 2])
def test_every_chain_cools_from_hot_once_in_a_short_search_and_again_in_a_long_one(threads: int) -> None:
    assert searched(3, threads)[1] == threads
    assert searched(90, threads)[1] > 2 * threads


def test_a_race_of_two_threads_has_the_same_outcome_again() -> None:
    one, other = searched(30, 2)[0], searched(30, 2)[0]
    assert one.message == other.message
    assert one.plan is not None
    assert other.plan is not None
    assert (one.plan.machine == other.plan.machine).all()
