"""Heuristics that know weights only, on lexicographic objectives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import mast_opt
from mast_opt.core.solve_result import Status

JOBS = mast_opt.generate("job-placement", "lexicographic", regions=2, clusters=1, servers=3, fill_percent=95)
TASKS = mast_opt.generate("task-reassignment", machines=4, processes=6)
STAGED = replace(TASKS, objective=replace(TASKS.objective, order=("balance", "load")))
TERMS = replace(TASKS, objective=replace(TASKS.objective, order=("machine_move", "process_move")))


@pytest.mark.parametrize(
    ("problem", "solver"), [(JOBS, "exhaustive"), (JOBS, "exhaustive+repair"), (STAGED, "twine"), (TERMS, "twine")]
)
def test_figures_are_those_of_the_first_term_that_is_not_proven(problem: Any, solver: str) -> None:
    iterations = None if solver == "exhaustive" else 2
    solution = mast_opt.solve(problem, solver, iterations=iterations, time_limit_s=20)
    assert solution.verdict is not None
    order = problem.objective.order
    assert [stage.term for stage in solution.stages] == list(order)
    for stage in solution.stages:
        assert (stage.objective, stage.bound) == (solution.verdict.terms[stage.term], 0.0)
    above = [term for term in order if solution.verdict.terms[term] > 0]
    assert solution.objective == solution.verdict.terms[above[0] if above else order[-1]]
    assert solution.status is (Status.FEASIBLE if above else Status.OPTIMAL)
    assert "searched by weights, not in the order" in solution.message
