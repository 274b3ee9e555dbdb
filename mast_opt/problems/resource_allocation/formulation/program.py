"""Programs of resource allocation: the rows that every policy has, the parts that policies add, and utilities."""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.problems.kind.problem_data import Floats, Ints
from mast_opt.problems.mip import Mip, MipBuilder, RowBlock
from mast_opt.problems.resource_allocation.policies import FINISH_TIME, MAKESPAN, MAX_MIN
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

OBJECTIVE = "objective"
"""The term of a program that states the policy, in the policy's own sense."""


LEXIMIN = (MAX_MIN, MAKESPAN, FINISH_TIME)
"""Policies that raise the smallest utility, then the next smallest, and so on."""


class AllocationProgram:
    """The program under construction: ``share`` columns, limits of jobs, resources and floors.

    The rows keep the names of ``models/resource_allocation.mod``.
    """

    def __init__(self, problem: ResourceAllocation) -> None:
        p = self.p = problem
        m = self.m = MipBuilder(p.name)
        self.share = m.columns("share", [p.configurations.labels], upper=1.0, integral=p.whole)
        members, uses = p.members, p.uses
        one = m.rows("one", [p.jobs.labels], lower=np.where(p.jobs.required, 1.0, -np.inf), upper=1.0)
        one.add(members.job, self.share[members.configuration])
        capacity = m.rows("capacity", [p.resources.labels], upper=p.resources.amount)
        capacity.add(uses.resource, self.share[uses.configuration], uses.amount)
        asking = np.flatnonzero(p.jobs.min_rate > 0)
        floor = m.rows("floor", [p.jobs.labels], [asking], lower=p.jobs.min_rate[asking])
        self.add_rates(floor, asking)
        asking = np.flatnonzero(p.groups.min_rate > 0)
        group_floor = m.rows("group_floor", [p.groups.labels], [asking], lower=p.groups.min_rate[asking])
        row = np.append(_rows_of(asking, len(p.groups)), -1)[p.jobs.group[members.job]]
        there = row >= 0
        group_floor.add(row[there], self.share[members.configuration[there]], members.rate[there])

    def add_rates(self, rows: RowBlock, jobs: Ints, unit: Floats | None = None) -> None:
        """Add Σ_c rate[c,j]·share[c], in units [J] if given, to a block with one row for each of these jobs."""
        members = self.p.members
        row = _rows_of(jobs, len(self.p.jobs))[members.job]
        there = row >= 0
        rate = members.rate[there] if unit is None else members.rate[there] / unit[members.job[there]]
        rows.add(row[there], self.share[members.configuration[there]], rate)

    def level(self, slope: Floats, held: Floats) -> None:
        """A column ``level`` to be maximised: rate[j] ≥ held[j] + slope[j]·level.

        Args:
            slope: [J] ≥ 0; jobs where it and ``held`` are 0 get no row.
            held: [J]
        """
        p = self.p
        level = self.m.columns("level", [])
        jobs = np.flatnonzero((slope > 0) | (held > 0))
        rows = self.m.rows("reach", [p.jobs.labels], [jobs], lower=held[jobs])
        self.add_rates(rows, jobs)
        rising = np.flatnonzero(slope[jobs] > 0)
        rows.add(rising, level, -slope[jobs][rising])
        self.m.term(OBJECTIVE, level)

    def rates(self, unit: Floats) -> IntArray:
        """Columns ``rate`` [J] that are the jobs' rates in units [J] of their own, by rows ``progress``."""
        p = self.p
        rate = self.m.columns("rate", [p.jobs.labels])
        rows = self.m.equals("progress", [p.jobs.labels])
        self.add_rates(rows, np.arange(len(p.jobs)), unit)
        rows.add(np.arange(len(p.jobs)), rate, -1.0)
        return rate

    def linear(self, gain: Floats) -> None:
        """The objective Σ gain·share, gain [C]."""
        self.m.term(OBJECTIVE, self.share, gain)

    def runs(self) -> Ints:
        """Rows ``runs`` of whole shares: each job has one configuration in which it makes progress.

        A job then has the rate of that configuration, so that any function of its rate is linear in the shares.
        Returns the positions in ``members`` of what counts: those with a rate.
        """
        members = self.p.members
        at = np.flatnonzero(members.rate > 0)
        self.m.equals("runs", [self.p.jobs.labels], value=1.0).add(
            members.job[at], self.share[members.configuration[at]]
        )
        return at

    def worst_outcome(self, worth: Floats) -> None:
        """A column ``worst`` to be minimised: at least the worth [M] of the configuration of each job that ``runs``."""
        members, at = self.p.members, self.runs()
        worst = self.m.columns("worst", [])
        rows = self.m.rows("outcome", [self.p.jobs.labels], upper=0.0)
        rows.add(members.job[at], self.share[members.configuration[at]], worth[at])
        rows.add(np.arange(len(self.p.jobs)), worst, -1.0)
        self.m.term(OBJECTIVE, worst)

    def sum_of_outcomes(self, worth: Floats) -> None:
        """The objective Σ_j of the worth [M] of the configuration of each job that ``runs``."""
        at = self.runs()
        self.m.term(OBJECTIVE, self.share[self.p.members.configuration[at]], worth[at])

    def build(self, maximise: bool) -> Mip:
        """The finished allocation program, which minimises the objective or its negative."""
        return self.m.build({OBJECTIVE: -1.0 if maximise else 1.0})


def _rows_of(chosen: Ints, length: int) -> Ints:
    """[length] the row in an allocation program of each chosen position; −1 for the others."""
    row = np.full(length, -1)
    row[chosen] = np.arange(len(chosen))
    return row


def block_values(mip: Mip, name: str, values: Floats, length: int) -> Floats:
    """[length] the values in an allocation program of a block of rows by the position on its only axis; 0 where it has
    no row.
    """
    block = next(block for block in mip.rows if block.name == name)
    found = np.zeros(length)
    at = np.arange(length) if block.cells is None else block.cells[0]
    found[at] = values[block.start : block.start + block.size]
    return found


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
    def of(cls, problem: ResourceAllocation) -> "Utility":
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
