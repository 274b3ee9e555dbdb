"""Resource-allocation problem from its tables, and its tables from the problem."""

from collections.abc import Iterator

import numpy as np

from mast_opt.core.errors import Fault, InstanceError, PlanError
from mast_opt.problems.kind.header import Header, Rule, policy_faults
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.kind.stated_columns import arrays_of, left_out, stated_tables
from mast_opt.problems.resource_allocation.entities import Configurations, Groups, Jobs, Members, Resources, Uses
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import HIERARCHICAL, NEEDS_STEPS, POLICIES, RATE_PER_COST
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.tables.schema import SCHEMA

FRACTIONAL, WHOLE = "fractional", "whole"
RULES = (Rule("shares", FRACTIONAL, (FRACTIONAL, WHOLE), "is a share a part of the time, or a choice?"),)


def problem_from_tables(header: Header, tables: Tables) -> ResourceAllocation:
    """The problem that the tables state. Raises InstanceError for what only the whole can show."""
    faults = [*policy_faults(header.objective, POLICIES), *_faults(header.objective.policy, tables)]
    if header.objective.policy == HIERARCHICAL and header.rules["shares"] == WHOLE:
        faults.append(Fault("instance.toml: rules.shares", f"{FRACTIONAL}: {HIERARCHICAL} fills by parts", value=WHOLE))
    if faults:
        raise InstanceError(faults)
    axes = tables.axes
    return ResourceAllocation(
        name=header.name,
        provenance=header.provenance,
        resources=Resources(axes["resource"], **arrays_of(Resources, tables, "resources")),
        groups=Groups(axes["group"], **arrays_of(Groups, tables, "groups")),
        jobs=Jobs(axes["job"], **arrays_of(Jobs, tables, "jobs")),
        configurations=Configurations(axes["configuration"], **arrays_of(Configurations, tables, "configurations")),
        members=Members(**arrays_of(Members, tables, "members")),
        uses=Uses(**arrays_of(Uses, tables, "uses")),
        whole=header.rules["shares"] == WHOLE,
        objective=header.objective,
    )


def _faults(policy: str, tables: Tables) -> Iterator[Fault]:
    """Faults of incomplete tables, in the words of files; the problem finds the same."""
    axes = tables.axes
    for axis, table in (("job", "jobs"), ("configuration", "configurations")):
        lone = np.bincount(tables.get("members", axis), minlength=len(axes[axis])) == 0
        words = f"a row in members: a {axis} without one has no " + ("configuration" if axis == "job" else "job")
        yield from _rows(table, axis, lone, words, axes[axis])
    if policy in NEEDS_STEPS:
        steps = tables.get("jobs", "steps")
        yield from _rows("jobs", "steps", steps <= 0, f"a number above 0: {policy} needs the work that is left", steps)
    if policy == RATE_PER_COST:
        cost = tables.get("configurations", "cost")
        yield from _rows("configurations", "cost", cost <= 0, f"a number above 0: {policy} divides by it", cost)
    if policy == HIERARCHICAL:
        yield from _rows("jobs", "group", ~tables.has("jobs", "group"), f"a group: {policy} needs one for each job")


def _rows(table: str, column: str, wrong: object, expected: str, values: object = None) -> Iterator[Fault]:
    """A fault for each row of an allocation's table that is wrong, up to a few; the others are counted."""
    found = np.flatnonzero(np.asarray(wrong))
    listed = 20
    for row in found[:listed].tolist():
        value = "" if values is None else np.asarray(values)[row]
        yield Fault(table, expected, row + 1, column, str(value))
    if len(found) > listed:
        yield Fault(table, expected, column=column, count=len(found) - listed)


def problem_to_tables(problem: ResourceAllocation) -> tuple[Header, Tables]:
    """The header and tables that ``problem_from_tables`` turns into this problem."""
    p = problem
    rules = {"shares": WHOLE if p.whole else FRACTIONAL}
    header = Header(p.kind, p.name, p.objective, rules, p.provenance)
    axes = p.table_axes(SCHEMA)
    values, present = stated_tables(p, SCHEMA, axes)
    return header, Tables(axes, values, present, left_out(SCHEMA, values))


def plan_from_tables(problem: ResourceAllocation, tables: Tables) -> Plan:
    """The plan that the tables state. Raises PlanError where a job has no rate."""
    share, kept = _shares_and_parts(problem, tables)
    rate = np.full(len(problem.jobs), -1.0)
    rate[tables.get("rates", "job")] = tables.get("rates", "rate")
    if (rate < 0).any():
        lacking = np.flatnonzero(rate < 0).tolist()
        raise PlanError(Fault("rates", f"a row for job {problem.jobs.labels[at]}", column="job") for at in lacking)
    return Plan(share, rate, kept)


def plan_from_matched(problem: ResourceAllocation, tables: Tables) -> Plan:
    """The plan with the shares of another plan's tables, matched by label, and the rates that they have here."""
    return Plan.of_shares(problem, *_shares_and_parts(problem, tables))


def _shares_and_parts(problem: ResourceAllocation, tables: Tables) -> tuple[Floats, Floats]:
    """[C] the shares, and [J] the kept parts of the rates, that the tables of a plan state."""
    share, kept = np.zeros(len(problem.configurations)), np.ones(len(problem.jobs))
    share[tables.get("shares", "configuration")] = tables.get("shares", "share")
    stated = tables.has("rates", "kept")
    kept[tables.get("rates", "job")[stated]] = tables.get("rates", "kept")[stated]
    return share, kept


def plan_to_tables(problem: ResourceAllocation, plan: Plan) -> Tables:
    """The tables that ``plan_from_tables`` turns into this plan."""
    used = np.flatnonzero(plan.share != 0)
    values = {
        "shares": {"configuration": used, "share": plan.share[used]},
        "rates": {"job": np.arange(len(problem.jobs)), "rate": plan.rate, "kept": plan.kept},
    }
    stated = np.full(len(problem.jobs), bool(problem.objective.mechanism) or bool((plan.kept != 1).any()))
    return Tables(problem.table_axes(SCHEMA), values, {"rates": {"kept": stated}})
