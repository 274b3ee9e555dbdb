"""GNU MathProg data of resource-allocation instances: for ``models/resource_allocation.mod``, glpsol and others."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.kind.mathprog import section, write_data
from mast_opt.problems.resource_allocation.policies import (
    COST,
    HIERARCHICAL,
    MAKESPAN,
    MAX_MIN,
    RATE_PER_COST,
    TOTAL_RATE,
)
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

AXES: dict[str, tuple[str, ...]] = dict.fromkeys(("resources", "groups", "jobs", "configurations"), ())
STATED = (TOTAL_RATE, MAX_MIN, MAKESPAN, RATE_PER_COST, COST, HIERARCHICAL)
"""Policies that the .mod states."""


def write_dat(problem: ResourceAllocation, path: Path) -> None:
    """Write the data section that, with the .mod, states this problem.

    Raises:
        UsageError: the .mod does not state the policy, or whole shares.
    """
    policy = problem.objective.policy
    if policy not in STATED:
        raise UsageError(f"models/resource_allocation.mod does not state {policy}; it states: {', '.join(STATED)}")
    if problem.whole:
        raise UsageError("models/resource_allocation.mod states fractional shares, and this instance has whole ones")
    write_data(problem, path, "resource_allocation.mod", AXES, _sections)


def _sections(p: ResourceAllocation) -> Iterator[Iterator[str]]:
    """Data sections of a resource allocation: policy, resources, groups, jobs, configurations."""
    resource, group = np.array(p.resources.labels), np.array(p.groups.labels, str)
    job, configuration = np.array(p.jobs.labels), np.array(p.configurations.labels)
    inside = p.objective.inside or MAX_MIN
    yield iter([f'param policy := "{p.objective.policy}";', f'param inside := "{inside}";'])
    yield section("param : RESOURCE : amount", resource, p.resources.amount)
    yield section("param : GROUP : group_weight group_min_rate", group, p.groups.weight, p.groups.min_rate)
    yield section(
        "param : JOB : weight required min_rate fair_rate steps submitted_s position",
        job,
        p.jobs.weight,
        p.jobs.required.astype(np.int64),
        p.jobs.min_rate,
        p.jobs.fair_rate,
        p.jobs.steps,
        p.jobs.submitted_s,
        np.arange(len(job)),
    )
    grouped = np.flatnonzero(p.jobs.group < len(group))
    yield section("set BELONGS", job[grouped], group[p.jobs.group[grouped]])
    yield section("param : CONFIGURATION : cost", configuration, p.configurations.cost)
    members, uses = p.members, p.uses
    yield section("param : MEMBER : rate", configuration[members.configuration], job[members.job], members.rate)
    yield section("param : USE : use", configuration[uses.configuration], resource[uses.resource], uses.amount)
    yield iter(["end;"])
