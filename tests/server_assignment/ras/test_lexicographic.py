"""ras term by term: what it says of each while it searches, and in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.planner.solving import Solution
from mast_opt.problems.server_assignment import ServerAssignment


def staged(family: str, servers: int, reservations: int, *order: str) -> ServerAssignment:
    problem: ServerAssignment = mast_opt.generate(
        "server-assignment", family, servers=servers, reservations=reservations, datacenters=2, seed=1
    )
    return replace(problem, objective=replace(problem.objective, order=order))


def run(problem: ServerAssignment, **given: Any) -> Solution[Any]:
    return mast_opt.solve(problem, "ras", **({"iterations": 3, "threads": 1, "gap": 0.0} | given))


def test_one_term_after_another() -> None:
    problem = staged("features", 20, 4, "shortfall", "moves_in_use", "use")
    solution = run(problem)
    assert [stage.term for stage in solution.stages] == ["shortfall", "moves_in_use", "use"]
    exact = mast_opt.solve(problem, "highs", time_limit_s=5, threads=1)
    first, proof = solution.stages[0], exact.stages[0]
    assert first.bound is not None
    assert proof.objective is not None
    assert first.bound <= proof.objective + 1e-9
    assert first.objective is not None
    assert first.objective >= proof.objective - 1e-9


@pytest.mark.parametrize("family", ["standard", "features", "scarce"])
def test_what_is_said_of_a_term_leaves_those_before_out(family: str) -> None:
    solution = run(staged(family, 60, 6, "shortfall", "moves_in_use", "buffer"))
    last = {event.stage: event for event in solution.events}
    for stage in solution.stages:
        said = last[stage.term]
        assert stage.objective is not None
        assert said.incumbent is not None
        assert stage.objective - 1e-12 <= said.incumbent < 1  # a later search may lower an earlier term
        assert said.bound is not None
        assert said.bound >= 0
        assert stage.bound == min(said.bound, stage.objective)
    final = solution.stages[-1]
    assert last[final.term].incumbent == pytest.approx(final.objective, abs=1e-12)


def test_a_gap_of_a_later_term_is_proven() -> None:
    problem = staged("standard", 60, 6, "shortfall", "moves_in_use", "buffer")
    assert run(problem, iterations=6, gap=2e-5).status is Status.OPTIMAL
