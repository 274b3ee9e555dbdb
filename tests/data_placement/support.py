"""What several tests of data placement do: solve a program to proven optimality, begin with a plan, compare plans."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import reject

from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.problem import SHARE
from mast_opt.problems.mip import Mip

RELATIVE = 2e-6
"""To which solver and verifier agree on an objective: solvers may miss rows by 1e-6, and gain about as much by it."""


def proven(mip: Mip) -> SolveResult:
    """What HiGHS proves: an optimum, or that there is none."""
    result = backends.get("highs").solve(mip, SolveParams(gap=0.0, threads=1))
    if "its proof does not count" in result.message:
        reject()  # costs too far apart for any solver's tolerances
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE), result
    return result


def broken_rows(mip: Mip, x: np.ndarray) -> set[str]:
    """Names of the rows that x breaks by more than rounding, and of the columns that leave their bounds."""
    activity = mip.activity(x)
    scale = np.maximum(np.abs(np.nan_to_num(activity)), 1.0) * 1e-9
    rows = (activity > mip.row_upper + scale) | (activity < mip.row_lower - scale)
    columns = (x > mip.col_upper + 1e-9) | (x < mip.col_lower - 1e-9)
    names = {name for name, broken in zip(mip.row_names(), rows.tolist()) if broken}
    return names | {name for name, broken in zip(mip.column_names(), columns.tolist()) if broken}


def begun_with(problem: DataPlacement, plan: Plan) -> DataPlacement:
    """The problem with a plan as its present state."""
    return problem.with_columns(
        {
            "datasets.stored": plan.place.copy(),
            "current_runs.workload": plan.run_workload.copy(),
            "current_runs.region": plan.run_region.copy(),
            "current_runs.gpu_type": plan.run_type.copy(),
            "current_runs.share": plan.run_share.copy(),
        }
    )


def same_plan(one: Plan, other: Plan) -> bool:
    return all(np.array_equal(getattr(one, item.name), getattr(other, item.name)) for item in fields(Plan))


def made(family: str, seed: int = 1, datasets: int = 10, workloads: int = 15, regions: int = 3) -> DataPlacement:
    """A small instance of a family."""
    return FAMILIES[family].generate(
        np.random.default_rng(seed), datasets=datasets, workloads=workloads, regions=regions
    )


def no_solver(mip: object, params: SolveParams) -> Any:
    """Stands for the MIP solver of a search that must not need one."""
    raise AssertionError("nothing is left open for a MIP solver in this instance")


def serves_nothing_twice(plan: Plan) -> bool:
    """Do the shares of every workload add up to 1 at most?"""
    return bool((np.bincount(plan.run_workload, plan.run_share, 1) <= SHARE).all())
