"""Analysis hooks of resource allocation: why jobs have the rates they have, scenarios, conflicts and repairs."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.verdict import Violation
from mast_opt.problems.kind.analysis_hooks import (
    PLAUSIBLE_GROWTH,
    Alternative,
    AnalysisHooks,
    Change,
    Decisions,
    Resource,
)
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.kind.scenario_values import amounts, factors, positions
from mast_opt.problems.resource_allocation.analysis.binding_limits import binding
from mast_opt.problems.resource_allocation.analysis.elastic_program import relief
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.verifier import verify

CHANGED = 1e-6
"""Change of a share above which it is no round-off."""


def lose_resources(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """The instance with nothing of these resources."""
    amount = problem.resources.amount.copy()
    amount[positions("lose_resources", "resource", problem.resources.labels, value)] = 0.0
    return _with_amounts(problem, amount)


def add_resources(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """More of some resources; below 0 takes away."""
    amount = problem.resources.amount.copy()
    for at, more in amounts("add_resources", "resource", problem.resources.labels, value).items():
        amount[at] += more
        if amount[at] < 0:
            raise UsageError(f"add_resources takes more {problem.resources.labels[at]} than there is")
    return _with_amounts(problem, amount)


def _with_amounts(problem: ResourceAllocation, amount: Floats) -> ResourceAllocation:
    """The resource allocation with other amounts of its resources."""
    return replace(problem, resources=replace(problem.resources, amount=amount))


def scale_weights(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """Weights of jobs, of all or by job, times a factor."""
    times = factors("scale_weights", "job", problem.jobs.labels, value)
    if (times <= 0).any():
        raise UsageError("scale_weights: expected factors above 0; a job without weight can be left out")
    return replace(problem, jobs=replace(problem.jobs, weight=problem.jobs.weight * times))


def scale_floors(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """Floors of jobs, of all or by job, times a factor."""
    times = factors("scale_floors", "job", problem.jobs.labels, value)
    return replace(problem, jobs=replace(problem.jobs, min_rate=problem.jobs.min_rate * times))


CHANGES = {
    "lose_resources": Change(lose_resources, 'lose_resources = ["k80"]', "resources of which nothing is left"),
    "add_resources": Change(add_resources, "add_resources = { v100 = 8 }", "more of a resource, or less"),
    "scale_weights": Change(
        scale_weights, "scale_weights = { bert = 2 }", "weights of jobs times a factor", plausible=PLAUSIBLE_GROWTH
    ),
    "scale_floors": Change(
        scale_floors, "scale_floors = { bert = 1.2 }", "floors of jobs times a factor", plausible=PLAUSIBLE_GROWTH
    ),
}


def moved(problem: ResourceAllocation, scenario: ResourceAllocation, before: Plan, after: Plan) -> Mapping[str, float]:
    """Configurations whose share changes, and the sum of what shares lose."""
    change = after.share - before.share
    return {
        "changed_shares": float((np.abs(change) > CHANGED).sum()),
        "shifted_time": float(np.maximum(-change, 0.0).sum()),
    }


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
    """The resource allocation with so many units more of one resource."""
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
