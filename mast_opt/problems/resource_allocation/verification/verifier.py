"""Verifier of resource-allocation plans: checks the statement of the problem, sharing no code with any solver.

Feasibility holds to ``TOLERANCE`` relative to the larger of a limit and of what is compared with it. A broken limit is
named as its row in ``models/resource_allocation.mod``.
"""

import numpy as np

from mast_opt.core.verdict import Verdict, Violation
from mast_opt.problems.kind.problem_data import Bools, Floats
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import EVERY_JOB_RUNS, FINISH_TIME, HIERARCHICAL, MAKESPAN, MAX_MIN
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.measures import Measure

TOLERANCE = 1e-9
"""Relative difference from a limit that is rounding."""


SMALL = 1e-5
"""Part of a job's largest rate that is no rounding."""


def verify(problem: ResourceAllocation, plan: Plan) -> Verdict:
    """Every violation of the plan, and its objective and metrics recomputed from the shares alone.

    Raises:
        ValueError: the plan is not one share for each configuration and one rate for each job.
    """
    lengths = len(problem.configurations), len(problem.jobs), len(problem.jobs)
    if (len(plan.share), len(plan.rate), len(plan.kept)) != lengths:
        raise ValueError(f"share, rate and kept have {len(plan.share)}, {len(plan.rate)}, {len(plan.kept)} values")
    check = _Check(problem, plan)
    violations = (
        *check.shares(),
        *check.one(),
        *check.capacity(),
        *check.floors(),
        *check.running(),
        *check.stated(),
    )
    return Verdict(tuple(violations), check.measure.objective(), {}, check.measure.metrics())


class _Check:
    """One method for each group of rows."""

    def __init__(self, problem: ResourceAllocation, plan: Plan) -> None:
        self.p, self.plan = problem, plan
        self.measure = Measure(problem, plan)

    def shares(self) -> list[Violation]:
        """Shares are from 0 to 1, or one of the two."""
        share, labels = self.plan.share, self.p.configurations.labels
        found = _listed("share", labels, share < 0, -share, np.zeros(len(share)))
        found += _listed("share", labels, share > 1 + TOLERANCE, share - 1, np.ones(len(share)))
        if self.p.whole:
            off = np.abs(share - np.rint(share))
            found += _listed("whole", labels, off > TOLERANCE, off, np.rint(share))
        return found

    def one(self) -> list[Violation]:
        """The shares of a job's configurations add up to at most 1, and to 1 where it is required."""
        time, labels, one = self.measure.time, self.p.jobs.labels, np.ones(len(self.p.jobs))
        over = _listed("one", labels, time > 1 + TOLERANCE, time - 1, one)
        return over + _listed("one", labels, self.p.jobs.required & (time < 1 - TOLERANCE), 1 - time, one)

    def capacity(self) -> list[Violation]:
        """Violations of an allocation: amounts of resources."""
        use, amount = self.measure.use, self.p.resources.amount
        units = [f"of {label}" for label in self.p.resources.labels]
        return _listed("capacity", self.p.resources.labels, _above(use, amount), use - amount, amount, units)

    def floors(self) -> list[Violation]:
        """Check an allocation: rates of jobs and of groups are at least their floors."""
        rate, least = self.measure.rate, self.p.jobs.min_rate
        found = _listed("floor", self.p.jobs.labels, _above(least, rate), least - rate, least)
        rate, least = self.measure.group_rate, self.p.groups.min_rate
        return found + _listed("group_floor", self.p.groups.labels, _above(least, rate), least - rate, least)

    def running(self) -> list[Violation]:
        """Policies that divide by every rate, or take its logarithm, need every job to run."""
        if self.p.objective.policy not in EVERY_JOB_RUNS:
            return []
        none = np.zeros(len(self.p.jobs))
        return _listed("runs", self.p.jobs.labels, self.measure.rate <= 0, none + 1, none + 1)

    def stated(self) -> list[Violation]:
        """The rates that the plan states are those of its shares, and only a mechanism takes a part of them."""
        rate, stated, labels = self.measure.rate, self.plan.rate, self.p.jobs.labels
        found = _listed("rate", labels, _above(rate, stated) | _above(stated, rate), np.abs(stated - rate), rate)
        kept = self.plan.kept
        wrong = (kept < 0) | (kept > 1) | ((kept != 1) & (not self.p.objective.mechanism))
        return found + _listed("kept", labels, wrong, np.abs(1 - kept), np.ones(len(kept)))


def _above(value: Floats, limit: Floats) -> Bools:
    """Mask of an allocation's values that are above a limit by more than rounding."""
    return value - limit > TOLERANCE * np.maximum(np.abs(value), np.abs(limit))


def _listed(
    constraint: str,
    labels: tuple[str, ...],
    broken: Bools,
    amount: Floats,
    limit: Floats,
    units: list[str] | None = None,
) -> list[Violation]:
    """An allocation's violation for each broken entry."""
    if not broken.any():
        return []
    return [
        Violation(constraint, (labels[at],), float(amount[at]), float(limit[at]), "" if units is None else units[at])
        for at in np.flatnonzero(broken).tolist()
    ]


def improvement(problem: ResourceAllocation, plan: Plan) -> str:
    """A change that makes a plan better at some level, in words; "" where there is none of this sort.

    With whole shares, one more configuration runs, in the place of those in which its jobs are now, and the utilities
    in ascending order become larger. With fractional ones, a configuration runs longer on what is left over, so that
    nobody has less.
    """
    if problem.objective.policy not in (MAX_MIN, MAKESPAN, FINISH_TIME, HIERARCHICAL):
        return ""
    better = _exchange(problem, plan) if problem.whole else _left_over(problem, plan)
    if better < 0:
        return ""
    return f"{problem.configurations.labels[better]} can run more"


def _left_over(problem: ResourceAllocation, plan: Plan) -> int:
    """A configuration with room for more of it that its jobs would notice, or −1."""
    p, members, uses, measure = problem, problem.members, problem.uses, Measure(problem, plan)
    room = 1.0 - plan.share
    np.minimum.at(room, members.configuration, 1.0 - measure.time[members.job])
    some = uses.amount > 0
    free: Floats = (p.resources.amount - measure.use)[uses.resource[some]] / uses.amount[some]
    np.minimum.at(room, uses.configuration[some], free)
    largest = np.zeros(len(p.jobs))
    np.maximum.at(largest, members.job, members.rate)
    noticed = members.rate * room[members.configuration] > SMALL * largest[members.job]
    return int(members.configuration[np.argmax(noticed)]) if noticed.any() else -1


def _exchange(problem: ResourceAllocation, plan: Plan) -> int:
    """A configuration that raises the utilities in ascending order, in the place of what its jobs run in, or −1."""
    p, members = problem, problem.members
    now, time = np.sort(Measure(p, plan).utility), np.zeros((len(p.jobs), len(p.configurations)), np.bool_)
    time[members.job, members.configuration] = True
    for configuration in np.flatnonzero(plan.share < 0.5).tolist():
        share = np.where(time[time[:, configuration]].any(axis=0), 0.0, plan.share)
        share[configuration] = 1.0
        other = Plan.of_shares(p, share)
        then = np.sort(Measure(p, other).utility)
        first = int(np.argmax(~np.isclose(now, then, rtol=SMALL, atol=0.0)))
        if then[first] > now[first] * (1 + SMALL) and verify(p, other).ok:
            return configuration
    return -1
