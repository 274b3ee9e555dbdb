"""Every backend × every policy × fractional and whole shares: the right answer, or an error that says why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.cli import main
from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.solve_result import Status
from mast_opt.problems import backends
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.policies import POLICIES
from tests.resource_allocation.support import small
from tests.solvers import HERE

ON_A_GRID = frozenset({"total-rate", "rate-per-cost", "cost", "nash", "harmonic"})
"""Policies whose programs have no fractions where shares are whole."""
CASES = [(policy, whole) for policy in POLICIES for whole in (False, True) if (policy, whole) != ("hierarchical", True)]


def instance(policy: str, whole: bool) -> ResourceAllocation:
    """Four jobs and their pairs on two GPUs of each of two types: all can run, and not all on the faster type."""
    problem = small(2, policy, whole=whole)
    free = replace(problem.jobs, min_rate=np.where(np.arange(4) == 1, problem.jobs.min_rate, 0.0))
    return replace(problem, jobs=free, resources=replace(problem.resources, amount=np.array([2.0, 2.0])))


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize(("policy", "whole"), CASES)
def test_the_answer_is_right_or_refused(policy: str, whole: bool, name: str) -> None:
    problem = instance(policy, whole)
    expected = mast_opt.solve(problem, "highs", gap=1e-6)
    assert expected.status is Status.OPTIMAL
    if getattr(backends.get(name), "grid", False) and not (whole and policy in ON_A_GRID):
        with pytest.raises(UnsupportedOption, match=f"{name} places fractions .* {name} solves whole shares under"):
            mast_opt.solve(problem, name)
        return
    found = mast_opt.solve(problem, name, gap=1e-6)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(expected.objective, rel=3e-6, abs=1e-9)
    assert found.bound == pytest.approx(expected.objective, rel=3e-6, abs=1e-9)


def test_what_cpsat_solves_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends", "resource-allocation"]) == 0
    assert "cpsat solves whole shares under total-rate" in capsys.readouterr().out
