"""Resource-allocation problems and plans survive the way into tables and back, and what is wrong is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, PlanError
from mast_opt.planner.io import FORMATS
from mast_opt.problems.resource_allocation import Plan, ResourceAllocation
from mast_opt.problems.resource_allocation.policies import POLICIES
from tests.resource_allocation.support import gavel, small


def tables_of(problem: ResourceAllocation) -> dict[str, Any]:
    return {name: frame.to_dict(as_series=False) for name, frame in mast_opt.to_tables(problem).items()}


def header_of(problem: ResourceAllocation) -> dict[str, Any]:
    given = {name: getattr(problem.objective, name) for name in ("policy", "inside")}
    return {"objective": {name: value for name, value in given.items() if value}}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("format", FORMATS)
def test_a_problem_survives_every_format(policy: str, format: str, tmp_path: Path) -> None:
    problem = small(7, policy)
    path = tmp_path / (f"a.{format}" if format in ("xlsx", "json") else "folder")
    mast_opt.write(problem, path, format)
    again = mast_opt.read(path)
    assert again == problem
    assert mast_opt.checksum(again) == mast_opt.checksum(problem)


def test_the_checksum_is_of_policy_and_numbers() -> None:
    problem = small(7, "hierarchical")
    fifo = replace(problem, objective=replace(problem.objective, inside="fifo"))
    least = np.nextafter(problem.resources.amount, np.inf)
    finer = replace(problem, resources=replace(problem.resources, amount=least))
    assert len({mast_opt.checksum(one) for one in (problem, fifo, finer)}) == 3


def test_a_plan_survives(tmp_path: Path) -> None:
    problem = gavel("max-min")
    solution = mast_opt.solve(problem)
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    again = mast_opt.read_plan(problem, tmp_path / "plan")
    assert solution.plan is not None
    for name in ("share", "rate", "kept"):
        np.testing.assert_array_equal(getattr(again, name), getattr(solution.plan, name))
    kept = Plan(again.share, again.rate, np.array([0.5, 1.0]))
    back = mast_opt.plan_from_tables(problem, mast_opt.to_tables(problem, kept))
    assert back.kept.tolist() == [0.5, 1.0]


def test_a_plan_without_a_rate_for_each_job_is_none() -> None:
    problem = gavel("max-min")
    tables = {"shares": {"configuration": ["job-0@v100"], "share": [1.0]}, "rates": {"job": ["job-0"], "rate": [2.0]}}
    with pytest.raises(PlanError, match="a row for job job-1"):
        mast_opt.plan_from_tables(problem, tables)


def _without_members(tables: dict[str, Any]) -> None:
    tables["members"] = {name: cells[:3] for name, cells in tables["members"].items()}


def _nan_rate(tables: dict[str, Any]) -> None:
    tables["members"]["rate"][2] = float("nan")


def _repeated_member(tables: dict[str, Any]) -> None:
    for cells in tables["members"].values():
        cells.append(cells[0])


def _no_fair_rate(tables: dict[str, Any]) -> None:
    tables["jobs"]["fair_rate"][1] = 0


def _negative_amount(tables: dict[str, Any]) -> None:
    tables["uses"]["amount"][0] = -1


def _words_for_weight(tables: dict[str, Any]) -> None:
    tables["jobs"]["weight"] = ["heavy", "1"]


BAD = {
    "jobs, row 2, column job: found 'job-1'; expected a row in members: a job without one": _without_members,
    "members, row 3, column rate: found 'nan'; expected a finite number": _nan_rate,
    "members, row 7.*configuration": _repeated_member,
    "jobs, row 2, column fair_rate: found '0'; expected a number .* above 0": _no_fair_rate,
    "uses, row 1, column amount: found '-1'; expected a number .* of at least 0": _negative_amount,
    "jobs, row 1, column weight: found 'heavy'; expected a number": _words_for_weight,
}


@pytest.mark.parametrize("words", BAD)
def test_bad_tables_are_named(words: str) -> None:
    problem = gavel("max-min")
    tables = tables_of(problem)
    BAD[words](tables)
    with pytest.raises(InstanceError, match=words):
        mast_opt.from_tables("resource-allocation", tables, **header_of(problem))


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ({"policy": "max-mim"}, "did you mean 'max-min'"),
        ({}, "objective.policy"),
        ({"policy": "max-min", "weights": {"peak": 1}}, "one of the keys policy, mechanism, inside"),
        ({"policy": "max-min", "mode": "weighted"}, "one of the keys policy, mechanism, inside"),
        ({"policy": "max-min", "order": ["rate"]}, "one of the keys policy, mechanism, inside"),
        ({"policy": "max-min", "mechanism": "partial-allocation"}, "max-min has no mechanism"),
        ({"policy": "nash", "mechanism": "auction"}, "mechanism = 'partial-allocation'"),
        ({"policy": "nash", "inside": "fifo"}, "nash has no inside"),
        ({"policy": "hierarchical", "inside": "lifo"}, "inside = 'max-min' or 'fifo'"),
        ({"policy": "makespan"}, r"column steps: .*makespan needs the work that is left"),
        ({"policy": "hierarchical"}, r"column group: .*hierarchical needs one for each job"),
    ],
)
def test_bad_objectives_are_named(objective: dict[str, Any], words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        mast_opt.from_tables("resource-allocation", tables_of(gavel("max-min")), objective=objective)


def test_water_filling_needs_fractional_shares() -> None:
    problem = small(1, "hierarchical")
    with pytest.raises(InstanceError, match=r"rules.shares: found 'whole'; expected fractional"):
        mast_opt.from_tables(
            "resource-allocation", tables_of(problem), rules={"shares": "whole"}, objective={"policy": "hierarchical"}
        )
    with pytest.raises(InstanceError, match="whole: found 'True'; expected fractional shares"):
        replace(problem, whole=True)


def test_rate_per_cost_needs_costs() -> None:
    tables = tables_of(gavel("max-min"))
    del tables["configurations"]["cost"]
    with pytest.raises(InstanceError, match=r"column cost: .*rate-per-cost divides by it"):
        mast_opt.from_tables("resource-allocation", tables, objective={"policy": "rate-per-cost"})
