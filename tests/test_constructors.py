"""Public constructors: one wrong array at a time is an error of mast_opt, and never a crash or a wrong verdict."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.arrays import BOOLEANS, NUMBERS, Column, labels_of, repeated
from mast_opt.core.errors import InstanceError, PlanError
from mast_opt.core.solve_result import Status
from mast_opt.planner.solving.solution import Solution
from mast_opt.problems.kind.header import MOST_WEIGHT, Objective
from mast_opt.problems.kind.problem_data import Group
from mast_opt.problems.registry import kind_named, kind_names
from tests.data_placement.workshop import PROBLEM

KEYS = {
    "data-placement": (("options.workload", "options.gpu_type"), ("reads.workload", "reads.dataset")),
    "job-placement": (("options.job", "options.gpu_type"), ("reads.job", "reads.dataset")),
    "server-assignment": (("affinities.reservation", "affinities.datacenter"),),
    "task-reassignment": (("dependencies.service", "dependencies.needs"),),
    "resource-allocation": (("members.configuration", "members.job"), ("uses.configuration", "uses.resource")),
}


@cache
def instance(kind: str) -> Any:
    """An instance in which most arrays have entries."""
    if kind == "data-placement":
        return PROBLEM
    family = "challenge" if kind == "task-reassignment" else "features"
    return mast_opt.generate(kind, family, seed=1)


def groups(kind: str) -> dict[str, Group]:
    found = {item.name: getattr(instance(kind), item.name) for item in fields(instance(kind))}
    return {name: value for name, value in found.items() if isinstance(value, Group)}


def columns(kind: str) -> dict[str, Column]:
    """Name, as in ``regions.storage_mb``, and what the array has to be."""
    return {f"{name}.{column.name}": column for name, group in groups(kind).items() for column in group.COLUMNS}


def array_of(kind: str, name: str) -> Any:
    return attrgetter(name)(instance(kind))


def changed(kind: str, arrays: dict[str, Any]) -> Any:
    return instance(kind).with_columns(arrays)


def spoilt(column: Column, array: np.ndarray[Any, Any]) -> Iterator[tuple[str, Any]]:
    """What is wrong, and the array that is."""
    yield "not an array", array.tolist()
    yield "dimensions", array[..., None]
    yield "length", np.concatenate([array, array[:1]]) if len(array) else np.zeros((0, 7), array.dtype)
    if column.content == BOOLEANS:
        yield "integers for booleans", array.astype(np.int64)
        return
    if column.content != NUMBERS:
        yield "floats for integers", array.astype(np.float64)
        yield "booleans for integers", array > 0
    if not array.size or column.where:
        return
    below = -1 if column.least is None else column.least - 1
    for what, value in (("negative", below), ("huge", np.iinfo(np.int64).max)):
        bounded = column.least is not None if what == "negative" else column.total or column.into or column.most
        if bounded:
            wrong = array.copy()
            wrong.flat[-1] = value
            if what == "huge" and not (column.into or column.most) and array.size > 1:
                wrong.flat[0] = value
            elif what == "huge" and not (column.into or column.most):
                continue
            yield what, wrong


def cases() -> Iterator[Any]:
    for kind in kind_names():
        for name, column in columns(kind).items():
            for what, wrong in spoilt(column, array_of(kind, name)):
                yield pytest.param(kind, name, wrong, id=f"{kind}-{name}-{what}")


@pytest.mark.parametrize(("kind", "column", "wrong"), list(cases()))
def test_one_wrong_array_is_named(kind: str, column: str, wrong: Any) -> None:
    with pytest.raises(InstanceError) as caught:
        changed(kind, {column: wrong})
    names = {re.split(r"[\[ ]", fault.file)[0] for fault in caught.value.faults}
    axis = {name for name, other in columns(kind).items() if other.shape[0] == columns(kind)[column].shape[0]}
    assert column in names or names <= axis
    assert all(fault.expected for fault in caught.value.faults)


@pytest.mark.parametrize("kind", kind_names())
def test_every_array_is_declared(kind: str) -> None:
    owners: dict[str, Any] = dict(groups(kind))
    found = {
        f"{name}.{item.name}"
        for name, owner in owners.items()
        for item in fields(owner)
        if isinstance(getattr(owner, item.name), np.ndarray)
    }
    assert found == set(columns(kind))


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in KEYS.items() for key in keys])
def test_a_key_that_occurs_twice(kind: str, key: tuple[str, str]) -> None:
    relation = columns(kind)[key[0]].shape[0]
    twice = {
        name: np.concatenate([array_of(kind, name)[:1], array_of(kind, name)])
        for name, column in columns(kind).items()
        if column.shape[0] == relation
    }
    assert all(len(array) > 1 for array in twice.values())
    names = ", ".join(name.split(".")[-1] for name in key)
    with pytest.raises(InstanceError, match=f"{key[0]}\\[1\\].*{names} that differ"):
        changed(kind, twice)


@pytest.mark.parametrize("kind", kind_names())
def test_labels(kind: str) -> None:
    names = ("datasets", "jobs", "servers", "services", "jobs")
    axis = f"{dict(zip(kind_names(), names, strict=True))[kind]}.labels"
    labels = array_of(kind, axis)
    for wrong in (list(labels), (labels[1], *labels[1:]), ("", *labels[1:]), (7, *labels[1:]), None):
        with pytest.raises(InstanceError, match=axis):
            changed(kind, {axis: wrong})


@pytest.mark.parametrize("kind", kind_names())
def test_scalars(kind: str) -> None:
    for name in ("name", "objective", "provenance"):
        with pytest.raises(InstanceError, match=name):
            replace(instance(kind), **{name: 7})


def test_a_fault_names_field_position_value_and_range() -> None:
    reads = PROBLEM.reads.dataset.copy()
    reads[2] = 99
    with pytest.raises(
        InstanceError, match=r"reads\.dataset\[2\]: found '99'; expected a position on datasets.* 0 to 2"
    ):
        replace(PROBLEM, reads=replace(PROBLEM.reads, dataset=reads))


@pytest.mark.parametrize("name", ["source", "target"])
def test_links_point_to_regions(name: str) -> None:
    assert PROBLEM.links is not None
    for value, error in ((3, r"links\.{}\[0\]"), (-1, r"{}\[0\]")):
        end = getattr(PROBLEM.links, name).copy()
        end[0] = value
        with pytest.raises(InstanceError, match=error.format(name)):
            replace(PROBLEM, links=replace(PROBLEM.links, **{name: end}))
    price = PROBLEM.links.price_usd_per_tb.copy()
    price[1] = np.nan
    with pytest.raises(InstanceError, match=r"price_usd_per_tb\[1\]: found 'nan'; expected a finite number"):
        replace(PROBLEM.links, price_usd_per_tb=price)


def test_the_arrays_of_the_caller_stay_writable() -> None:
    sizes = PROBLEM.datasets.size_mb.copy()
    problem = replace(PROBLEM, datasets=replace(PROBLEM.datasets, size_mb=sizes))
    sizes[0] = -5
    assert problem.datasets.size_mb[0] == PROBLEM.datasets.size_mb[0]
    assert not problem.datasets.size_mb.flags.writeable
    view = sizes.view()
    view.setflags(write=False)
    sizes[0] = 1
    problem = replace(PROBLEM, datasets=replace(PROBLEM.datasets, size_mb=view))
    sizes[0] = -5
    assert problem.datasets.size_mb[0] == 1
    assert replace(problem, name="other").datasets.size_mb is problem.datasets.size_mb


def test_narrow_integers_are_widened() -> None:
    assert replace(PROBLEM.reads, dataset=PROBLEM.reads.dataset.astype(np.uint8)).dataset.dtype == np.int64


@pytest.mark.second_tier
def test_a_bad_position_does_not_crash_the_process() -> None:
    """HiGHS reads wherever a position points; a child process shows what becomes of it."""
    code = """
