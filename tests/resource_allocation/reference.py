"""Reference answers of small instances: every choice of whole shares, and fractional ones by SciPy on matrices."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from mast_opt.problems.resource_allocation import ResourceAllocation

Floats = NDArray[np.float64]
SLACK = 1e-9


class Dense:
    """The limits of an instance as ``upper @ share ≤ limit``, and its rates as ``rate @ share``."""

    def __init__(self, problem: ResourceAllocation) -> None:
        p = self.p = problem
        shape = len(p.configurations)
        self.rate, self.time = np.zeros((len(p.jobs), shape)), np.zeros((len(p.jobs), shape))
        use = np.zeros((len(p.resources), shape))
        for c, j, rate in zip(p.members.configuration, p.members.job, p.members.rate, strict=True):
            self.rate[j, c], self.time[j, c] = rate, 1.0
        for c, k, amount in zip(p.uses.configuration, p.uses.resource, p.uses.amount, strict=True):
            use[k, c] = amount
        groups = np.array([self.rate[p.jobs.group == g].sum(axis=0) for g in range(len(p.groups))])
        rows = [self.time, use, -self.rate, -groups.reshape(-1, shape), -self.time[p.jobs.required]]
        limits = [np.ones(len(p.jobs)), p.resources.amount, -p.jobs.min_rate, -p.groups.min_rate]
        self.upper = np.concatenate(rows)
        self.limit = np.concatenate([*limits, -np.ones(int(p.jobs.required.sum()))])

    def best(
        self, gain: Floats, rows: Floats | None = None, limits: Floats | None = None
    ) -> tuple[float, Floats] | None:
        """The largest gain @ x and x = shares, then further columns from −∞; None where there is none.

        ``rows``, ``limits``: further ones, over all columns.
        """
        more = len(gain) - len(self.p.configurations)
        upper = np.concatenate([self.upper, np.zeros((len(self.upper), more))], axis=1)
        if rows is not None and limits is not None:
            upper, limit = np.concatenate([upper, rows]), np.concatenate([self.limit, limits])
        else:
            limit = self.limit
        bounds = [(0, 1)] * (len(gain) - more) + [(None, None)] * more
        found = linprog(-gain, A_ub=upper, b_ub=limit, bounds=bounds, method="highs")
        return None if found.status == 2 else (-found.fun, found.x)

    def level(self, slope: Floats, held: Floats) -> float:
        """The largest t with rate ≥ held + slope·t; −∞ where the floors cannot be kept."""
        gain = np.append(np.zeros(self.rate.shape[1]), 1.0)
        found = self.best(gain, np.concatenate([-self.rate, slope[:, None]], axis=1), -held)
        return -math.inf if found is None else found[0]

    def most(self, job: int, least: Floats) -> float:
        """The largest rate of a job while every job has at least these."""
        found = self.best(self.rate[job], -self.rate, -least)
        assert found is not None
        return found[0]


def utilities(problem: ResourceAllocation, rate: Floats) -> Floats:
    """[J] what leximin compares jobs by: normalised rates, or inverse times and ratios; 0 for a job that waits."""
    jobs, policy = problem.jobs, problem.objective.policy
    if policy == "max-min":
        return np.asarray(rate / jobs.weight / jobs.fair_rate)
    if policy == "makespan":
        return np.asarray(rate / jobs.steps)
    with np.errstate(divide="ignore"):
        alone = jobs.fair_elapsed_s + jobs.steps / jobs.fair_rate
        return np.asarray(alone / (jobs.elapsed_s + jobs.steps / rate))


def can_have_more(problem: ResourceAllocation, rate: Floats) -> list[int]:
    """The jobs that could have more although no job which is no better off loses: none where rates are leximin."""
    dense, utility = Dense(problem), utilities(problem, rate)
    found = []
    for job in range(len(rate)):
        guarded = utility <= utility[job] * (1 + 1e-6) + 1e-12
        guarded[job] = False
        if dense.most(job, np.where(guarded, rate * (1 - SLACK), 0.0)) > rate[job] * (1 + 1e-5) + 1e-7:
            found.append(job)
    return found


def filled_rates(problem: ResourceAllocation) -> Floats:
    """[J] the rates of water filling over groups: after each level, a program for each job says if it can have more."""
    dense, jobs, groups = Dense(problem), problem.jobs, problem.groups
    held, done = np.zeros(len(jobs)), np.zeros(len(jobs), np.bool_)
    while not done.all():
        slope = np.zeros(len(jobs))
        for group in range(len(groups)):
            left = np.flatnonzero((jobs.group == group) & ~done)
            if problem.fifo:
                left = left[np.argsort(jobs.submitted_s[left], kind="stable")][:1]
            part = groups.weight[group] * jobs.weight[left] / jobs.weight[left].sum()
            slope[left] = (groups.weight[group] if problem.fifo else part) * jobs.fair_rate[left]
        held = held + slope * max(dense.level(slope, held * (1 - SLACK)), 0.0)
        for job in np.flatnonzero(slope > 0).tolist():
            done[job] = dense.most(job, held * (1 - 1e-8)) <= held[job] * (1 + 1e-4) + 1e-6
        assert done[slope > 0].any()
    return held


def least_level(problem: ResourceAllocation, worst: bool) -> float:
    """The smallest makespan (or finish-time ratio) by bisection over programs that ask whether it can be reached."""
    dense, jobs = Dense(problem), problem.jobs
    fair = jobs.fair_elapsed_s + jobs.steps / jobs.fair_rate

    def possible(value: float) -> bool:
        left = value * fair - jobs.elapsed_s if worst else np.full(len(jobs), value)
        if (left <= 0).any():
            return False
        return dense.level(jobs.steps / left, np.zeros(len(jobs))) >= 1

    low, high = 0.0, 1.0
    while not possible(high):
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if possible(middle) else (middle, high)
    return high


def every_choice(problem: ResourceAllocation) -> list[Floats]:
    """Rates and cost of every feasible choice of whole shares, as the shares."""
    dense = Dense(problem)
    options = [np.flatnonzero(dense.time[j]).tolist() for j in range(len(problem.jobs))]
    found: dict[tuple[int, ...], Floats] = {}
    for picked in itertools.product(*([None, *own] for own in options)):
        chosen = tuple(sorted({c for c in picked if c is not None}))
        share = np.zeros(len(problem.configurations))
        share[list(chosen)] = 1.0
        if (dense.upper @ share <= dense.limit + SLACK).all():
            found[chosen] = share
    return list(found.values())


def value_of(problem: ResourceAllocation, share: Floats) -> float:
    """The policy's value, written a third time; not finite where a job that has to run does not."""
    jobs, policy = problem.jobs, problem.objective.policy
    rate = Dense(problem).rate @ share
    with np.errstate(divide="ignore"):
        if policy == "total-rate":
            return float(jobs.weight @ rate)
        if policy == "max-min":
            return float(np.min(rate / jobs.weight / jobs.fair_rate))
        if policy == "makespan":
            return float(np.max(jobs.steps / rate))
        if policy == "finish-time-fairness":
            fair = jobs.fair_elapsed_s + jobs.steps / jobs.fair_rate
            return float(np.max((jobs.elapsed_s + jobs.steps / rate) / fair))
        if policy == "rate-per-cost":
            return float((Dense(problem).rate.sum(axis=0) / problem.configurations.cost) @ share)
        if policy == "nash":
            return float(jobs.weight @ np.log(rate))
        if policy == "harmonic":
            return float((jobs.weight * jobs.fair_rate) @ (1 / rate))
    assert policy == "cost"
    return float(problem.configurations.cost @ share)
