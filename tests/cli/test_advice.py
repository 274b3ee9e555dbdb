"""What ``solve`` says to do next."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.cli.advice import next_step
from mast_opt.core.solve_result import Status
from mast_opt.planner.solving import Solution
from mast_opt.problems.kind.overrides import Overrides

INSTANCE, OUT = Path("my instance"), Path("plan")


@pytest.fixture(scope="module")
def proven() -> Solution[Any]:
    problem = mast_opt.generate("data-placement", seed=1, datasets=4, workloads=4, regions=2)
    return mast_opt.solve(problem, "highs")


def without_plan(solution: Solution[Any], status: Status) -> Solution[Any]:
    return replace(solution, status=status, plan=None, verdict=None, objective=None)


def loose(solution: Solution[Any], share: float) -> Solution[Any]:
    """The same with a bound so far below."""
    assert solution.objective is not None
    return replace(solution, status=Status.FEASIBLE, bound=solution.objective * (1 - share))


def test_a_proven_plan_only_needs_a_check(proven: Solution[Any]) -> None:
    words = next_step(INSTANCE, proven, OUT, interrupted=False)
    assert "mast-opt verify 'my instance' plan" in words
    assert "--solver" not in words


def test_a_plan_that_was_not_kept(proven: Solution[Any]) -> None:
    assert "--out DIR" in next_step(INSTANCE, proven, None, interrupted=False)


@pytest.mark.parametrize("out", [OUT, None])
@pytest.mark.parametrize(("share", "advised"), [(0.04, False), (0.06, True)])
def test_a_wide_gap_of_an_exact_solver_calls_for_a_heuristic(
    proven: Solution[Any], out: Path | None, share: float, advised: bool
) -> None:
    assert ("try --solver tetris" in next_step(INSTANCE, loose(proven, share), out, interrupted=False)) is advised


def test_a_heuristic_is_not_sent_to_itself(proven: Solution[Any]) -> None:
    own = replace(loose(proven, 0.5), solver="tetris")
    assert "--solver" not in next_step(INSTANCE, own, OUT, interrupted=False)
    nothing = replace(without_plan(proven, Status.NO_SOLUTION), solver="tetris")
    assert "mast-opt backends" in next_step(INSTANCE, nothing, OUT, interrupted=False)


def test_without_a_plan_a_heuristic_or_more_time(proven: Solution[Any]) -> None:
    words = next_step(INSTANCE, without_plan(proven, Status.NO_SOLUTION), OUT, interrupted=False)
    assert words == "No plan was found; raise --time-limit or try --solver tetris."
    assert "--time-limit" not in next_step(INSTANCE, without_plan(proven, Status.NO_SOLUTION), OUT, interrupted=True)


def test_heuristics_that_improve_a_plan_are_named_and_baselines_are_not(proven: Solution[Any]) -> None:
    jobs = replace(without_plan(proven, Status.NO_SOLUTION), kind="job-placement")
    assert "try --solver exhaustive+repair." in next_step(INSTANCE, jobs, OUT, interrupted=False)


def test_what_is_kept_is_not_promised_by_every_heuristic(proven: Solution[Any]) -> None:
    kept = {"region": ("r0",)}
    assert "--solver" not in next_step(INSTANCE, replace(loose(proven, 0.5), frozen=kept), OUT, interrupted=False)
    infeasible = replace(without_plan(proven, Status.INFEASIBLE), frozen=kept)
    assert "keep less of it" in next_step(INSTANCE, infeasible, OUT, interrupted=False)


@pytest.mark.parametrize(
    ("status", "words"), [(Status.INFEASIBLE, "mast-opt explain"), (Status.UNBOUNDED, "please report it")]
)
def test_other_endings(proven: Solution[Any], status: Status, words: str) -> None:
    assert words in next_step(INSTANCE, without_plan(proven, status), OUT, interrupted=False)


def test_limits_of_the_solve_are_asked_about_again(proven: Solution[Any]) -> None:
    limited = replace(without_plan(proven, Status.INFEASIBLE), overrides=Overrides(limits={"storage": Fraction(3, 2)}))
    assert "--limit storage=1.5" in next_step(INSTANCE, limited, OUT, interrupted=False)
