"""Generated jobs of several parts (job placement): trainers, and CPU servers that prepare their input.

The shape of the second part is an assumption, not taken from a trace: a task of 8 cores and 32 GiB for every two GPUs
of the trainers. It may be anywhere in their region.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.problems.job_placement.entities import MultipartJobs, Options, Parts, Reads
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CLUSTER, REGION, WHOLE, Bools, Ints

GPUS_A_READER, READER_MCORES, READER_MIB = 2, 8_000, 32 * 1024
"""GPUs that a task of the second part serves, and what it needs."""
NAMES = ("trainers", "readers")


def with_cpu_parts(rng: np.random.Generator, problem: JobPlacement, percent: int) -> JobPlacement:
    """The problem (without costs and quotas) in which about so many percent of the pending jobs that take whole GPUs
    have a part of CPU servers too; with 0, nothing is drawn."""
    if not percent:
        return problem
    p, jobs = problem, problem.jobs
    gpus = p.need_mgpu.max(axis=1) // WHOLE * jobs.tasks
    chosen = (rng.random(len(jobs)) < percent / 100) & (gpus > 0)
    row = np.repeat(np.arange(len(jobs)), 1 + chosen)
    readers = np.diff(row, prepend=-1) == 0
    part = readers | np.append(readers[1:], False)
    names = [NAMES[second] for second in readers[part].astype(int).tolist()]
    labels = [jobs.labels[j] for j in row.tolist()]
    for number, name in zip(np.flatnonzero(part).tolist(), names):
        labels[number] += f"/{name}"
    whole = np.cumsum(chosen)[row] - 1
    first = np.flatnonzero(~readers)
    kinds = np.arange(len(p.gpu_types))
    at, kind = (axis.ravel() for axis in np.meshgrid(np.flatnonzero(readers), kinds, indexing="ij"))
    return replace(
        p,
        jobs=replace(
            jobs,
            labels=tuple(labels),
            value_milli=np.where(readers, 0, jobs.value_milli[row]),
            tasks=np.where(readers, -(-gpus[row] // GPUS_A_READER), jobs.tasks[row]),
            cpu_mcores=np.where(readers, READER_MCORES, jobs.cpu_mcores[row]),
            memory_mib=np.where(readers, READER_MIB, jobs.memory_mib[row]),
            within=np.where(readers, CLUSTER, jobs.within[row]),
            **{name: getattr(jobs, name)[row] for name in ("tier", "prefer", "tenant", "credit_milli", "submitted_ms")},
        ),
        options=Options(
            *_by_job(
                np.concatenate([first[p.options.job], at]),
                np.concatenate([p.options.gpu_type, kind]),
                np.concatenate([p.options.mgpu, np.zeros(len(at), np.int64)]),
            )
        ),
        reads=_with_same_reads(p, first, chosen),
        multipart_jobs=MultipartJobs(
            tuple(jobs.labels[j] for j in np.flatnonzero(chosen).tolist()), np.full(chosen.sum(), REGION)
        ),
        parts=Parts(tuple(names), np.flatnonzero(part), whole[part]),
    )


def _with_same_reads(problem: JobPlacement, first: Ints, chosen: Bools) -> Reads:
    """Reads of all rows; the volume stands with the first part."""
    reads = problem.reads
    again = np.flatnonzero(chosen[reads.job])
    return Reads(
        *_by_job(
            np.concatenate([first[reads.job], first[reads.job[again]] + 1]),
            np.concatenate([reads.dataset, reads.dataset[again]]),
            np.concatenate([reads.mb_per_day, np.zeros(len(again), np.int64)]),
        )
    )


def _by_job(*columns: Ints) -> list[Ints]:
    """The columns of a relation, sorted by the first."""
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]
