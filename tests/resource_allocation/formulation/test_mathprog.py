"""The .mod and the base formulation are the same program, entry by entry, by name, and GLPK agrees with HiGHS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.core.sense import Sense
from mast_opt.problems.kind.mathprog import with_symbols
from mast_opt.problems.resource_allocation import Plan, ResourceAllocation
from mast_opt.problems.resource_allocation.formulation.formulation import base
from mast_opt.problems.resource_allocation.tables.mathprog import AXES, STATED, write_dat
from tests.mathprog import assert_same, optimum, stated, statement
from tests.resource_allocation.support import gavel, small, with_policy

MODEL = Path(__file__).parents[3] / "models" / "resource_allocation.mod"


def same(problem: ResourceAllocation, folder: Path) -> Path:
    data = folder / "instance.dat"
    write_dat(problem, data)
    assert_same(statement(MODEL, data), stated(base(with_symbols(problem, AXES)).mip))
    return data


@pytest.mark.parametrize("policy", STATED)
@pytest.mark.parametrize("seed", range(4))
def test_generated_instances(seed: int, policy: str, tmp_path: Path) -> None:
    problem = small(seed, policy, jobs=3 + seed, types=1 + seed % 3)
    data = same(problem, tmp_path)
    total, solution = optimum(MODEL, data), mast_opt.solve(problem)
    if solution.objective is None:
        assert total is None
        return
    assert total is not None
    value = -1 / total if policy == "makespan" else -total if problem.sense is Sense.MAX else total
    assert value == pytest.approx(solution.objective, rel=1e-7)


def test_first_come_first_served_inside_of_groups(tmp_path: Path) -> None:
    problem = small(2, "hierarchical", jobs=6)
    ties = replace(problem.jobs, submitted_s=np.array([5.0, 5.0, 5.0, 2.0, 1.0, 2.0]))
    same(with_policy(replace(problem, jobs=ties), "hierarchical", "fifo"), tmp_path)


def test_labels_of_any_kind_and_jobs_in_no_group(tmp_path: Path) -> None:
    problem = small(1, "max-min", jobs=4)
    odd = replace(
        problem,
        resources=replace(problem.resources, labels=("a b", "a_b")),
        groups=replace(problem.groups, labels=("data;", "end")),
        jobs=replace(problem.jobs, labels=("'", "ä", "0", "j+1"), group=np.array([0, 2, 1, 2])),
    )
    same(odd, tmp_path)


def test_whole_shares_have_the_same_rows(tmp_path: Path) -> None:
    problem = small(3, "max-min")
    same(problem, tmp_path)
    whole, fractional = base(replace(problem, whole=True)).mip, base(problem).mip
    assert whole.integral[: len(problem.configurations)].all()
    assert not whole.integral[len(problem.configurations) :].any()
    np.testing.assert_array_equal(whole.value, fractional.value)
    with pytest.raises(UsageError, match="fractional shares"):
        write_dat(replace(problem, whole=True), tmp_path / "whole.dat")


@pytest.mark.parametrize("policy", ["nash", "harmonic", "finish-time-fairness"])
def test_what_is_no_linear_program_is_not_written_down_as_one(policy: str, tmp_path: Path) -> None:
    problem = with_policy(gavel("makespan", steps=(300, 500)), policy)
    with pytest.raises(UsageError, match=policy):
        write_dat(problem, tmp_path / "instance.dat")
    with pytest.raises(UsageError, match=f"{policy} is no linear program"):
        mast_opt.formulate(problem)


@pytest.mark.parametrize("policy", ["total-rate", "max-min", "makespan", "cost"])
def test_a_plan_survives_the_way_into_columns_and_back(policy: str) -> None:
    problem = with_policy(gavel("makespan", steps=(300, 500)), policy)
    formulation = base(problem)
    plan = Plan.of_shares(problem, np.array([9 / 19, 10 / 19, 0.0, 10 / 19, 9 / 19, 0.0]))
    x = formulation.encode(plan)
    activity = formulation.mip.activity(x)
    assert (activity <= formulation.mip.row_upper + 1e-9).all()
    assert (activity >= formulation.mip.row_lower - 1e-9).all()
    np.testing.assert_array_equal(formulation.decode(x).share, plan.share)
    value = mast_opt.verify(problem, plan).objective
    shown = 1 / value if policy == "makespan" else value
    assert abs(formulation.mip.objective(x)) == pytest.approx(shown, rel=1e-12)
