"""Columns that a trace states and a run does not look at."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from mast_opt.core.input_warning import InputWarning
from mast_opt.live.simulation.traces.schema import SUBMISSIONS
from mast_opt.live.simulation.traces.trace import Bools, JobTrace, Submissions
from mast_opt.problems.kind.schema import Column, ColumnType

OPTIONAL = tuple(column for column in SUBMISSIONS.columns if not column.required)
TENANT, STEPS = "tenant", "steps"


def ignored(trace: JobTrace, policy: str, reads: Collection[str]) -> tuple[InputWarning, ...]:
    """A warning for each optional column of submissions, and for quotas, that a trace states and a run does not read.

    A column whose values are all the default says nothing.

    Args:
        policy: what the warnings name.
        reads: optional columns that are looked at.
    """
    return tuple(_ignored(trace, policy, reads))


def _ignored(trace: JobTrace, policy: str, reads: Collection[str]) -> Iterator[InputWarning]:
    jobs, message = trace.submissions, f"{policy} does not look at it"
    for column in OPTIONAL:
        if column.name in reads or column.name == STEPS:  # steps have become durations
            continue
        stated = np.flatnonzero(_stated(jobs, column))
        if len(stated):
            value = _text(column, getattr(jobs, column.attribute)[stated[0]])
            yield InputWarning("submissions", message, None, column.name, value, count=len(stated))
    if trace.quotas and TENANT not in reads:
        yield InputWarning("quotas", message, count=len(trace.quotas))


def _stated(jobs: Submissions, column: Column) -> Bools:
    """[J] whether a job has something else than the default."""
    values: Any = getattr(jobs, column.attribute)
    if column.type is ColumnType.LABEL:
        return np.array([value != "" for value in values], np.bool_)
    if column.type is ColumnType.BOOLEAN:
        stopped: Bools = np.equal(values, jobs.tier == 0)
        return stopped
    found: Bools = np.not_equal(values, -1 if column.default is None else column.default)
    return found


def _text(column: Column, value: Any) -> str:  # noqa: ANN401 - of the column's type
    """A value as a file would have it."""
    if column.type is ColumnType.CHOICE:
        return column.choices[int(value)]
    if column.type is ColumnType.QUANTITY:
        return f"{int(value) / column.scale:.12g}"
    return str(value).lower() if column.type is ColumnType.BOOLEAN else str(value)
