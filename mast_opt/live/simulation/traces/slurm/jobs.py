"""Jobs from rows of Slurm's accounting: a job that was requeued or resized has a row for each part of its life."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.live.simulation.traces.slurm.records import SHARED, SacctRow, Stage, gpu_types_in, gpus_in
from mast_opt.planner.importers.notices import warn
from mast_opt.planner.io.faults import Faults

HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class SacctJob:
    """A job with all of its rows, in order of time."""

    name: str
    rows: tuple[SacctRow, ...]

    @property
    def ran(self) -> tuple[SacctRow, ...]:
        """Rows of a Slurm job that held something and are over."""
        return tuple(row for row in self.rows if row.ran)

    @property
    def first(self) -> SacctRow:
        """The row of a Slurm job whose size and owner are the job's: the first that ran, else the first."""
        return next(iter(self.ran), self.rows[0])

    @property
    def submitted_s(self) -> int:
        """Time of a Slurm job's submission: the accounting moves a requeued job's submission to the requeue."""
        return min(row.submitted_s for row in self.rows)

    @property
    def interrupted(self) -> bool:
        """Whether the file does not say how a Slurm job ended."""
        return self.rows[-1].stage in (Stage.INTERRUPTED, Stage.GOING)

    def needs(self, *, asked: bool) -> Mapping[str, int]:
        """Resources that a Slurm job held at first, or that it asked for."""
        return self.first.requested if asked else self.first.allocated

    def duration_ms(self, *, asked: bool) -> int:
        """Time for which a Slurm job would have its first size, so that its GPU time (or its CPU time, without GPUs) is
        that of all its rows together; at least a second.
        """
        size = self._size(self.first, asked)
        work = sum(self._size(row, asked) * row.elapsed_s for row in self.ran)
        return max(MILLI, -(-work * MILLI // size))

    def limit_ms(self, limits: Mapping[str, int], *, asked: bool) -> int:
        """Time limit of a Slurm job, or that of its partition; -1 for none. Slurm ends jobs somewhat later than their
        limits say: a job that ran for longer has the limit that it kept.
        """
        limit_s = self.first.limit_s or limits.get(self.first.partition)
        return -1 if limit_s is None else max(limit_s * MILLI, self.duration_ms(asked=asked))

    def _size(self, row: SacctRow, asked: bool) -> int:
        """GPUs of a Slurm job's row where the job has any at first; else its processors."""
        read = gpus_in if gpus_in(self.needs(asked=asked)) else _processors
        return read(row.requested if asked else row.allocated)


def _processors(resources: Mapping[str, int]) -> int:
    """Processors of a Slurm row, at least 1."""
    return max(1, resources.get("cpu", 0))


def jobs_of(rows: Sequence[SacctRow], file: str, faults: Faults) -> list[SacctJob]:
    """The jobs of Slurm's accounting, in order of their first rows; faults for rows that cannot be of one job, warnings
    for what is odd.
    """
    by_name: dict[str, list[SacctRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    jobs: list[SacctJob] = []
    again: list[str] = []
    for name, found in by_name.items():
        order = sorted(found, key=lambda row: (row.submitted_s, row.ended_s is None, row.ended_s or 0))
        lives = list(_lives(order))
        again += [name] * (len(lives) > 1)
        for at, life in enumerate(lives):
            _check_rows(life, file, faults)
            jobs.append(SacctJob(name if not at else f"{name}~{at + 1}", tuple(life)))
    if not faults:
        _warn(jobs, again, file)
    return jobs


def _lives(rows: Sequence[SacctRow]) -> Iterable[list[SacctRow]]:
    """Rows of the same Slurm job; Slurm uses a number again when it has used up all of them."""
    life: list[SacctRow] = []
    for row in rows:
        if life and life[-1].stage is Stage.ENDED and row.submitted_s >= (life[-1].ended_s or 0):
            yield life
            life = []
        life.append(row)
    yield life


def _check_rows(life: Sequence[SacctRow], file: str, faults: Faults) -> None:
    """Note faults where rows of Slurm's accounting have a job run twice at a time."""
    ran = sorted((row for row in life if row.ran), key=lambda row: row.ended_s or 0)
    wrong = [
        later.row
        for one, later in pairwise(ran)
        if (one.submitted_s, one.ended_s) == (later.submitted_s, later.ended_s)
        or (later.ended_s or 0) - later.elapsed_s < (one.ended_s or 0) - HOUR_S  # clocks may have gone back
    ]
    expected = "runs of a job one after the other; another row of this job overlaps it, or is the same row again"
    faults.cells(file, "JobID", np.array(wrong, np.int64), lambda n: life[0].name, expected)


def _warn(jobs: Sequence[SacctJob], again: Sequence[str], file: str) -> None:
    """Warn of odd rows in Slurm's accounting: numbers used again, requeued or interrupted jobs, shares of GPUs."""
    say = partial(_say, file)
    say("JobID", "this number is used again for another job, which is called NUMBER~2", again)
    say(
        "JobID",
        "this job was requeued or resized: its rows are one job of the first size, with the GPU time of all of them",
        [job.name for job in jobs if len(job.ran) > 1],
    )
    say(
        "State",
        "this job was interrupted (requeued, preempted, failure of a node), and how it went on is not in the file: it"
        " counts with the time that it ran",
        [job.name for job in jobs if job.ran and job.interrupted],
        "sacct --duplicates lists all runs of a job",
    )
    say(
        "Restarts",
        "this job was requeued more often than it has rows",
        [job.name for job in jobs if max(row.restarts for row in job.rows) >= len(job.rows)],
        "sacct --duplicates lists all runs of a job",
    )
    parts = dict.fromkeys(job.name.rpartition("+")[0] for job in jobs if "+" in job.name and job.ran)
    say("JobID", "the components of this heterogeneous job are separate jobs, which may start at other times", [*parts])
    shared = [job.name for job in jobs if any(name.startswith(SHARED) for row in job.ran for name in row.allocated)]
    say("AllocTRES", "this job held shares of GPUs (gres/shard, gres/mps), which are not read", shared)
    if all(row.stage is None for job in jobs for row in job.rows):
        words = "without states, a run that was interrupted cannot be known from a job that ended"
        warn(file, words, suggestion="add State to --format")
    _warn_of_clocks(jobs, file)


def _warn_of_clocks(jobs: Sequence[SacctJob], file: str) -> None:
    """Warn of times in Slurm's accounting by a local clock that was set back, or forward: they contradict how long a
    job ran.
    """
    back, forward = [], []
    for job in jobs:
        for row in job.ran:
            ended = row.ended_s or 0
            since = row.submitted_s if row.started_s is None else max(row.started_s, row.submitted_s)
            if ended - since < row.elapsed_s:
                back.append(job.name)
            elif row.started_s is not None and ended - since - row.elapsed_s == HOUR_S:
                forward.append(job.name)
    advice = "print times with an offset or as seconds: SLURM_TIME_FORMAT=%s sacct …"
    words = "the clock went back while this job waited or ran: Elapsed is longer than the time from {} to End"
    first = "Start" if any(row.started_s is not None for job in jobs for row in job.rows) else "Submit"
    _say(file, "End", words.format(first) + "; its place among the others may be wrong", back, advice)
    _say(
        file,
        "End",
        "the clock went forward while this job ran, or it was suspended for an hour: End − Start − Elapsed is 1 h",
        forward,
        advice,
    )


def warn_of_sizes(jobs: Sequence[SacctJob], file: str, *, asked: bool) -> None:
    """Warn of Slurm jobs that held more GPUs than they asked for, and of those that need several types at once."""
    sizes = [
        (job.name, gpus_in(job.first.requested), gpus_in(job.first.allocated)) for job in jobs if job.first.requested
    ]
    more = [f"{name}: {wanted} asked, {held} held" for name, wanted, held in sizes if held > wanted]
    if more and not asked:
        words = "this job held more GPUs than it asked for (--exclusive, whole nodes); what it held counts"
        warn(file, words, column="AllocTRES", values=more, suggestion="--needs asked takes what jobs asked for")
    mixed = [job.name for job in jobs if len(gpu_types_in(job.first.requested)) > 1]
    words = "this job asked for GPUs of several types at once: it becomes single GPUs, each of any of these types"
    _say(file, "ReqTRES", words, mixed)


def _say(file: str, column: str, message: str, names: Sequence[str], suggestion: str = "") -> None:
    """Warn of these jobs in Slurm's accounting, if there are any."""
    if names:
        warn(file, message, column=column, values=list(dict.fromkeys(names)), suggestion=suggestion)
