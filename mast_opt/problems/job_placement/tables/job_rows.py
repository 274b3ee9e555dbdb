"""Rows of ``jobs`` in a job-placement problem: one for each job without parts, and one for each part of the others."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mast_opt.problems.job_placement.entities import MultipartJobs, Parts
from mast_opt.problems.job_placement.units import Bools, Ints
from mast_opt.problems.kind.schema import Tables


@dataclass(frozen=True, eq=False)
class JobRows:
    """Rows in the order of the table ``jobs``; the parts of a job in their listed order. N counts rows, J jobs."""

    tables: Tables
    job: Ints
    """[N] row of the table ``jobs``."""
    part: Ints
    """[N] row of the table ``job_parts``; -1 for a job without parts."""

    @classmethod
    def of(cls, tables: Tables) -> "JobRows":
        """The rows of jobs and parts that the tables state."""
        whole = tables.get("job_parts", "job")
        alone = np.setdiff1d(np.arange(tables.rows("jobs")), whole)
        job = np.concatenate([alone, whole]).astype(np.int64)
        part = np.concatenate([np.full(len(alone), -1), np.arange(len(whole))])
        order = np.lexsort((part, job))
        return cls(tables, job[order], part[order])

    @cached_property
    def first(self) -> Bools:
        """Mask [N] of the first row of each job."""
        first: Bools = np.diff(self.job, prepend=-1) != 0
        return first

    @cached_property
    def first_row(self) -> Ints:
        """[J] first row of each job of the table ``jobs``."""
        return np.flatnonzero(self.first)

    def column(self, name: str) -> Ints:
        """[N] values of a column: those of the part, or of the job if it has no parts."""
        values: Ints = self.tables.get("jobs", name)[self.job]
        is_part = self.part >= 0
        values[is_part] = self.tables.get("job_parts", name)[self.part[is_part]]
        return values

    def once(self, amount: Ints) -> Ints:
        """[N] amounts [J] of jobs, each in the first row of its job; 0 in other rows."""
        return np.where(self.first, amount[self.job], 0)

    def total(self, amount: Ints) -> Ints:
        """[J] sum of an amount [N] of rows by job."""
        found = np.zeros(len(self.first_row), np.int64)
        np.add.at(found, self.job, amount)
        return found

    def each(self, job: Ints) -> tuple[Ints, Ints]:
        """([m] position in ``job``, [m] row) of all rows of these jobs of the table."""
        number = np.bincount(self.job, minlength=self.tables.rows("jobs"))[job]
        at = np.repeat(np.arange(len(job)), number)
        step = np.arange(len(at)) - np.repeat(np.cumsum(number) - number, number)
        return at, self.first_row[job[at]] + step

    def named(self, table: str) -> Ints:
        """[rows of the table] the row named by the columns job and part of a table; -1 where there is none."""
        job: Ints = self.tables.get(table, "job")
        if not self.tables.rows("job_parts"):
            return np.where(self.tables.has(table, "part"), -1, job)
        found = {(int(j), -1): row for row, j in enumerate(self.job.tolist()) if self.part[row] < 0}
        names = self.tables.get("job_parts", "part")
        for row in np.flatnonzero(self.part >= 0).tolist():
            found[int(self.job[row]), int(names[self.part[row]])] = row
        part = np.where(self.tables.has(table, "part"), self.tables.get(table, "part"), -1)
        return np.array([found.get(pair, -1) for pair in zip(job.tolist(), part.tolist())], np.int64)

    @property
    def labels(self) -> tuple[str, ...]:
        """[N] names of jobs; ``job/part`` for a part."""
        jobs, parts = self.tables.axes["job"], self.tables.axes["part"]
        if not self.tables.rows("job_parts"):
            return jobs
        names = [parts[at] for at in self.tables.get("job_parts", "part").tolist()]
        rows = zip(self.job.tolist(), self.part.tolist())
        return tuple(jobs[j] if part < 0 else f"{jobs[j]}/{names[part]}" for j, part in rows)

    def groups(self) -> tuple[MultipartJobs, Parts]:
        """Jobs of several parts, and their parts."""
        row = np.flatnonzero(self.part >= 0)
        jobs, whole = np.unique(self.job[row], return_inverse=True)
        names, axis = self.tables.axes["part"], self.tables.get("job_parts", "part")[self.part[row]]
        labels = tuple(self.tables.axes["job"][j] for j in jobs.tolist())
        return (
            MultipartJobs(labels, self.tables.get("jobs", "within")[jobs]),
            Parts(tuple(names[at] for at in axis.tolist()), row, whole.reshape(-1).astype(np.int64)),
        )
