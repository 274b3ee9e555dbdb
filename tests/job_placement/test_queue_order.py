"""Queue order and quotas: as their definition says, job by job."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.problems.job_placement.queue_order import Quotas, quota_tiers, rank
from mast_opt.problems.job_placement.units import Bools, Ints

LOWEST = 9


def by_definition(
    order: Ints, tenant: Ints, asked: Ints, accepts: Bools, used: Ints, quotas: Quotas, first_part: Ints
) -> set[int]:
    """The rows that are over their tenant's quotas."""
    used, over = used.copy(), set[int]()
    for j in order.tolist():
        parts = np.flatnonzero(first_part == j).tolist()
        after = used[tenant[j]].copy()
        total, typed = quotas.total_mgpu[tenant[j]], quotas.typed_mgpu[tenant[j]]
        for part in parts:
            held = [
                kind
                for kind in np.flatnonzero(accepts[part]).tolist()
                if (typed[kind] < 0 or after[kind] + asked[part, kind] <= typed[kind])
                and (total < 0 or after.sum() + asked[part, kind] <= total)
            ]
            if not held:
                over.update(parts)
                break
            after[held[0]] += asked[part, held[0]]
        else:
            used[tenant[j]] = after
    return over


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_quotas_hold_jobs_in_queue_order(seed: int, parts: bool) -> None:
    rng = np.random.default_rng(seed)
    jobs, tenants, types = 120, 6, 3
    first_part = np.arange(jobs)
    if parts:
        first_part = np.maximum.accumulate(np.where(rng.random(jobs) < 0.6, np.arange(jobs), 0))
    tenant = rng.integers(tenants, size=jobs)[first_part]
    accepts = rng.random((jobs, types)) < 0.5
    accepts[np.arange(jobs), rng.integers(types, size=jobs)] = True
    asked = np.where(accepts, rng.integers(0, 5, size=(jobs, types)), 0)
    used = rng.integers(4, size=(tenants, types))
    total, typed = rng.integers(-10, 60, size=tenants), rng.integers(-15, 30, size=(tenants, types))
    quotas = Quotas(np.maximum(total, -1), np.maximum(typed, -1))
    tier = rng.integers(3, size=jobs)[first_part]
    order = rank(tier, rng.integers(5, size=jobs), rng.integers(50, size=jobs))
    job, kind = np.nonzero(accepts)
    options = job.astype(np.int64), kind.astype(np.int64)
    after = quota_tiers(tier, order, tenant, asked, options, used, quotas, LOWEST, first_part)
    over = by_definition(order, tenant, asked, accepts, used, quotas, first_part)
    assert set(np.flatnonzero(after == LOWEST).tolist()) == over
    assert (after[after != LOWEST] == tier[after != LOWEST]).all()
    assert 0 < len(over) < jobs


def test_without_quotas_every_job_keeps_its_tier() -> None:
    tier, jobs = np.array([2, 0, 1]), np.arange(3)
    none = Quotas(np.array([-1]), np.array([[-1]]))
    asked, used = np.full((3, 1), 1000), np.zeros((1, 1), np.int64)
    options = jobs, np.zeros(3, np.int64)
    assert (quota_tiers(tier, jobs, np.zeros(3, np.int64), asked, options, used, none, LOWEST, jobs) == tier).all()
