"""Tables and charts of a worked plan: the figures that a report shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.kind.presentation import Form, Scale
from mast_opt.problems.resource_allocation import Plan, ResourceAllocation
from mast_opt.problems.resource_allocation.presentation.sections import charts, sections

ROWS = (
    ("a@v100", 1 / 4, {"a": 4}, {"v100": 1}),
    ("a+b@v100", 1 / 2, {"a": 2, "b": 2}, {"v100": 1}),
    ("b@k80", 1 / 2, {"b": 1}, {"k80": 1}),
    ("c@k80", 1 / 2, {"c": 8}, {"k80": 2}),
    ("d@k80", 0, {"d": 3}, {"k80": 1}),
    ("a@k80", 1 / 8, {"a": 1}, {"k80": 1}),
    ("a@both", 1 / 16, {"a": 16}, {"v100": 1, "k80": 2}),
    ("e@k80", 1 / 2, {"e": 2}, {"k80": 1}),
)
"""(configuration, its share of the time, rate by job, use by resource)"""
PLAN_SHARES = np.array([share for _, share, _, _ in ROWS])


@pytest.fixture(name="problem")
def _problem() -> ResourceAllocation:
    """Two v100, four k80 and no tpu; a is blue, b and c are red; b does not state its steps, d does not run."""
    members = [(name, job, rate) for name, _, rates, _ in ROWS for job, rate in rates.items()]
    uses = [(name, resource, amount) for name, _, _, used in ROWS for resource, amount in used.items()]
    return mast_opt.from_tables(
        "resource-allocation",
        {
            "resources": {"resource": ["v100", "k80", "tpu"], "amount": [2, 4, 0]},
            "groups": {"group": ["blue", "red"], "weight": [2, 1], "min_rate": [0.5, 0]},
            "jobs": {
                "job": ["a", "b", "c", "d", "e"],
                "group": ["blue", "red", "red", None, None],
                "weight": [1, 2, 1, 1, 1],
                "fair_rate": [2, 1, 4, 1, 1],
                "steps": [8, None, 4, 10, 3],
                "required": [False] * 5,
            },
            "configurations": {"configuration": [name for name, *_ in ROWS]},
            "members": dict(zip(("configuration", "job", "rate"), zip(*members, strict=True), strict=True)),
            "uses": dict(zip(("configuration", "resource", "amount"), zip(*uses, strict=True), strict=True)),
        },
        objective={"policy": "max-min"},
    )


def test_sections(problem: ResourceAllocation) -> None:
    """Rates: a 1 + 1 + 1/8 + 1, b 1 + 1/2, c 4, d 0, e 1; over weight · fair rate 3.125/2, 1.5/2, 4/4, 0, 1/1."""
    jobs, groups, resources = sections(problem, Plan.of_shares(problem, PLAN_SHARES))
    assert jobs.rows == (
        ("d", 0, 0, 0, None, ""),
        ("b", 1.5, 0.75, 1, None, "a+b@v100 (50.0%), b@k80 (50.0%)"),
        ("c", 4, 1, 0.5, 1, "c@k80 (50.0%)"),
        ("e", 1, 1, 0.5, 1, "e@k80 (50.0%)"),
        ("a", 3.125, 1.5625, 0.9375, 0.64, "a+b@v100 (50.0%), a@v100 (25.0%), a@k80 (12.5%), 1 more"),
    )
    assert jobs.note == "1 of 5 jobs makes no progress."
    assert groups.rows == (("blue", 1, 2, 0.5, 3.125), ("red", 2, 1, 0, 5.5))
    assert resources.rows == (
        ("k80", 4, 2.25, 2.25 / 4),
        ("v100", 2, 0.8125, 0.8125 / 2),
        ("tpu", 0, 0, None),
    )
    assert [head.form for head in resources.heads] == [Form.TEXT, Form.AMOUNT, Form.AMOUNT, Form.FILL]


def test_notes(problem: ResourceAllocation) -> None:
    shares = PLAN_SHARES.copy()
    shares[4] = 1 / 8
    assert sections(problem, Plan.of_shares(problem, shares))[0].note == "Every job makes progress."
    assert sections(problem, Plan.of_shares(problem, 0 * shares))[0].note == "5 of 5 jobs make no progress."


def test_as_many_configurations_as_are_named(problem: ResourceAllocation) -> None:
    shares = PLAN_SHARES.copy()
    shares[6] = 0
    jobs = {row[0]: row for row in sections(problem, Plan.of_shares(problem, shares))[0].rows}
    assert jobs["a"][-1] == "a+b@v100 (50.0%), a@v100 (25.0%), a@k80 (12.5%)"


def test_charts(problem: ResourceAllocation) -> None:
    """Of a+b, a quarter of a v100 is for each; a@both counts for both types."""
    shown: Any = charts(problem, Plan.of_shares(problem, PLAN_SHARES))
    heat, rates = shown
    assert (heat.rows, heat.columns) == (("v100", "k80", "tpu"), ("blue", "red", "in no group", "together"))
    assert (heat.before, heat.scale) == (None, Scale.FILL)
    assert heat.after == (
        (0.5625 / 2, 0.25 / 2, 0, 0.8125 / 2),
        (0.25 / 4, 1.5 / 4, 0.5 / 4, 2.25 / 4),
        (None, None, None, None),
    )
    assert rates.lines == (("jobs", ((0.2, 0), (0.4, 0.75), (0.6, 1), (0.8, 1), (1, 1.5625))),)


def test_without_groups(problem: ResourceAllocation) -> None:
    jobs = replace(problem.jobs, group=np.zeros(5, np.int64))
    bare = replace(problem, groups=problem.groups.rows(np.zeros(0, np.int64)), jobs=jobs)
    plan = Plan.of_shares(bare, PLAN_SHARES)
    shown: Any = charts(bare, plan)
    assert shown[0].columns == ("all jobs",)
    assert shown[0].after == ((0.8125 / 2,), (2.25 / 4,), (None,))
    assert [section.title for section in sections(bare, plan)] == ["Jobs", "Resources"]


def test_a_single_unit_is_filled_like_any_other(problem: ResourceAllocation) -> None:
    single = problem.with_columns({"resources.amount": np.array([1.0, 4.0, 0.0])})
    rows = sections(single, Plan.of_shares(single, PLAN_SHARES))[-1].rows
    assert rows == (("v100", 1, 0.8125, 0.8125), ("k80", 4, 2.25, 2.25 / 4), ("tpu", 0, 0, None))
