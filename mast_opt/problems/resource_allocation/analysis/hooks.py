"""Analysis hooks of resource allocation: why jobs have the rates they have, scenarios, conflicts and repairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.core.verdict import Violation
from mast_opt.problems.kind.analysis_hooks import Alternative, AnalysisHooks, Decisions, Resource
from mast_opt.problems.resource_allocation.analysis.binding_limits import binding
from mast_opt.problems.resource_allocation.analysis.elastic_program import relief
from mast_opt.problems.resource_allocation.analysis.scenarios import CHANGES, moved
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.verifier import verify

NAMED = 3
"""Configurations of a job that a sentence names."""


def now(problem: ResourceAllocation, plan: Plan, job: int) -> str:
    """``at rate 1.474 (1.263 of its fair rate; one more v100 would add 0.5263): bert-p100 52.6%, … of the time``."""
    rate = plan.rate[job]
    at = problem.members.configuration[problem.members.job == job]
    used = sorted(((float(plan.share[c]), c) for c in at.tolist() if plan.share[c] > 0), key=lambda one: -one[0])
    fair = f"{rate / problem.jobs.fair_rate[job]:.4g} of its fair rate"
    if not problem.whole and verify(problem, plan).ok:
        fair += f"; {binding(problem, plan, job).sentence(problem)}"
    if not used:
        return f"at rate 0 ({fair}): in no configuration"
    shares = ", ".join(f"{problem.configurations.labels[c]} {share:.1%}" for share, c in used[:NAMED])
    more = f" and {len(used) - NAMED} more" if len(used) > NAMED else ""
    return f"at rate {rate:.4g} ({fair}): {shares}{more} of the time"


def alternatives(problem: ResourceAllocation, plan: Plan, job: int) -> tuple[Alternative, ...]:
    """All the time in one configuration of the job, instead of its present shares."""
    at = problem.members.configuration[problem.members.job == job]
    found = []
    for c in at.tolist():
        share = plan.share.copy()
        share[at] = 0.0
        share[c] = 1.0
        if not np.array_equal(share, plan.share):
            label = problem.configurations.labels[c]
            found.append(Alternative(f"{label} all the time", label, Plan.of_shares(problem, share, plan.kept)))
    return tuple(found)


def phrase(problem: ResourceAllocation, violation: Violation) -> str:
    """A broken limit: what it is, how large, and by how much it is missed."""
    index, off, limit = violation.index, violation.amount, violation.limit
    if violation.constraint == "capacity":
        return f"{index[0]} ({limit:g}) would be exceeded by {off:.4g}"
    if violation.constraint == "one":
        return f"{index[0]} would run {1 + off:.4g} times at once"
    if violation.constraint == "floor":
        return f"{index[0]} would miss its floor of {limit:g} by {off:.4g}"
    if violation.constraint == "group_floor":
        return f"group {index[0]} would miss its floor of {limit:g} by {off:.4g}"
    if violation.constraint == "runs":
        return f"{index[0]} would not run"
    return str(violation)


def _slowest(problem: ResourceAllocation) -> list[int]:
    """Those whose best configuration is worth least to them first."""
    most = np.zeros(len(problem.jobs))
    np.maximum.at(most, problem.members.job, problem.members.rate)
    order: list[int] = np.argsort(most / problem.normal_rate, kind="stable").tolist()
    return order


def _more(problem: ResourceAllocation, at: int, units: int) -> ResourceAllocation:
    amount = problem.resources.amount.copy()
    amount[at] += units
    return replace(problem, resources=replace(problem.resources, amount=amount))


QUESTIONS = AnalysisHooks(
    relief=relief,
    choices=(Decisions("job", lambda problem: problem.jobs.labels, _slowest, now, alternatives, phrase),),
    resources=(Resource("capacity", "unit", lambda problem: problem.resources.labels, _more),),
    changes=CHANGES,
    moved=moved,
)
