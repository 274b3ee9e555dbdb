"""Solves of an analysis: the same answer, one or several at a time."""

from __future__ import annotations

import threading
from typing import Any

import mast_opt
from mast_opt import Scenario
from mast_opt.core.solve_result import Limit
from mast_opt.planner.analysis.solves import solving
from tests.narrowing import some

PROBLEM = mast_opt.generate("data-placement", "standard", seed=1, datasets=6, workloads=9, regions=3)
SCENARIOS = [Scenario("more", {"grow_demand": 1.1}), Scenario("much more", {"grow_demand": 1.3})]


def answers(**where: Any) -> list[float]:
    """What scenarios, a robust plan and a frontier come to, rounded."""
    answer = mast_opt.whatif(PROBLEM, SCENARIOS, robust="worst", **where)
    outcomes = [some(outcome.solution.objective) for outcome in (answer.base, *answer.outcomes)]
    frontier = mast_opt.pareto(PROBLEM, ("storage", "remote"), points=4, **where)
    points = [value for point in frontier.points for value in (point.terms["storage"], point.terms["remote"])]
    robust = some(answer.robust)
    return [round(value, 3) for value in (*outcomes, some(robust.objective), some(robust.base_objective), *points)]


def test_several_at_a_time_give_the_same_answers() -> None:
    assert answers(jobs=2) == answers()


def test_an_interrupted_solve_keeps_its_start() -> None:
    start = mast_opt.solve(PROBLEM, "tetris", iterations=1).plan
    cancel = threading.Event()
    cancel.set()
    with solving(1, cancel) as workers:
        kept = workers.solve("tetris", PROBLEM, start, {"seed": 1})
    assert kept.limit is Limit.INTERRUPT
    assert some(kept.objective) <= mast_opt.verify(PROBLEM, some(start)).objective + 1e-9
