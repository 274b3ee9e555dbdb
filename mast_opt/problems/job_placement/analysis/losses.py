"""Loss of a region in job placement: data of which no replica is left, and the jobs that read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Bools
from mast_opt.problems.kind.analysis_hooks import Loss


def settle_loss(
    problem: JobPlacement, scenario: JobPlacement, changes: Mapping[str, Any], plan: Plan | None
) -> tuple[JobPlacement, Loss]:
    """The scenario, unchanged, and the data and jobs that its lost regions take with them.

    Plans of jobs move no data, so the replicas are today's whatever the plan. Datasets have no sizes here.
    """
    if "lose_regions" not in changes:
        return scenario, Loss(tb=None, noun="job")
    lost: Bools = (problem.datasets.stored.sum(axis=1) > 0) & (scenario.datasets.stored.sum(axis=1) == 0)
    readers = np.unique(problem.reads.job[lost[problem.reads.dataset]])
    datasets = tuple(problem.datasets.labels[i] for i in np.flatnonzero(lost).tolist())
    worth = scenario.tier_weight[scenario.queue_tier] * scenario.jobs.value_milli
    never = worth.any() and not scenario.remote_reads
    share = float(worth[readers].sum() / worth.sum()) if never else 0.0
    names = tuple(problem.jobs.labels[j] for j in readers.tolist())
    return scenario, Loss(datasets, None, names, "job", {"rejected": share})
