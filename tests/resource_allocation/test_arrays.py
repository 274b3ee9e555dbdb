"""Problems from arrays: the same as from tables under every policy, and faults that name what is wrong."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.live.policies import gavel
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.policies import POLICIES
from tests.narrowing import some
from tests.resource_allocation.support import COST, RATES

RATE = np.array(RATES)
JOB, TYPE = (axis.ravel() for axis in np.indices(RATE.shape))
EVERY = np.arange(len(JOB))
FAIR, STEPS = RATE.mean(axis=1), np.array([300.0, 500.0])


def arrays(policy: str = "max-min", **changes: Any) -> ResourceAllocation:
    """Gavel's two jobs, one at a time on each of three types; ``changes``: group__column → array."""
    given: dict[str, Any] = {
        "resources": {"amount": [1, 1, 1]},
        "jobs": {"fair_rate": FAIR, "steps": STEPS},
        "configurations": {"cost": np.array(COST)[TYPE]},
        "members": {"configuration": EVERY, "job": JOB, "rate": RATE.ravel()},
        "uses": {"configuration": EVERY, "resource": TYPE, "amount": np.ones(len(JOB))},
    }
    for name, value in changes.items():
        group, column = name.split("__")
        given[group] = {**given[group], column: value}
    if policy == "hierarchical":
        given["jobs"]["group"], given["groups"] = [1, 0], {"weight": [1.0, 2.0]}
    return ResourceAllocation.from_arrays(policy, **given)


def tables(policy: str) -> ResourceAllocation:
    """The same by labels."""
    names = [f"c{c}" for c in EVERY]
    cells: dict[str, Any] = {
        "resources": {"resource": ["k0", "k1", "k2"], "amount": [1, 1, 1]},
        "jobs": {"job": ["j0", "j1"], "fair_rate": FAIR, "steps": STEPS},
        "configurations": {"configuration": names, "cost": [COST[k] for k in TYPE]},
        "members": {"configuration": names, "job": [f"j{j}" for j in JOB], "rate": RATE.ravel()},
        "uses": {"configuration": names, "resource": [f"k{k}" for k in TYPE], "amount": np.ones(len(JOB))},
    }
    if policy == "hierarchical":
        cells["jobs"]["group"] = ["g1", "g0"]
        cells["groups"] = {"group": ["g0", "g1"], "weight": [1.0, 2.0]}
    return mast_opt.from_tables("resource-allocation", cells, objective={"policy": policy})


@pytest.mark.parametrize("policy", POLICIES)
def test_arrays_and_tables_are_one_problem_with_one_answer(policy: str) -> None:
    made, read = arrays(policy), tables(policy)
    assert made == read
    ours, theirs = (mast_opt.solve(problem, "highs", gap=1e-6) for problem in (made, read))
    assert ours.status is mast_opt.Status.OPTIMAL
    assert ours.objective == theirs.objective
    assert some(ours.plan).rate.tolist() == some(theirs.plan).rate.tolist()


@pytest.mark.parametrize("policy", gavel.POLICIES)
def test_programs_of_schedulers_are_the_same_from_their_tables(policy: str) -> None:
    jobs = gavel.Jobs(RATE, steps=STEPS, entity=np.array([0, 1]), entity_weight=np.ones(2))
    problem = gavel.tables(jobs, [1, 1, 1], policy, price=COST if policy == "cost" else None).problem()
    header = {name: getattr(problem.objective, name) for name in ("policy", "inside", "mechanism")}
    read = mast_opt.from_tables(
        "resource-allocation",
        mast_opt.to_tables(problem),
        objective={name: value for name, value in header.items() if value},
    )
    assert read == problem


def test_numbers_alone_and_whole_shares() -> None:
    problem = ResourceAllocation.from_arrays(
        "total-rate",
        resources={"labels": ("gpu",), "amount": 2},
        jobs=2,
        configurations=3,
        members={"configuration": [0, 1, 2], "job": [0, 0, 1], "rate": [1.0, 3.0, 2.0]},
        uses={"configuration": [0, 1, 2], "resource": [0, 0, 0], "amount": [1, 2, 1]},
        whole=True,
    )
    assert problem.jobs.labels == ("j0", "j1")
    solution = mast_opt.solve(problem, "highs")
    assert (solution.objective, some(solution.plan).share.tolist()) == (3.0, [1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"members__rate": np.where(EVERY == 4, np.nan, 1.0)}, r"members\.rate\[4\]: found 'nan'; expected a finite"),
        (
            {"members__job": np.zeros(6, np.int64)},
            r"jobs\[j1\]: found '1 without'; expected a configuration in members",
        ),
        ({"members__configuration": [0, 1, 2, 3, 4, 0]}, r"configurations\[c5\].*a job in members"),
        (
            {"members__configuration": [0, 0, 2, 3, 4, 5]},
            r"members\.configuration\[1\].*configuration, job that differ from those at position 0",
        ),
        ({"jobs__fair_rate": [1.0, 0.0]}, r"jobs\.fair_rate\[j1\]: found '0\.0'; expected a number above 0"),
        ({"jobs__weight": [-1.0, 1.0]}, r"jobs\.weight\[j0\]"),
        ({"uses__resource": [0, 1, 2, 0, 1, 3]}, r"uses\.resource\[5\].*position on resources, from 0 to 2"),
        ({"members__rate": [1.0, 2.0]}, r"members\.rate.*shape \(6,\)"),
        ({"members__job": JOB * 1.0}, r"members\.job.*an array of integers"),
        ({"jobs__steps": [[1.0], [2.0]]}, r"jobs\.steps.*1 dimension"),
        ({"resources__amount": ["much", "more", "most"]}, r"resources\.amount.*an array of numbers"),
        ({"jobs__labels": ("one", "one")}, r"jobs\.labels\[1\]"),
    ],
)
def test_faults_of_arrays_name_group_column_and_entry(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        arrays(**changes)


def test_faults_of_several_groups_are_listed_together() -> None:
    with pytest.raises(InstanceError) as error:
        arrays(jobs__fair_rate=[0.0, 1.0], members__rate=np.full(6, np.inf), resources__amount=[1, -1, 1])
    assert {fault.file.split("[")[0] for fault in error.value.faults} == {
        "jobs.fair_rate",
        "members.rate",
        "resources.amount",
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"jobs__fairrate": FAIR}, "jobs has no column 'fairrate'; did you mean 'fair_rate'"),
        ({"members__labels": ("a",)}, "members has no column 'labels'"),
        ({"jobs__steps": [[1.0], [1.0, 2.0]]}, "jobs.steps is a list"),
    ],
)
def test_columns_that_there_are_not(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        arrays(**changes)


def test_what_has_no_default_has_to_be_given() -> None:
    rest: dict[str, Any] = {"resources": {"amount": [1.0]}, "configurations": 1, "uses": {}}
    with pytest.raises(UsageError, match=r"members\.rate is not given"):
        ResourceAllocation.from_arrays("max-min", jobs=1, members={"configuration": [0], "job": [0]}, **rest)
    with pytest.raises(UsageError, match="the number of jobs is not known"):
        ResourceAllocation.from_arrays("max-min", jobs={"weight": 1.0}, members={}, **rest)


@pytest.mark.second_tier
def test_the_way_from_arrays_to_arrays_loads_no_tables() -> None:
    code = (
        "import sys; from mast_opt.live.policies import gavel\n"
        "rate = gavel.solve(gavel.Jobs([[2, 1], [3, 2]]), [1, 1]).rate\n"
        "print(rate.tolist(), 'polars' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["[1.5,", "2.5]", "False"]
