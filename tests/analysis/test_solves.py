"""Where the solves of an analysis are made: the same answer everywhere, also when a worker is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mast_opt
from mast_opt import Scenario
from mast_opt.core.errors import UsageError
from mast_opt.core.executor import Call, Executor, FoundT, GivenT, WorkerLost
from mast_opt.core.solve_result import Limit
from mast_opt.planner.analysis.solves import solving
from tests.narrowing import some
from tests.platforms import needs

PROBLEM = mast_opt.generate("data-placement", "standard", seed=1, datasets=6, workloads=9, regions=3)
SCENARIOS = [Scenario("more", {"grow_demand": 1.1}), Scenario("much more", {"grow_demand": 1.3})]
ON_RAY = """
import ray
import mast_opt
from tests.analysis.test_solves import PROBLEM, answers
ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
there = answers(ray="auto")
ray.shutdown()
assert there == answers(), there
"""


def answers(**where: Any) -> list[float]:
    """What scenarios, a robust plan and a frontier come to, rounded."""
    answer = mast_opt.whatif(PROBLEM, SCENARIOS, robust="worst", **where)
    outcomes = [some(outcome.solution.objective) for outcome in (answer.base, *answer.outcomes)]
    frontier = mast_opt.pareto(PROBLEM, ("storage", "remote"), points=4, **where)
    points = [value for point in frontier.points for value in (point.terms["storage"], point.terms["remote"])]
    robust = some(answer.robust)
    return [round(value, 3) for value in (*outcomes, some(robust.objective), some(robust.base_objective), *points)]


@pytest.mark.second_tier
def test_processes_give_the_answers_of_threads() -> None:
    assert answers(jobs=2, workers="processes") == answers()


@needs("ray")
def test_a_ray_cluster_gives_the_answers_of_threads() -> None:
    ended = subprocess.run([sys.executable, "-c", ON_RAY], capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]


class Losing:
    """An executor that loses every second call."""

    size = 2

    def __init__(self) -> None:
        self.made = 0

    def run(self, call: Call[GivenT, FoundT], given: GivenT, stopped: Callable[[], bool]) -> FoundT:
        self.made += 1
        if self.made % 2:
            raise WorkerLost
        return call(given, threading.Event())


def test_what_a_lost_worker_had_is_solved_here(monkeypatch: pytest.MonkeyPatch) -> None:
    losing = Losing()

    @contextmanager
    def executor(name: str, size: int, cancel: threading.Event, address: str) -> Iterator[Executor]:
        assert (name, address) == ("ray", "head:6379")
        yield losing

    monkeypatch.setattr("mast_opt.planner.analysis.solves.executor", executor)
    there = answers(ray="head:6379")
    monkeypatch.undo()
    assert there == answers()
    assert losing.made == 3 + 6 + 2  # base and scenarios, the rest twice in each, points between the ends


def test_an_interrupted_solve_keeps_its_start() -> None:
    start = mast_opt.solve(PROBLEM, "tetris", iterations=1).plan
    cancel = threading.Event()
    cancel.set()
    with solving(1, "processes", None, cancel) as workers:
        kept = workers.solve("tetris", PROBLEM, start, {"seed": 1})
    assert kept.limit is Limit.INTERRUPT
    assert some(kept.objective) <= mast_opt.verify(PROBLEM, some(start)).objective + 1e-9


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"workers": "fork"}, "one of: threads, processes, ray"),
        ({"workers": "processes", "ray": "auto"}, "leave one of them out"),
        ({"ray": "x"}, "HOST:PORT"),
    ],
)
def test_wrong_workers(where: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mast_opt.whatif(PROBLEM, SCENARIOS, **where)
    with pytest.raises(UsageError, match=words):
        mast_opt.pareto(PROBLEM, ("storage", "remote"), **where)
