"""Residency under every policy of simulate: it holds, or the policy refuses the trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import InstanceError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.live.simulation.run import policy_names, run_trace
from mast_opt.live.simulation.traces.surroundings import Dataset
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.problems.job_placement.live_fleet.types import Part
from tests.simulation.test_ignored_columns import JOBS, drawn

AT_HOME = [("mast", {"bind": "home"}), ("mast", {"scope": "region"}), ("federated", {"rule": "home"})]
"""Here a job never runs outside its home region."""
CASES = [
    *((policy, {}) for policy in policy_names()),
    *(("mast", {"bind": bind}) for bind in ("share", "copy")),
    *(("federated", {"rule": rule}) for rule in ("share", "hydra", "random")),
    *AT_HOME,
]
READS = {job: (("d",), ("d", "e"), ())[job % 3] for job in range(JOBS)}
RESIDENCY = {"d": ("b",), "e": ("a",)}
IN_PROGRAMS = set(policy_names()) - {*ORDER_ONLY, "mast", "federated", "easy", "pai", "allox"}
TAKE_PARTS = {"mast", "federated", "easy"}


def trace_for(policy: str, *, sized: bool, parts: bool) -> JobTrace:
    """Datasets d and e are in both regions; d may be read in b only, e in a only, so that no job may read both."""
    trace = drawn(2, single=policy == "allox", plain=policy in ORDER_ONLY)
    none, one = np.full(JOBS, -1, np.int64), np.ones(JOBS, np.int64)
    jobs = replace(trace.submissions, datasets=READS, tasks=one, min_tasks=none, max_tasks=none, within=0 * one)
    if parts:
        of = (Part("trainers", 2, 1000), Part("readers", 1, 0, 1000))
        zero = 0 * one
        jobs = replace(jobs, parts=dict.fromkeys(range(JOBS), of), mgpu=1000 * one, cpu_mcores=zero, memory_mib=zero)
    around = replace(
        trace.surroundings, residency=RESIDENCY, datasets=dict.fromkeys(RESIDENCY, Dataset(1)) if sized else {}
    )
    return replace(trace, submissions=jobs, replicas=dict.fromkeys(RESIDENCY, ("a", "b")), surroundings=around)


def placed(trace: JobTrace, policy: str, params: dict[str, str]) -> set[tuple[tuple[str, ...], str, str]]:
    """(datasets, job, region) of what was placed."""
    log = [*run_trace(trace, policy, params).events()]
    unsized = {name: trace.readable_in(name) for name in trace.replicas if name not in trace.surroundings.datasets}
    assert [str(one) for one in check_log(log, replicas=unsized)] == []
    return {
        (READS[int(one.event.job[1:])], one.event.job, one.event.region)
        for one in log
        if isinstance(one.event, ev.Placed)
    }


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize(
    ("policy", "params"),
    [pytest.param(*one, marks=pytest.mark.second_tier if one[0] in IN_PROGRAMS else ()) for one in CASES],
)
def test_residency_holds_under_every_policy(policy: str, params: dict[str, str], sized: bool, parts: bool) -> None:
    trace = trace_for(policy, sized=sized, parts=parts)
    if policy in ORDER_ONLY or (parts and policy not in TAKE_PARTS):
        with pytest.raises(InstanceError, match="no jobs of several parts" if parts else "no datasets"):
            run_trace(trace, policy, params)
        return
    found = placed(trace, policy, params)
    assert {(datasets, region) for datasets, _, region in found if datasets} == {(("d",), "b")}
    if (policy, params) not in AT_HOME:
        assert {job for _, job, _ in found} == {f"j{job}" for job, datasets in READS.items() if len(datasets) < 2}
    anywhere = replace(trace, surroundings=replace(trace.surroundings, residency={}))
    assert any("d" in datasets and region == "a" for datasets, _, region in placed(anywhere, policy, params))
