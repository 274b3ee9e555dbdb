"""Coolings that race: which go on, and what becomes of one that falls behind."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.search import Stop, Tools, Watch
from mast_opt.task_reassignment.generate import FAMILIES
from mast_opt.task_reassignment.heuristics.chain import MIX, PACE, Chain
from mast_opt.task_reassignment.heuristics.fleet import fleet_of
from mast_opt.task_reassignment.heuristics.opening import opening
from mast_opt.task_reassignment.heuristics.race import RUNGS, Race
from mast_opt.task_reassignment.heuristics.twine import twine
from mast_opt.task_reassignment.verify import verify
from tests.task_reassignment.test_twine import no_solver

ROUNDS = 60


def chain(seed: int = 0) -> Chain:
    problem = FAMILIES["challenge"].generate(np.random.default_rng(3), processes=150, machines=12, resources=4)
    begin = opening(problem, problem.initial)
    return Chain(problem, fleet_of(problem), begin, np.random.default_rng(seed))


def raced(race: Race | None, end: float = 0.5) -> tuple[Chain, int]:
    """A chain after a cooling from hot, and the rounds that it was given."""
    cooling = chain()
    cooling.heat(MIX, 0.0, end, race)
    for at in range(ROUNDS):
        if cooling.over(end * at / ROUNDS):
            return cooling, at
        cooling.round(end * at / ROUNDS)
    return cooling, ROUNDS


def test_the_first_goes_on_and_the_worse_half_does_not() -> None:
    race = Race()
    assert race.goes_on(0, 10.0)
    assert not race.goes_on(0, 11.0)
    assert race.goes_on(0, 10.5)  # the second of three
    assert race.goes_on(0, 9.0)
    assert not race.goes_on(0, 10.7)


def test_only_the_best_passes_the_last_rung() -> None:
    race, last = Race(), len(RUNGS) - 1
    assert [race.goes_on(last, energy) for energy in (5.0, 6.0, 4.0, 4.5, 3.0)] == [True, False, True, False, True]


def test_a_struck_cooling_is_no_measure_for_others() -> None:
    race, last = Race(), len(RUNGS) - 1
    for rung in range(len(RUNGS)):
        race.goes_on(rung, 1.0)
    assert not race.goes_on(last, 2.0)
    race.strike([1.0, 1.0, 1.0])
    assert race.goes_on(last, 1.5)


@pytest.mark.parametrize("rung", range(len(RUNGS)))
def test_a_cooling_that_falls_behind_ends_at_the_rung(rung: int) -> None:
    race = Race()
    for _ in range(9):
        race.goes_on(rung, -1.0)
    _, rounds = raced(race)
    assert rounds == pytest.approx(RUNGS[rung][0] * ROUNDS, abs=2)


def test_one_that_leads_cools_to_its_end() -> None:
    race = Race()
    for rung in range(len(RUNGS)):
        race.goes_on(rung, 1e300)
    cooling, rounds = raced(race)
    assert rounds >= RUNGS[-1][0] * ROUNDS  # it may freeze after that
    assert np.isfinite(cooling.cost)


def test_the_last_cooling_of_a_search_is_not_given_up() -> None:
    race = Race()
    for _ in range(9):
        race.goes_on(0, -1.0)
    _, rounds = raced(race, end=1.0)
    assert rounds == ROUNDS


def test_the_pace_only_falls_and_ends_cold() -> None:
    parts, reached = PACE
    assert list(parts) == sorted(parts)
    assert list(reached) == sorted(reached)
    assert (parts[0], parts[-1], reached[-1]) == (0.0, 1.0, 1.0)


def test_several_coolings_where_there_is_time_for_them() -> None:
    problem = FAMILIES["challenge"].generate(np.random.default_rng(3), processes=20, machines=6, resources=3)
    counts = []
    for rounds in (20, 800):
        found = twine(problem, Tools(np.random.default_rng(0), Watch(Stop(None, 0.0, rounds)), 1, no_solver), None)
        assert found.plan is not None
        assert verify(problem, found.plan).ok
        counts.append(int(found.message.split(", ")[2].split()[0]))
    assert counts[0] < counts[1]
