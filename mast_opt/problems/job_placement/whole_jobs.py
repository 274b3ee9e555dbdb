"""Jobs as they were submitted (job placement): those without parts, and those of several parts, in one list."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Bools, Ints


@dataclass(frozen=True, eq=False)
class WholeJobs:
    """The jobs that the rows of a problem make, as the table ``jobs`` lists them."""

    problem: JobPlacement

    @cached_property
    def first(self) -> Ints:
        """First row of each whole job, [jobs]."""
        return np.flatnonzero(self.problem.counts_once)

    @cached_property
    def of(self) -> Ints:
        """Whole job of each row, [rows]."""
        return np.cumsum(self.problem.counts_once) - 1

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the whole jobs, [jobs]."""
        p = self.problem
        if not len(p.parts):
            return p.jobs.labels
        names = list(p.jobs.labels)
        for row, whole in zip(p.parts.job.tolist(), p.parts.whole.tolist()):
            names[row] = p.multipart_jobs.labels[whole]
        return tuple(names[row] for row in self.first.tolist())

    @cached_property
    def has_parts(self) -> Bools:
        """Mask [rows] of the parts of jobs."""
        found = np.zeros(len(self.problem.jobs), np.bool_)
        found[self.problem.parts.job] = True
        return found

    @cached_property
    def part_names(self) -> tuple[str, ...]:
        """The axis of parts, of pending and of running jobs: each name once."""
        return tuple(dict.fromkeys((*self.problem.parts.labels, *self.problem.part_names)))

    @cached_property
    def part(self) -> Ints:
        """[rows] position in ``part_names``; 0 where the job has no parts."""
        number = {name: at for at, name in enumerate(self.part_names)}
        found = np.zeros(len(self.problem.jobs), np.int64)
        found[self.problem.parts.job] = [number[name] for name in self.problem.parts.labels]
        return found

    def row_of(self, job: Ints, part: Ints) -> Ints:
        """[·] the row of each job and part (−1 for none); −1 where there is no such row."""
        if not len(self.problem.parts):
            return np.where(part < 0, job, -1)
        own = np.where(self.has_parts, self.part, -1)
        found = {pair: row for row, pair in enumerate(zip(self.of.tolist(), own.tolist()))}
        return np.array([found.get(pair, -1) for pair in zip(job.tolist(), part.tolist())], np.int64)

    @cached_property
    def within(self) -> Ints:
        """[jobs] the level of the whole job."""
        p = self.problem
        found = p.jobs.within.copy()
        found[p.parts.job] = p.multipart_jobs.within[p.parts.whole]
        return found[self.first]