import numpy as np, mast_opt
from mast_opt.core.errors import MastOptError
from tests.data_placement.workshop import PROBLEM
for at in (99, -99, 10**9, 2**62):
    reads = PROBLEM.reads.dataset.copy()
    reads[0] = at
    try:
        mast_opt.solve(PROBLEM.with_columns({"reads.dataset": reads}))
    except MastOptError as error:
        assert "reads.dataset[0]" in str(error), error
    else:
        raise SystemExit("accepted")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0, 1e308, 2 * MOST_WEIGHT, "1", None, True])
def test_weights_that_no_solver_can_use(weight: Any) -> None:
    for given in ({"weights": {"remote": weight}}, {"weights": {"remote": 1.0}, "tier_weights": {0: weight}}):
        with pytest.raises(mast_opt.UsageError, match="expected a number from 0 to 1e"):
            Objective(**given)


def test_an_objective_names_what_is_wrong() -> None:
    with pytest.raises(mast_opt.UsageError, match=r"objective.weights .*mapping"):
        Objective(None)  # type: ignore[arg-type]
    with pytest.raises(mast_opt.UsageError, match="each term once"):
        Objective({}, order=("remote", "remote"))
    with pytest.raises(mast_opt.UsageError, match="tuple of names"):
        Objective({}, order="remote")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [kind for kind in kind_names() if kind_named(kind).terms])
