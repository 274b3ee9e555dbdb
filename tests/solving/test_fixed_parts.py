"""A frozen part stays as it is, for every kind and every solver, or it is an error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.problems.registry import kind_named
from tests.data_placement.support import begun_with
from tests.examples import examples
from tests.narrowing import some


def problem_of(seed: int = 0) -> mast_opt.DataPlacement:
    """Data placement with a present state that breaks no rule."""
    problem = mast_opt.generate("data-placement", seed=seed, datasets=8, workloads=8, regions=3)
    plan = mast_opt.solve(problem, gap=0.5, time_limit_s=20).plan
    assert plan is not None
    roomy = problem.with_columns(
        {"regions.supply_mgpu": np.roll(problem.regions.supply_mgpu, 1, axis=0) + problem.regions.supply_mgpu}
    )
    return begun_with(roomy, plan)


PROBLEM = problem_of()
TODAY = kind_named("data-placement").analysis.current_plan(PROBLEM)
PARTS = {axis[:-1]: PROBLEM.labels_of(axis) for axis in ("datasets", "workloads", "regions")}


def rows(plan: Any, table: str, what: str, names: set[str]) -> set[tuple[str | None, ...]]:
    """The rows of a table of a plan that mention one of the names, as text."""
    kind = kind_named("data-placement")
    tables = kind.tables.plan_to_tables(PROBLEM, plan)
    schema = kind.tables.plan_schema.table(table)
    columns = []
    for column in schema.columns:
        labels = tables.axes.get(column.axis or "")
        values = tables.get(table, column.name).tolist()
        columns.append([labels[value] if labels else str(value) for value in values])
    at = next((n for n, column in enumerate(schema.columns) if column.axis == what), None)
    return set() if at is None else {row for row in zip(*columns) if row[at] in names}


@examples(12)
@given(st.sampled_from(sorted(PARTS)), st.data())
def test_an_exact_solver_keeps_the_rows(what: str, data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(PARTS[what]), min_size=1))
    solution = mast_opt.solve(PROBLEM, freeze={what: names}, time_limit_s=20, gap=0.01)
    assert solution.plan is not None
    assert set(solution.frozen[what]) == names
    for table in ("placements", "runs"):
        assert rows(solution.plan, table, what, names) == rows(TODAY, table, what, names)


def test_keeping_everything_changes_nothing() -> None:
    solution = mast_opt.solve(PROBLEM, freeze={"region": PARTS["region"]})
    assert np.array_equal(some(solution.plan).place, some(TODAY).place)
    assert solution.objective == mast_opt.verify(PROBLEM, some(TODAY)).objective


def test_keeping_less_is_never_worse() -> None:
    free = mast_opt.solve(PROBLEM, gap=0.0, time_limit_s=30)
    part = mast_opt.solve(PROBLEM, gap=0.0, time_limit_s=30, freeze={"region": PARTS["region"][:1]})
    assert free.status.value == part.status.value == "OPTIMAL"
    assert some(free.objective) <= some(part.objective) + 1e-9


@pytest.mark.parametrize("what", sorted(PARTS))
def test_the_heuristic_keeps_the_rows(what: str) -> None:
    names = set(PARTS[what][:2])
    solution = mast_opt.solve(PROBLEM, "tetris", iterations=3, threads=1, freeze={what: names})
    assert solution.plan is not None
    assert solution.certificate is None
    for table in ("placements", "runs"):
        assert rows(solution.plan, table, what, names) == rows(TODAY, table, what, names)


def test_what_rules_cannot_say_is_an_error() -> None:
    split = PROBLEM.with_columns({"workloads.splittable": np.ones(len(PROBLEM.workloads), np.bool_)})
    halves = replace(
        some(TODAY),
        run_workload=np.append([0], some(TODAY).run_workload),
        run_region=np.append([(some(TODAY).run_region[0] + 1) % 3], some(TODAY).run_region),
        run_type=np.append([some(TODAY).run_type[0]], some(TODAY).run_type),
        run_share=np.append([500, 500], some(TODAY).run_share[1:]),
    )
    with pytest.raises(mast_opt.UnsupportedOption, match="runs in parts"):
        mast_opt.solve(split, "tetris", iterations=1, start=halves, freeze={"workload": [split.workloads.labels[0]]})
    with pytest.raises(mast_opt.UnsupportedOption, match="GPU type"):
        mast_opt.solve(PROBLEM, "tetris", iterations=1, freeze={"gpu_type": PROBLEM.gpu_types[:1]})


@pytest.mark.parametrize(
    ("kind", "what", "solver"),
    [("job-placement", "job", "exhaustive"), ("task-reassignment", "process", "twine")],
)
def test_other_heuristics_refuse(kind: str, what: str, solver: str) -> None:
    problem = mast_opt.generate(kind)
    solution = mast_opt.solve(problem, gap=0.5, time_limit_s=10)
    name = problem.jobs.labels[0] if what == "job" else problem.processes.labels[0]
    with pytest.raises(mast_opt.UnsupportedOption, match="needs an exact solver"):
        mast_opt.solve(problem, solver, start=solution.plan, freeze={what: [name]})


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("job-placement", "job"),
        ("job-placement", "cluster"),
        ("job-placement", "running"),
        ("task-reassignment", "service"),
        ("task-reassignment", "machine"),
        ("server-assignment", "reservation"),
        ("server-assignment", "switchboard"),
    ],
)
def test_every_kind_keeps_a_part(kind: str, what: str) -> None:
    family = next(iter(kind_named(kind).generate.families.values()))
    sizes = {size: min(default, 6) for size, default in family.sizes.items()}
    problem = mast_opt.generate(kind, None, seed=4, **sizes)
    today = kind_named(kind).analysis.current_plan(problem)
    start = today if today is not None else mast_opt.solve(problem, gap=0.9, time_limit_s=10).plan
    names = kind_named(kind).tables.problem_to_tables(problem)[1].axes[what][:2]
    solution = mast_opt.solve(problem, gap=0.01, time_limit_s=20, start=start, freeze={what: names})
    assert solution.plan is not None
    assert mast_opt.verify(problem, solution.plan).ok
    table = some(kind_named(kind).formulation.fixed_parts).tables[0]
    changed = next(diff for diff in mast_opt.diff(problem, start, solution.plan).tables if diff.name == table)
    columns = {column.axis: column.name for column in kind_named(kind).tables.plan_schema.table(table).columns}
    if what in columns and columns[what] in changed.key:
        at = changed.key.index(columns[what])
        touched = {row[0][at] for row in (*changed.added, *changed.removed, *changed.changed)}
        assert not touched & set(names)


@pytest.mark.parametrize(
    ("freeze", "words"),
    [
        ({"planet": ["earth"]}, "expected one of: dataset, region"),
        ({"region": [PARTS["region"][0].upper() + "x"]}, "there is no region called"),
        ({"region": PARTS["region"][0]}, "expected a collection of names, as in"),
    ],
)
def test_what_does_not_exist(freeze: dict[str, list[str]], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.solve(PROBLEM, freeze=freeze)


def test_nothing_to_keep() -> None:
    problem = mast_opt.generate("data-placement", datasets=4, workloads=4, regions=2)
    with pytest.raises(mast_opt.UsageError, match="states no present state"):
        mast_opt.solve(problem, freeze={"region": problem.regions.labels[:1]})


def test_a_part_that_breaks_a_rule() -> None:
    i, r = (int(at[0]) for at in np.nonzero(some(TODAY).place))
    banned = PROBLEM.datasets.forbidden.copy()
    banned[i, r] = True
    with pytest.raises(mast_opt.UsageError, match=r"place\["):
        mast_opt.solve(PROBLEM.with_columns({"datasets.forbidden": banned}), freeze={"dataset": [PARTS["dataset"][i]]})
