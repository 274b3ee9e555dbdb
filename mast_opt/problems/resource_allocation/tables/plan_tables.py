"""The tables of a resource-allocation plan, and the way between them and the plan."""

from __future__ import annotations

import numpy as np

from mast_opt.core.errors import Fault, PlanError
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.tables.problem_tables import problem_axes


def plan_from_tables(problem: ResourceAllocation, tables: Tables) -> Plan:
    """The plan that the tables state. Raises PlanError where a job has no rate."""
    share, rate = np.zeros(len(problem.configurations)), np.full(len(problem.jobs), -1.0)
    kept = np.ones(len(problem.jobs))
    share[tables.get("shares", "configuration")] = tables.get("shares", "share")
    rate[tables.get("rates", "job")] = tables.get("rates", "rate")
    stated = tables.has("rates", "kept")
    kept[tables.get("rates", "job")[stated]] = tables.get("rates", "kept")[stated]
    if (rate < 0).any():
        lacking = np.flatnonzero(rate < 0).tolist()
        raise PlanError(Fault("rates", f"a row for job {problem.jobs.labels[at]}", column="job") for at in lacking)
    return Plan(share, rate, kept)


def plan_to_tables(problem: ResourceAllocation, plan: Plan) -> Tables:
    """The tables that ``plan_from_tables`` turns into this plan."""
    used = np.flatnonzero(plan.share != 0)
    values = {
        "shares": {"configuration": used, "share": plan.share[used]},
        "rates": {"job": np.arange(len(problem.jobs)), "rate": plan.rate, "kept": plan.kept},
    }
    stated = np.full(len(problem.jobs), bool(problem.objective.mechanism) or bool((plan.kept != 1).any()))
    return Tables(problem_axes(problem), values, {"rates": {"kept": stated}})
