"""No answer depends on the spelling of labels: everything renamed, rows in their order, and the same shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.policies import POLICIES
from tests.resource_allocation.support import odd

AXES = ("resources", "groups", "jobs", "configurations")


def renamed(problem: ResourceAllocation) -> ResourceAllocation:
    """The instance with names in the opposite alphabetical order, as files give it."""
    changed: dict[str, Any] = {}
    for axis in AXES:
        group = getattr(problem, axis)
        labels = tuple(f"{axis[0]}{len(group) - at:05}" for at in range(len(group)))
        changed[axis] = replace(group, labels=labels)
    return replace(problem, **changed)


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("policy", POLICIES)
def test_renaming_everything_changes_nothing(policy: str, solver: str) -> None:
    for whole in (False, True) if policy != "hierarchical" else (False,):
        for seed in range(3):
            problem = odd(seed, policy, whole=whole)
            one, other = (mast_opt.solve(each, solver) for each in (problem, renamed(problem)))
            assert (other.status, other.objective, other.bound) == (one.status, one.objective, one.bound), seed
            if one.plan is not None and other.plan is not None:
                np.testing.assert_array_equal(other.plan.share, one.plan.share)


@pytest.mark.parametrize("settings", [{"pop": 4}, {"direct_configurations": 0}])
@pytest.mark.parametrize("policy", ["max-min", "makespan", "finish-time-fairness", "nash"])
def test_nor_in_parts_or_with_columns_that_join(
    policy: str, settings: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AllocationParams, "joining_configurations", 1)
    problem = mast_opt.generate("resource-allocation", "packing", seed=3, jobs=16)
    problem = replace(problem, objective=replace(problem.objective, policy=policy))
    plans = [mast_opt.solve(each, "highs", params=settings).plan for each in (problem, renamed(problem))]
    assert plans[0] is not None
    assert plans[1] is not None
    np.testing.assert_array_equal(plans[1].share, plans[0].share)
