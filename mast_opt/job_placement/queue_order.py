"""Queue order of job placement: tier, then credit, then age; over-quota work in the lowest tier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.units import Bools, Ints


def rank(tier: Ints, credit_milli: Ints, submitted_ms: Ints) -> Ints:
    """Positions in queue order: lowest tier number, then most credit, then oldest, then as listed."""
    return np.lexsort((submitted_ms, -credit_milli, tier)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Quotas:
    """How many GPUs each tenant may use before its work drops to the lowest tier; T tenants, K types."""

    total_mgpu: Ints
    """[T] for all types together; −1 where there is no such quota."""
    typed_mgpu: Ints
    """[T, K] on one type; −1 where there is no such quota."""

    @classmethod
    def of(cls, tenants: int, types: int, tenant: Ints, kind: Ints, typed: Bools, mgpu: Ints) -> Quotas:
        """From the rows of the ``quotas`` table."""
        total = np.full(tenants, -1, np.int64)
        total[tenant[~typed]] = mgpu[~typed]
        per_type = np.full((tenants, types), -1, np.int64)
        per_type[tenant[typed], kind[typed]] = mgpu[typed]
        return cls(total, per_type)

    @property
    def limited(self) -> Bools:
        """[T] tenants with any quota."""
        return (self.total_mgpu >= 0) | (self.typed_mgpu >= 0).any(axis=1)

    def type_within(self, tenant: int, used_mgpu: Ints, asked_mgpu: Ints, accepted: Ints) -> int | None:
        """The first accepted type on which the tenant stays within its quotas, or None.

        Args:
            used_mgpu: [K] what the tenant uses already.
            asked_mgpu: [K] what the job asks for on each type.
            accepted: the types that the job accepts, in order.
        """
        total, typed = self.total_mgpu[tenant], self.typed_mgpu[tenant]
        fits = (typed < 0) | (used_mgpu + asked_mgpu <= typed)
        if total >= 0:
            fits &= used_mgpu.sum() + asked_mgpu <= total
        return next((kind for kind in accepted.tolist() if fits[kind]), None)


def quota_tiers(
    tier: Ints,
    order: Ints,
    tenant: Ints,
    asked_mgpu: Ints,
    options: tuple[Ints, Ints],
    used_mgpu: Ints,
    quotas: Quotas,
    lowest: int,
    first_part: Ints,
) -> Ints:
    """[J] the tier of each job after quotas.

    Jobs are taken in queue order. One that its tenant's quotas still hold counts towards them, on the first
    accepted type that they hold it on; one that they do not hold has the tier ``lowest`` and counts nothing. Of a job
    of several parts they hold all, one after another, or none.

    Args:
        asked_mgpu: [J, K].
        options: (job, type) rows, ascending by job; each job's types in its order.
        used_mgpu: [T, K] what running jobs of each tenant use.
        first_part: [J] the first part of the job of each row; parts of a job stand one after another.
    """
    after = tier.copy()
    used = used_mgpu.copy()
    first = np.searchsorted(options[0], np.arange(len(tier) + 1))
    number = np.bincount(first_part, minlength=len(tier))
    for j in order[quotas.limited[tenant[order]] & (number[order] > 0)].tolist():
        owner, parts = int(tenant[j]), range(j, j + int(number[j]))
        taken = used[owner].copy()
        for part in parts:
            kind = quotas.type_within(owner, taken, asked_mgpu[part], options[1][first[part] : first[part + 1]])
            if kind is None:
                after[parts] = lowest
                break
            taken[kind] += asked_mgpu[part, kind]
        else:
            used[owner] = taken
    return after
