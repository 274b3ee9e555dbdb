"""Problems and plans survive the way into tables and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.presentation.charts import charts
from mast_opt.problems.data_placement.presentation.sections import sections
from mast_opt.problems.data_placement.tables.problem_tables import (
    plan_from_tables,
    plan_to_tables,
    problem_from_tables,
    problem_to_tables,
)
from tests.data_placement.strategies import plans, problems
from tests.data_placement.support import same_plan
from tests.data_placement.workshop import PLAN, PROBLEM
from tests.examples import examples


def applications(problem: DataPlacement) -> list[list[str]]:
    """The application of each workload and of each quota."""
    return [[problem.apps[a] for a in of.tolist()] for of in (problem.workloads.app, problem.cpu_quotas.app)]


@examples(100)
@given(problem=problems())
def test_a_problem_is_what_its_tables_say(problem: DataPlacement) -> None:
    again = problem_from_tables(*problem_to_tables(problem))
    assert applications(again) == applications(problem)
    same = {
        "datasets.copies_max": np.minimum(problem.datasets.copies_max, len(problem.regions)),  # more mean no limit
        "apps": again.apps,  # an application that nothing mentions is in no table
        "workloads.app": again.workloads.app,
        "cpu_quotas.app": again.cpu_quotas.app,
    }
    assert again == problem.with_columns(same)


@examples(60)
@given(data=st.data(), problem=problems())
def test_a_plan_is_what_its_tables_say(data: st.DataObject, problem: DataPlacement) -> None:
    plan: Plan = data.draw(plans(problem))
    assert same_plan(plan_from_tables(problem, plan_to_tables(problem, plan)), plan)


def test_what_a_plan_leaves_out_is_shown_all_the_same() -> None:
    """Without links a plan need not say where copies and remote reads come from."""
    none = np.zeros(0, np.int64)
    free = replace(PROBLEM, links=None)
    left_out = [item.name for item in fields(Plan) if item.name.startswith(("copy_", "remote_"))]
    nothing: dict[str, Any] = {name: none.copy() for name in left_out}
    short = replace(PLAN, **nothing)
    assert sections(free, short) == sections(free, PLAN)
    assert charts(free, short) == charts(free, PLAN)
    [remote] = [section for section in sections(free, short) if section.title == "Reads that stay remote"]
    assert remote.rows == (("a", "c", 0.4, 1),)
