"""What solve refuses, for MIP backends and heuristics alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import UsageError

PROBLEM = mast_opt.read(Path(__file__).parents[2] / "instances" / "job_placement" / "tiny-victims.json")
OTHER = mast_opt.generate("data-placement", datasets=3, workloads=3, regions=2)


@pytest.mark.parametrize("solver", ["highs", "exhaustive", "exhaustive+repair"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gap": -1.0}, "gap is -1.0; expected"),
        ({"gap": float("nan")}, "gap is nan; expected"),
        ({"threads": 0}, "threads is 0; expected at least 1"),
        ({"seed": -1}, "seed is -1; expected a whole number"),
        ({"time_limit_s": 0.0}, "time_limit_s is 0.0; expected"),
        ({"time_limit_s": float("nan")}, "time_limit_s is nan; expected"),
        (
            {"start": 3},
            "a plan for job-placement is a mast_opt.problems.job_placement.plan.Plan; this is",
        ),
    ],
)
def test_numbers_that_make_no_sense(solver: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mast_opt.solve(PROBLEM, solver, **given)


def test_a_plan_of_another_kind_is_no_start() -> None:
    plan = mast_opt.solve(OTHER).plan
    with pytest.raises(UsageError, match=r"this is a mast_opt\.problems\.data_placement\.plan\.Plan"):
        mast_opt.solve(PROBLEM, start=plan)


def test_a_solution_in_the_place_of_a_plan_is_refused_with_what_to_pass() -> None:
    solution = mast_opt.solve(PROBLEM, "exhaustive")
    with pytest.raises(UsageError, match="Solution; pass its plan"):
        mast_opt.solve(PROBLEM, start=solution)


def test_iterations_are_at_least_one() -> None:
    with pytest.raises(UsageError, match="iterations is 0; expected at least 1"):
        mast_opt.solve(PROBLEM, "exhaustive+repair", iterations=0)


def test_options_are_a_mapping_or_pairs() -> None:
    for options in ({"presolve": "off"}, (("presolve", "off"),)):
        assert mast_opt.solve(PROBLEM, "highs", options=options).objective == mast_opt.solve(PROBLEM, "highs").objective
    for refused in ({"presolv": "off"}, (("presolv", "off"),)):
        with pytest.raises(UsageError, match="presolv"):
            mast_opt.solve(PROBLEM, "highs", options=refused)
    with pytest.raises(UsageError, match="exhaustive takes no options of its own; presolve is"):
        mast_opt.solve(PROBLEM, "exhaustive", options={"presolve": "off"})
