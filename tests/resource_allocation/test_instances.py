"""The committed instances: every backend finds the answers that are worked out next to them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from tests.resource_allocation.support import INSTANCES

ANSWERS: dict[str, tuple[float, tuple[float, ...]]] = {
    "max-min": (24 / 19, (28 / 19, 48 / 19)),
    "makespan": (200.0, (1.5, 2.5)),
    "finish-time-fairness": (0.402778, (1.517241, 2.482759)),
    "rate-per-cost": (2 / 3.1 + 1 / 0.8, (2.0, 1.0)),
    "nash": (2 * math.log(2), (2.0, 2.0)),
    "harmonic": ((math.sqrt(7 / 6) + math.sqrt(2)) ** 2 / 4, (1.732121, 2.267879)),
    "cost": (2.35, (1.0, 1.0)),
    "packed-pairs": (1.5, (2.0, 3.0)),
    "total-rate": (36.0, (8.0, 6.0, 0.0)),
    "hierarchical": (1 / 3, (1 / 9, 1 / 9, 1 / 9, 2 / 3)),
    "whole-shares": (1.6, (0.6, 1.0)),
}
GUARANTEES = 13.2
"""GPUs that the guarantees of ``total-rate`` need."""


def test_every_instance_has_an_answer() -> None:
    assert {path.parent.name for path in INSTANCES.glob("*/instance.toml")} == set(ANSWERS)


@pytest.mark.parametrize("solver", ["highs", "scip", "cbc"])
@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_the_one_worked_out(name: str, solver: str) -> None:
    objective, rates = ANSWERS[name]
    solution = mast_opt.solve(mast_opt.read(INSTANCES / name), solver, gap=1e-6)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(objective, rel=1e-6)
    assert solution.bound == pytest.approx(objective, rel=2e-6)
    assert solution.plan is not None
    np.testing.assert_allclose(solution.plan.rate, rates, rtol=2e-3, atol=1e-7)


def test_whole_shares_are_solved_by_cpsat_too() -> None:
    assert mast_opt.solve(mast_opt.read(INSTANCES / "whole-shares"), "cpsat").objective == pytest.approx(1.6)


def test_what_the_readmes_say_beyond_that() -> None:
    problem = mast_opt.read(INSTANCES / "total-rate")
    for amount, status in ((GUARANTEES - 0.01, Status.INFEASIBLE), (GUARANTEES + 0.01, Status.OPTIMAL)):
        few = replace(problem, resources=replace(problem.resources, amount=np.array([amount])))
        assert mast_opt.solve(few).status is status
    whole = mast_opt.read(INSTANCES / "whole-shares")
    assert mast_opt.solve(replace(whole, whole=False)).objective == pytest.approx(1.7)
