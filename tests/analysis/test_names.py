"""One name means one thing: what scenarios count from the base plan, and metrics, which count from today."""

from __future__ import annotations

from pathlib import Path

import pytest

import mast_opt
from mast_opt.problems.registry import kind_named, kind_names


@pytest.mark.parametrize("kind", kind_names())
def test_what_scenarios_count_from_the_base_plan_is_no_metric(kind: str, tmp_path: Path) -> None:
    mast_opt.write_template(kind, tmp_path / "example.xlsx")
    problem = mast_opt.read(tmp_path / "example.xlsx")
    solution = mast_opt.solve(problem)
    assert solution.verdict is not None
    counted = kind_named(kind).analysis.hooks().moved(problem, problem, solution.plan, solution.plan)
    assert counted
    assert not set(counted) & {*solution.verdict.metrics, *solution.verdict.terms}
