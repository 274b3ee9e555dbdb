"""Small changes to plans and instances, for tests that break one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter

import numpy as np

from mast_opt.problems.data_placement import DataPlacement, Plan
from tests.data_placement.workshop import PLAN, PROBLEM, ints

FREE = replace(PROBLEM, links=None)
"""The same without links: any region reaches any other."""
DERIVED = replace(
    PLAN,
    **{f"copy_{part}": ints() for part in ("dataset", "source", "target", "share")},
    **{f"remote_{part}": ints() for part in ("workload", "dataset", "source", "target", "share")},
)
"""The plan with placements and runs only."""

RUN = ("run_workload", "run_region", "run_type", "run_share")
COPY = ("copy_dataset", "copy_source", "copy_target", "copy_share")
REMOTE = ("remote_workload", "remote_dataset", "remote_source", "remote_target", "remote_share")


def changed(plan: Plan, name: str, row: int, value: int) -> Plan:
    values = getattr(plan, name).copy()
    values[row] = value
    return replace(plan, **{name: values})


def added(plan: Plan, relation: tuple[str, ...], *values: int) -> Plan:
    return replace(plan, **{name: np.append(getattr(plan, name), value) for name, value in zip(relation, values)})


def dropped(plan: Plan, relation: tuple[str, ...], row: int) -> Plan:
    return replace(plan, **{name: np.delete(getattr(plan, name), row) for name in relation})


def placed(plan: Plan, dataset: int, region: int, held: bool = True) -> Plan:
    place = plan.place.copy()
    place[dataset, region] = held
    return replace(plan, place=place)


def limit(column: str, row: int) -> Callable[[DataPlacement, int], DataPlacement]:
    """Sets one entry of a limit."""

    def change(problem: DataPlacement, value: int) -> DataPlacement:
        values = attrgetter(column)(problem).copy()
        values[row] = value
        return problem.with_columns({column: values})

    return change
