"""Measures of a resource-allocation plan, recomputed from its shares alone: rates, uses, the value of each policy."""

import math
from functools import cached_property

import numpy as np

from mast_opt.problems.kind.problem_data import Bools, Floats
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import FINISH_TIME, MAKESPAN
from mast_opt.problems.resource_allocation.problem import ResourceAllocation


class Measure:
    """Sums over the shares of a plan; each is computed when it is asked for."""

    def __init__(self, problem: ResourceAllocation, plan: Plan) -> None:
        self.p = problem
        self.plan = plan

    @cached_property
    def rate(self) -> Floats:
        """[J] of each job, before what a mechanism takes."""
        rate = np.zeros(len(self.p.jobs))
        np.add.at(rate, self.p.members.job, self.p.members.rate * self.plan.share[self.p.members.configuration])
        return rate

    @cached_property
    def time(self) -> Floats:
        """[J] the share of the time in which each job is in some configuration."""
        time = np.zeros(len(self.p.jobs))
        np.add.at(time, self.p.members.job, self.plan.share[self.p.members.configuration])
        return time

    @cached_property
    def use(self) -> Floats:
        """[K] how much of each resource is used by an allocation."""
        use = np.zeros(len(self.p.resources))
        np.add.at(use, self.p.uses.resource, self.p.uses.amount * self.plan.share[self.p.uses.configuration])
        return use

    @cached_property
    def group_rate(self) -> Floats:
        """[G] the sum of the rates of each group's jobs."""
        grouped = self.p.jobs.group < len(self.p.groups)
        rate = np.zeros(len(self.p.groups))
        np.add.at(rate, self.p.jobs.group[grouped], self.rate[grouped])
        return rate

    @property
    def utility(self) -> Floats:
        """[J] what a policy that raises the worst-off job compares jobs by; 0 for a job that does not run."""
        policy = self.p.objective.policy
        if policy == FINISH_TIME:
            return 1.0 / np.where(self.rate > 0, self.finish_time_ratio, np.inf)
        return self.rate / (self.p.jobs.steps if policy == MAKESPAN else self.p.jobs.weight * self.p.jobs.fair_rate)

    @property
    def running(self) -> Bools:
        """Mask [J] of the jobs that make progress."""
        return self.rate > 0

    def objective(self) -> float:
        """The value of the policy; infinite, in its bad direction, where a job that has to run does not."""
        value: float = getattr(self, self.p.objective.policy.replace("-", "_"))()
        return value

    def total_rate(self) -> float:
        """Σ weight·rate."""
        return math.fsum((self.p.jobs.weight * self.rate).tolist())

    def max_min(self) -> float:
        """The smallest rate/(weight·fair_rate)."""
        return float((self.rate / (self.p.jobs.weight * self.p.jobs.fair_rate)).min())

    def makespan(self) -> float:
        """The largest steps/rate over the jobs of the plan."""
        return float(_over(self.p.jobs.steps, self.rate).max())

    def finish_time_fairness(self) -> float:
        """The largest (elapsed_s + steps/rate)/(fair_elapsed_s + steps/fair_rate)."""
        return float(self.finish_time_ratio.max())

    @cached_property
    def finish_time_ratio(self) -> Floats:
        """[J] the time that the job takes under the allocation in all, over that of an equal split; NaN where its steps
        are not known.
        """
        jobs = self.p.jobs
        fair = jobs.fair_elapsed_s + jobs.steps / jobs.fair_rate
        ratio = np.full(len(jobs), np.nan)
        np.divide(jobs.elapsed_s + _over(jobs.steps, self.rate), fair, out=ratio, where=jobs.steps > 0)
        return ratio

    def rate_per_cost(self) -> float:
        """Σ_c share·(Σ_j rate)/cost."""
        members = self.p.members
        at = members.configuration
        return math.fsum((self.plan.share[at] * members.rate / self.p.configurations.cost[at]).tolist())

    def nash(self) -> float:
        """Sum Σ weight·ln rate over the jobs of the plan."""
        if (self.rate <= 0).any():
            return -math.inf
        return math.fsum((self.p.jobs.weight * np.log(self.rate)).tolist())

    def harmonic(self) -> float:
        """Sum Σ weight·fair_rate/rate over the jobs."""
        return math.fsum(_over(self.p.jobs.weight * self.p.jobs.fair_rate, self.rate).tolist())

    def cost(self) -> float:
        """Sum Σ cost·share over the configurations."""
        return math.fsum((self.p.configurations.cost * self.plan.share).tolist())

    def hierarchical(self) -> float:
        """The smallest rate/(weight·fair_rate) among the jobs that the first level serves."""
        weight = first_weights(self.p)
        served = weight > 0
        return float((self.rate[served] / (weight[served] * self.p.jobs.fair_rate[served])).min())

    def metrics(self) -> dict[str, float]:
        """Figures for people; those that need the jobs' steps only where a job states some and all of those run."""
        jobs = self.p.jobs
        figures = {
            "least_normalised_rate": self.max_min(),
            "total_rate": math.fsum(self.rate.tolist()),
            "total_cost": self.cost(),
            "jobs_running": float(np.count_nonzero(self.running)),
        }
        known = jobs.steps > 0
        if known.any() and self.running[known].all():
            figures["makespan_s"] = float((jobs.steps[known] / self.rate[known]).max())
            figures["worst_finish_time_ratio"] = float(np.nanmax(self.finish_time_ratio))
        return figures


def first_weights(problem: ResourceAllocation) -> Floats:
    """[J] the weight of each job in the first level of water filling over groups; 0 for a job that waits."""
    jobs, groups = problem.jobs, problem.groups
    weight = np.zeros(len(jobs))
    for group in range(len(groups)):
        members = np.flatnonzero(jobs.group == group)
        if not len(members):
            continue
        if problem.fifo:
            weight[members[np.argmin(jobs.submitted_s[members])]] = groups.weight[group]
        else:
            weight[members] = groups.weight[group] * jobs.weight[members] / jobs.weight[members].sum()
    return weight


def _over(amount: Floats, rate: Floats) -> Floats:
    """amount/rate, infinite where the rate is 0."""
    found = np.full(len(rate), np.inf)
    np.divide(amount, rate, out=found, where=rate > 0)
    return found
