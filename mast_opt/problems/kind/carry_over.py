"""Plans of one instance as plans of another one: rows are matched by label."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import labels_of
from mast_opt.core.errors import PlanError
from mast_opt.core.wording import listed
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.origin import Origin, made_for
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.schema import Table, Tables

Columns = Mapping[str, NDArray[Any]]


def carried_over(kind: Kind[Any, PlanT], problem: Problem[PlanT], plan: PlanT) -> tuple[PlanT, tuple[str, ...]]:
    """A plan as one of this instance, where it was made for another one, and the labels that did not match.

    Raises:
        PlanError: what is left is no plan, or the plan's instance is not known any more (the plan was pickled).
    """
    origin: Origin | None = getattr(plan, "origin", None)
    if origin is None or not isinstance(plan, kind.plan_type) or origin.fits(problem):
        return plan, ()
    if origin.problem is None:
        origin.check(problem)
    elif labels_of(origin.problem) == labels_of(problem):
        return made_for(problem, plan), ()
    return matched(kind, problem, kind.tables.plan_to_tables(origin.problem, plan))


def matched(
    kind: Kind[Any, PlanT],
    problem: Problem[PlanT],
    tables: Tables,
    places: Callable[[str], NDArray[np.int64]] | None = None,
) -> tuple[PlanT, tuple[str, ...]]:
    """The plan that the tables of another instance state for this one, and the labels that did not match, in words.

    Rows with a label that the instance does not have are left out. What then has no row in the first table that is
    about it is as it is today, where the instance states that: in that table, and in those that follow from it.

    Args:
        places: axis → position in this instance of each of its labels in the tables, −1 where it is not there, if that
            is known.

    Raises:
        PlanError: what is left is no plan.
    """
    axes = kind.tables.problem_to_tables(problem)[1].axes
    into = {
        axis: _places(axes[axis], labels) if places is None else places(axis) for axis, labels in tables.axes.items()
    }
    now = kind.analysis.current_plan(problem)
    today = None if now is None else kind.tables.plan_to_tables(problem, now)
    values: dict[str, Columns] = {}
    present: dict[str, Mapping[str, NDArray[np.bool_]]] = {}
    lost: dict[str, set[str]] = {}
    decided: dict[str, NDArray[Any]] = {}
    for table in kind.tables.plan_schema.tables:
        columns, there = _mapped(table, tables, into, lost)
        if today is not None:
            known_by = decided.setdefault(table.key[0], columns[table.key[0]])
            columns, there = _completed(table, columns, there, today, known_by)
        values[table.name], present[table.name] = columns, there
    words = tuple(f"{axis}: {listed(sorted(labels))}" for axis, labels in lost.items())
    try:
        make = kind.tables.plan_from_matched or kind.tables.plan_from_tables
        plan = make(problem, Tables(axes, values, present))
    except PlanError as error:
        raise PlanError(error.faults, f"the plan does not carry over to {problem.name} by its labels") from None
    return made_for(problem, plan), words


def _places(here: tuple[str, ...], labels: tuple[str, ...]) -> NDArray[np.int64]:
    """Position of each label among those of an axis, −1 where it is not there."""
    known = {label: at for at, label in enumerate(here)}
    return np.array([known.get(label, -1) for label in labels], np.int64)


def _mapped(
    table: Table, tables: Tables, into: Mapping[str, NDArray[np.int64]], lost: dict[str, set[str]]
) -> tuple[Columns, Columns]:
    """Values and masks of the rows whose labels all match, with positions of the new instance."""
    values = {column.name: tables.get(table.name, column.name) for column in table.columns}
    there = {column.name: tables.has(table.name, column.name) for column in table.columns}
    kept = np.ones(tables.rows(table.name), np.bool_)
    for column in table.columns:
        if column.axis is not None and len(kept):
            old, stated = values[column.name], there[column.name]
            new = into[column.axis][old] if len(into[column.axis]) else np.full(len(old), -1)
            gone = stated & (new < 0)
            labels = tables.axes[column.axis]
            for at in np.unique(old[gone]).tolist():
                lost.setdefault(column.axis, set()).add(labels[at])
            kept &= ~gone
            values[column.name] = np.where(stated, new, 0)
    return {name: of[kept] for name, of in values.items()}, {name: of[kept] for name, of in there.items()}


def _completed(
    table: Table, columns: Columns, there: Columns, today: Tables, decided: NDArray[Any]
) -> tuple[Columns, Columns]:
    """The rows, and those of today for what is not decided, by the first column of the table's key."""
    added = ~np.isin(today.get(table.name, table.key[0]), decided)
    return (
        {name: np.concatenate([of, today.get(table.name, name)[added]]) for name, of in columns.items()},
        {name: np.concatenate([of, today.has(table.name, name)[added]]) for name, of in there.items()},
    )