def test_an_objective_of_other_terms(kind: str) -> None:
    problem = instance(kind)
    objective = problem.objective
    first, *rest = objective.weights
    for wrong, words in (
        (replace(objective, weights={**objective.weights, "joy": 1.0}), r"objective.weights.*joy"),
        (replace(objective, weights=dict.fromkeys(rest, 1.0)), f"objective.weights.*none for {first}"),
        (replace(objective, order=(first, "joy")), r"objective.order.*joy"),
    ):
        with pytest.raises(InstanceError, match=words):
            replace(problem, objective=wrong)


@pytest.mark.parametrize("kind", [kind for kind in kind_names() if kind_named(kind).policies])
def test_a_policy_of_another_kind(kind: str) -> None:
    problem = instance(kind)
    for wrong, words in (
        (replace(problem.objective, policy="joy"), r"objective.policy.*joy"),
        (replace(problem.objective, inside="joy"), r"objective.inside.*joy"),
        (replace(problem.objective, mechanism="joy"), r"objective.mechanism.*joy"),
        (replace(problem.objective, weights={"joy": 1.0}), r"objective.weights.*joy"),
    ):
        with pytest.raises(InstanceError, match=words):
            replace(problem, objective=wrong)
    with pytest.raises(mast_opt.UsageError, match=r"objective\.policy is 3"):
        Objective({}, policy=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", kind_names())
def test_a_solution_of_an_instance_with_other_names(kind: str, tmp_path: Path) -> None:
    problem = instance(kind)
    none = np.zeros(0, np.int64)
    if kind == "job-placement":
        plan = kind_named(kind).plan_type(none, none, none, none, none > 0, np.zeros(len(problem.running), np.bool_))
    else:
        plan = kind_named(kind).analysis.current_plan(problem) or foreign(kind, problem)
    plan = plan.made_for(problem)
    found = Solution(kind, "none", Status.FEASIBLE, plan, None, 0.0, None, None, "", 0, {})
    mast_opt.write_plan(problem, found, tmp_path / "plan")
    for axis, labels in labels_of(problem).items():
        if not labels:
            continue
        renamed = {axis: (*labels[:-1], "another")}
        other = problem.relabelled(renamed)
        with pytest.raises(PlanError, match=rf"the plan does not fit[^$]*{axis}.{len(labels) - 1}.*another"):
            mast_opt.write_plan(other, found, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("kind", kind_names())
def test_a_plan_of_another_instance(kind: str) -> None:
    problem = mast_opt.generate(kind)
    plan = foreign(kind, problem, 1)
    doors = (
        lambda: mast_opt.verify(problem, plan),
        lambda: mast_opt.solve(problem, start=plan),
        lambda: mast_opt.diff(problem, plan, plan),
    )
    for door in doors:
        with pytest.raises(PlanError, match="the plan does not fit this instance"):
            door()


def foreign(kind: str, problem: Any, lacking: int = 0) -> Any:
    """A plan with a position that the problem lacks; for resource allocation, one of another length."""
    if kind == "data-placement":
        from tests.data_placement.workshop import PLAN

        return PLAN
    plan_type = kind_named(kind).plan_type
    if kind == "job-placement":
        at = np.array([len(problem.jobs)])
        one = np.ones(1, np.int64)
        return plan_type(at, one, one, one, one > 5, np.zeros(len(problem.running), np.bool_))
    if kind == "resource-allocation":
        jobs = len(problem.jobs) + lacking
        return plan_type(np.zeros(len(problem.configurations)), np.zeros(jobs), np.ones(jobs))
    rows, into = ("servers", "reservations") if kind == "server-assignment" else ("processes", "machines")
    wrong = np.zeros(len(getattr(problem, rows)), np.int64)
    wrong[-1] = len(getattr(problem, into)) + 1
    return plan_type(wrong)


@pytest.mark.parametrize("kind", kind_names())
def test_a_plan_of_the_wrong_type_of_array(kind: str) -> None:
    plan_type = kind_named(kind).plan_type
    names = [item.name for item in fields(plan_type)]
    with pytest.raises(PlanError, match=names[0]):
        plan_type(*([[0]] * len(names)))
    with pytest.raises(PlanError, match="array of"):
        plan_type(*([np.zeros(1, complex)] * len(names)))


def test_repeated_entries_are_found_in_any_order() -> None:
    a, b = np.array([3, 1, 2, 1]), np.array([0, 5, 0, 5])
    assert repeated([a, b]) == (1, 3)
    assert repeated([a, np.arange(4)]) is None
    far = np.array([0, 2**62, 0, 2**62])
    assert repeated([far, far, a - a]) == (0, 2)
