"""Jobs of a trace that would wait for ever, and columns of a trace that a run does not look at."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from mast_opt.core.input_warning import InputWarning
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import job_of
from mast_opt.live.simulation.traces.schema import OF_A_GANG, SUBMISSIONS
from mast_opt.live.simulation.traces.trace import JobTrace, Submissions
from mast_opt.problems.job_placement.live_fleet.answers import Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.units import Bools
from mast_opt.problems.kind.schema import Column, ColumnType

OPTIONAL = tuple(one for one in SUBMISSIONS.columns if not one.required and one.name not in OF_A_GANG)
TENANT, STEPS = "tenant", "steps"


def jobs_that_fit_nowhere(trace: JobTrace, of: Collection[str] | None = None) -> Mapping[str, str]:
    """Job → why none of the empty servers can hold it, in words; jobs that fit somewhere are not there.

    Copies that a plan makes later may help a job that lacks data.

    Args:
        of: the jobs to look at; all unless given.
    """
    tiers = sorted(set(trace.submissions.tier.tolist()))
    fleet = Fleet(trace.servers, tiers=tiers, replicas=trace.replicas, residency=trace.surroundings.residency)
    known: dict[object, str] = {}
    found: dict[str, str] = {}
    for at, name in enumerate(trace.submissions.labels):
        if of is not None and name not in of:
            continue
        spec = trace.submissions.spec(at)
        shape = spec.shape, frozenset(spec.datasets)
        if shape not in known:
            known[shape] = _why(fleet, spec)
        if known[shape]:
            found[name] = known[shape]
    return found


def warnings_by_reason(impossible: Mapping[str, str]) -> list[InputWarning]:
    """A warning for each reason why a trace's jobs fit nowhere."""
    by_reason: dict[str, list[str]] = {}
    for name, why in impossible.items():
        by_reason.setdefault(why, []).append(name)
    return [
        InputWarning("submissions", f"no region can ever hold this job: {why}", None, "job", names[0], count=len(names))
        for why, names in by_reason.items()
    ]


def warnings_of(trace: JobTrace) -> list[InputWarning]:
    """Warnings of what is allowed in a trace and was probably not meant: one for each reason why jobs fit nowhere, and
    for jobs of unknown duration."""
    found = warnings_by_reason(jobs_that_fit_nowhere(trace))
    unknown = np.flatnonzero(trace.submissions.duration_ms < 0)
    if len(unknown):
        found.append(
            InputWarning(
                "submissions",
                "nobody knows how long this job runs, so that it cannot be simulated",
                column="duration_s",
                value=trace.submissions.labels[unknown[0]],
                count=len(unknown),
            )
        )
    return found


def _why(fleet: Fleet, spec: JobSpec) -> str:
    """Reason for which no region can ever hold a job of the trace; empty if one can."""
    answer = fleet.place(job_of("a", spec))
    return answer.reason if isinstance(answer, Refused) else ""


def ignored(trace: JobTrace, policy: str, reads: Collection[str]) -> tuple[InputWarning, ...]:
    """A warning for each optional column of submissions, and for quotas, that a trace states and a run does not read.

    A column whose values are all the default says nothing.

    Args:
        policy: what the warnings name.
        reads: optional columns that are looked at.
    """
    return tuple(_ignored(trace, policy, reads))


def _ignored(trace: JobTrace, policy: str, reads: Collection[str]) -> Iterator[InputWarning]:
    """Warnings of what a trace states and a run under this policy does not look at."""
    jobs, message = trace.submissions, f"{policy} does not look at it"
    for column in OPTIONAL:
        if column.name in reads or column.name == STEPS:  # steps have become durations
            continue
        stated = np.flatnonzero(_stated(jobs, column))
        if len(stated):
            value = _text(column, getattr(jobs, column.attribute)[stated[0]])
            yield InputWarning("submissions", message, None, column.name, value, count=len(stated))
    if trace.quotas and TENANT not in reads:
        yield InputWarning("quotas", message, count=len(trace.quotas.rows()))


def _stated(jobs: Submissions, column: Column) -> Bools:
    """[J] whether a submitted job has something else than the default."""
    values: Any = getattr(jobs, column.attribute)
    if column.type is ColumnType.LABEL:
        return np.array([value != "" for value in values], np.bool_)
    if column.type is ColumnType.BOOLEAN:
        stopped: Bools = np.equal(values, jobs.tier == 0)
        return stopped
    found: Bools = np.not_equal(values, -1 if column.default is None else column.default)
    return found


def _text(column: Column, value: Any) -> str:  # noqa: ANN401 - of the column's type
    """A value of a trace's column as a file would have it."""
    if column.type is ColumnType.CHOICE:
        return column.choices[int(value)]
    if column.type is ColumnType.QUANTITY:
        return f"{int(value) / column.scale:.12g}"
    return str(value).lower() if column.type is ColumnType.BOOLEAN else str(value)
