"""Nash welfare and the harmonic mean of speedups, by linear programs with tangents (Kelley's cutting planes).

Each job's value is a concave function of its own rate, so tangents at a few rates enclose it; every round adds one at
the rate of each job. The prices of the rates prove a bound that is at least as good as that of the program: for
example Σ w·ln r ≤ Σ w·(ln(w/p) − 1) + max Σ p·r, for every p > 0.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mast_opt.problems.kind.problem_data import Floats, Ints
from mast_opt.problems.resource_allocation.formulation.program import OBJECTIVE, AllocationProgram
from mast_opt.problems.resource_allocation.methods.columns import Columns
from mast_opt.problems.resource_allocation.methods.incumbent import Incumbent
from mast_opt.problems.resource_allocation.methods.levels import one_level
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.solves import Stopped
from mast_opt.problems.resource_allocation.plan import job_rates
from mast_opt.problems.resource_allocation.policies import NASH
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

APART = 1e-9
"""Tangents closer together than this, relative to the rate, are one."""


def concave(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent, params: AllocationParams) -> str:
    """Iterate until objective and bound agree; returns what stopped it, or nothing."""
    jobs = len(problem.jobs)
    level, found = one_level(columns, problem.jobs.fair_rate)
    best = incumbent.offer(found.share).share
    if level <= 0:
        return ""
    most = np.zeros(jobs)
    np.maximum.at(most, problem.members.job, problem.members.rate)
    parts = np.geomspace(params.least_tangent, 1.0, params.first_tangents)
    at_job, at_part = np.repeat(np.arange(jobs), len(parts)), np.tile(parts, jobs)
    at_job, at_part = _with(at_job, at_part, job_rates(problem, best) / most)
    for _ in range(params.most_rounds):
        nash = problem.objective.policy == NASH
        tangents = partial(_tangents, at_job, at_part, most)
        try:
            found = columns.solve(tangents, maximise=nash, block="progress", unit=most)
        except Stopped as stopped:
            return f"a limit stopped the iteration: {stopped}"
        incumbent.prove(found.prices)
        best = _on_segment(problem, best, found.share)
        incumbent.offer(best)
        if incumbent.gap() <= params.iteration_gap:
            return ""
        before = len(at_job)
        at_job, at_part = _with(at_job, at_part, job_rates(problem, found.share) / most)
        at_job, at_part = _with(at_job, at_part, job_rates(problem, best) / most)
        if len(at_job) == before:
            return "the tangents can no longer be distinguished"
    return f"the iteration took {params.most_rounds} rounds (most_rounds)"


def _tangents(job: Ints, part: Floats, most: Floats, problem: ResourceAllocation, program: AllocationProgram) -> None:
    """Values of the jobs' rates under tangents; for ``harmonic``, costs above them.

    Rates are parts of each job's largest one, so that a program does not depend on the unit in which a job counts its
    steps. The objective of ``nash`` is then less by a constant.
    """
    m, jobs = program.m, problem.jobs
    rates = program.rates(most)
    value = m.columns("value", [jobs.labels], lower=-np.inf)
    labels = tuple(str(at) for at in range(len(job)))
    if problem.objective.policy == NASH:
        tangent = m.rows("tangent", [labels], upper=np.log(part) - 1.0)
        tangent.add(np.arange(len(job)), rates[job], -1.0 / part)
        m.term(OBJECTIVE, value, jobs.weight)
    else:
        tangent = m.rows("tangent", [labels], lower=2.0 / part)
        tangent.add(np.arange(len(job)), rates[job], 1.0 / part**2)
        m.term(OBJECTIVE, value, problem.normal_rate / most)
    tangent.add(np.arange(len(job)), value[job])


def _with(job: Ints, rate: Floats, more: Floats) -> tuple[Ints, Floats]:
    """The tangents, and behind them one at each of these rates [J] that is above 0 and not there yet."""
    close = np.abs(rate - more[job]) <= APART * more[job]
    new = np.flatnonzero((more > 0) & (np.bincount(job, close, minlength=len(more)) == 0))
    return np.append(job, new), np.append(rate, more[new])


def _on_segment(problem: ResourceAllocation, one: Floats, other: Floats) -> Floats:
    """The best shares between two, by bisection on the derivative: the objective is concave."""
    start, end = job_rates(problem, one), job_rates(problem, other)
    step = end - start
    nash = problem.objective.policy == NASH

    def slope(part: float) -> float:
        rate = start + part * step
        if (rate <= 0).any():
            return -np.inf
        if nash:
            return float((problem.jobs.weight * step / rate).sum())
        return float((problem.normal_rate * step / rate**2).sum())

    low, high = 0.0, 1.0
    if slope(1.0) >= 0:
        return other
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return one + low * (other - one)
