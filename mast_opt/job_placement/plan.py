"""A job-placement plan: which tasks go to which server, and which running jobs make room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.problem import JobPlacement, _freeze
from mast_opt.job_placement.units import Bools, Ints


@dataclass(frozen=True, eq=False)
class Plan:
    """The decisions. A job that occurs in no row is not admitted."""

    job: Ints
    """[·] ascending; one row per (job, server), or per (job, server, device) for fractions of a GPU."""
    server: Ints
    tasks: Ints
    """[·] how many of the job's tasks; all rows of a job together have all of them."""
    gpu_index: Ints
    """[·] the first device of the row; meaningful where ``indexed``."""
    indexed: Bools
    """[·] True for fractions of a GPU, which share the named device. Whole GPUs need no index."""
    preempt: Bools
    """[V] which running jobs are stopped."""

    def __post_init__(self) -> None:
        _freeze(self)


def empty(problem: JobPlacement) -> Plan:
    """The plan that admits nothing and stops nothing; it breaks no rule."""
    none = np.zeros(0, np.int64)
    return Plan(none, none, none, none, np.zeros(0, np.bool_), np.zeros(len(problem.running), np.bool_))
