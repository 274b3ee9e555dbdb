"""Generated pending jobs of job placement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.entities import Datasets, Reads
from mast_opt.problems.job_placement.generate.blank import Pending, labels
from mast_opt.problems.job_placement.generate.fleets import SIZE_SHARE, SIZES, TIER_SHARE, TIERS, task_needs
from mast_opt.problems.job_placement.units import CLUSTER, RACK, SERVER, WHOLE, Ints


def pending(rng: np.random.Generator, types: int, gpus: Ints, tier_share: NDArray[np.float64] = TIER_SHARE) -> Pending:
    """Jobs with so many GPUs each; beyond 8 as tasks of 8. Two thirds accept one type, the others any."""
    count = len(gpus)
    tasks = np.where(gpus > 8, gpus // 8, 1)
    mgpu = np.minimum(gpus, 8) * WHOLE
    mcores, mib = task_needs(rng, mgpu)
    choosy = rng.random(count) < 2 / 3
    wanted = rng.integers(types, size=count)
    job, kind = np.nonzero(~choosy[:, None] | (np.arange(types) == wanted[:, None]))
    return Pending(
        tier=rng.choice(TIERS, size=count, p=tier_share),
        tasks=tasks,
        mgpu=mgpu,
        mcores=mcores,
        mib=mib,
        value_milli=tasks * mgpu,
        options=(job, kind),
    )


PHILLY = {1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 16: 199, 32: 67}
"""GPUs of a job → jobs in the Philly trace (CC BY 4.0), up to 32 GPUs and powers of two."""


def sizes(rng: np.random.Generator, count: int, most: int = 64) -> Ints:
    """GPUs of ``count`` jobs: powers of two up to ``most``."""
    share = np.where(most >= SIZES, SIZE_SHARE, 0)
    return rng.choice(SIZES, size=count, p=share / share.sum())


def philly_sizes(rng: np.random.Generator, count: int) -> Ints:
    """GPUs of ``count`` jobs as in the Philly trace: nine in ten ask for one."""
    number = np.array(list(PHILLY.values()), np.float64)
    return rng.choice(np.array(list(PHILLY)), size=count, p=number / number.sum())


def reads(
    rng: np.random.Generator, regions: int, jobs: int, datasets: int, least: float = 0.25
) -> tuple[Datasets, Reads]:
    """Datasets in one to all regions (each in a share between ``least`` and 0.85), and for 60% of the jobs one or two
    that they read."""
    share = rng.uniform(least, 0.85, (datasets, 1))
    stored = rng.random((datasets, regions)) < share
    stored[np.arange(datasets), rng.integers(regions, size=datasets)] = True
    first = rng.integers(datasets, size=jobs)
    step = rng.integers(1, max(datasets, 2), size=jobs)
    second = np.where(rng.random(jobs) < 0.3, (first + step) % datasets, first)
    has = rng.random(jobs) < 0.6
    rows = np.concatenate([np.stack([np.arange(jobs), first], 1)[has], np.stack([np.arange(jobs), second], 1)[has]])
    rows = np.unique(rows, axis=0)
    volume = np.maximum(np.rint(rng.lognormal(np.log(200_000), 1.0, len(rows))), 1).astype(np.int64)
    return Datasets(labels("data", datasets), stored, np.zeros_like(stored)), Reads(rows[:, 0], rows[:, 1], volume)


def levels(rng: np.random.Generator, here: Pending) -> dict[str, Ints]:
    """Some gangs must stay within a rack; some jobs are content with one."""
    draw = rng.random(len(here.tasks))
    within = np.where((draw < 0.15) & (here.tasks <= 4), RACK, CLUSTER)
    return {"within": within, "prefer": np.where(draw > 0.8, RACK, SERVER)}
