"""Utility of a job's rate, by which the policies that raise the worst-off job compare jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.kind.problem_data import Floats, Ints
from mast_opt.problems.resource_allocation.policies import FINISH_TIME, MAKESPAN, MAX_MIN
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

LEXIMIN = (MAX_MIN, MAKESPAN, FINISH_TIME)
"""Policies that raise the smallest utility, then the next smallest, and so on."""


@dataclass(frozen=True, eq=False)
class Utility:
    """fair·rate/(work + elapsed·rate), which is 0 for a job that does not run and rises with the rate.

    Under ``max-min`` that is the normalised rate; under ``makespan`` and ``finish-time-fairness`` the inverse of the
    time, or of the ratio, that is to be small.
    """

    work: Floats
    """Work left of each job, [J]."""
    elapsed: Floats
    """Elapsed time of each job, [J]."""
    fair: Floats
    """Fair elapsed time of each job, [J]."""

    @classmethod
    def of(cls, problem: ResourceAllocation) -> Utility:
        """The utility of one of the policies in ``LEXIMIN``."""
        jobs, policy = problem.jobs, problem.objective.policy
        if policy == FINISH_TIME:
            return cls(jobs.steps, jobs.elapsed_s, problem.fair_finish_s)
        work = jobs.steps if policy == MAKESPAN else problem.normal_rate
        return cls(work, np.zeros(len(jobs)), np.ones(len(jobs)))

    def of_rates(self, rate: Floats, jobs: Ints | slice = slice(None)) -> Floats:
        """The utilities of rates, one for each job, or for each of these jobs."""
        utility: Floats = self.fair[jobs] * rate / (self.work[jobs] + self.elapsed[jobs] * rate)
        return utility

    def rates(self, utility: float) -> Floats:
        """[J] the rates that give every job this utility; infinite where no rate does."""
        left = self.fair - utility * self.elapsed
        rates: Floats = np.divide(utility * self.work, left, out=np.full(len(left), np.inf), where=left > 0)
        return rates
