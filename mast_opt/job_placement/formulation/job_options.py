"""Where a job could go as a whole: a cluster and a GPU type, as far as empty servers tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.server_classes import jobs_at_once, may_run, server_classes
from mast_opt.job_placement.units import Ints


@dataclass(frozen=True, eq=False)
class Options:
    """The cells of assign[j,c,k]: the job accepts the type, the region is open to it, and some server of the type in
    the cluster has room for a task when it is empty. Sorted by job, cluster, type."""

    job: Ints
    """[o]"""
    cluster: Ints
    """[o]"""
    type: Ints
    """[o]"""
    need: Ints
    """[o, 3] of one task there."""


def options_of(problem: JobPlacement) -> Options:
    """The options of all jobs, counted over classes of equal servers."""
    p, classes = problem, server_classes(problem)
    group, first = np.unique(classes.cluster * len(p.gpu_types) + classes.type, return_index=True)
    parts = []
    for jobs in jobs_at_once(p, classes):
        row, at = np.nonzero(np.logical_or.reduceat(may_run(p, classes, jobs), first, axis=1))
        parts.append((jobs[row], group[at]))
    job, place = (np.concatenate([part[at] for part in parts]) for at in range(2))
    cluster, kind = place // len(p.gpu_types), place % len(p.gpu_types)
    need = np.stack([p.need_mgpu[job, kind], p.cpu_mcores[job], p.memory_mib[job]], axis=1)
    return Options(job, cluster, kind, need)
