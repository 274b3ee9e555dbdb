"""Jobs of a trace that would wait for ever: no region's empty servers hold them, or their data is nowhere together."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from mast_opt.core.input_warning import InputWarning
from mast_opt.live.loop.events import JobSpec
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.problems.job_placement.live_fleet.answers import Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job


def jobs_that_fit_nowhere(trace: JobTrace, of: Collection[str] | None = None) -> Mapping[str, str]:
    """Job → why none of the empty servers can hold it, in words; jobs that fit somewhere are not there.

    Copies that a plan makes later may help a job that lacks data.

    Args:
        of: the jobs to look at; all unless given.
    """
    tiers = sorted(set(trace.submissions.tier.tolist()))
    fleet = Fleet(trace.servers, tiers=tiers, replicas=trace.replicas)
    known: dict[object, str] = {}
    found: dict[str, str] = {}
    for at, name in enumerate(trace.submissions.labels):
        if of is not None and name not in of:
            continue
        spec = trace.submissions.spec(at)
        shape = _shape(spec)
        if shape not in known:
            known[shape] = _why(fleet, spec, tiers[0])
        if known[shape]:
            found[name] = known[shape]
    return found


def warnings_by_reason(impossible: Mapping[str, str]) -> list[InputWarning]:
    """A warning for each reason why jobs fit nowhere."""
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


def _shape(spec: JobSpec) -> tuple[object, ...]:
    types = None if spec.gpu_types is None else tuple(sorted(spec.gpu_types.items()))
    needs = spec.tasks, spec.mgpu, spec.cpu_mcores, spec.memory_mib
    return needs, types, spec.within, frozenset(spec.datasets)


def _why(fleet: Fleet, spec: JobSpec, tier: int) -> str:
    """Reason why a job fits nowhere; empty if it fits."""
    job = Job(
        "a",
        tier,
        spec.tasks,
        spec.mgpu,
        spec.cpu_mcores,
        spec.memory_mib,
        spec.gpu_types,
        spec.datasets,
        spec.within,
    )
    answer = fleet.place(job)
    return answer.reason if isinstance(answer, Refused) else ""
