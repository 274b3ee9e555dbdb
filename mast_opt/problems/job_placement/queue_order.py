"""Queue order of job placement: tier, then credit, then age; over-quota work in the lowest tier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mast_opt.problems.job_placement.units import Bools, Ints


def rank(tier: Ints, credit_milli: Ints, submitted_ms: Ints) -> Ints:
    """Positions in queue order: lowest tier number, then most credit, then oldest, then as listed."""
    return np.lexsort((submitted_ms, -credit_milli, tier)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Quotas:
    """GPUs that each tenant may use before its work drops to the lowest tier; T tenants, K types."""

    total_mgpu: Ints
    """[T] for all types together; −1 where there is no such quota."""
    typed_mgpu: Ints
    """[T, K] on one type; −1 where there is no such quota."""

    @classmethod
    def of(cls, tenants: int, types: int, tenant: Ints, kind: Ints, typed: Bools, mgpu: Ints) -> Quotas:
        """Build quotas from the rows of the ``quotas`` table."""
        total = np.full(tenants, -1, np.int64)
        total[tenant[~typed]] = mgpu[~typed]
        per_type = np.full((tenants, types), -1, np.int64)
        per_type[tenant[typed], kind[typed]] = mgpu[typed]
        return cls(total, per_type)

    @property
    def limited(self) -> Bools:
        """Mask [T] of the tenants that have any quota."""
        return (self.total_mgpu >= 0) | (self.typed_mgpu >= 0).any(axis=1)

    def left(self, tenant: int, used_mgpu: Ints) -> QuotasLeft:
        """Rest of the quotas of a tenant that uses ``used_mgpu`` [K] already."""
        total, typed = self.total_mgpu[tenant], self.typed_mgpu[tenant]
        limits = [math.inf if quota < 0 else quota - used for quota, used in zip(typed.tolist(), used_mgpu.tolist())]
        return QuotasLeft(math.inf if total < 0 else int(total - used_mgpu.sum()), limits)


@dataclass
class QuotasLeft:
    """Milli-GPUs that a tenant may still use; infinite where there is no quota."""

    total: float
    typed: list[float]

    def spend_on_first(self, kind: Ints, mgpu: Ints) -> int:
        """Use them for jobs of one part, in order, up to the first one that they do not hold on the first type that it
        accepts; returns how many there are before it.

        Args:
            kind, mgpu: first type that each job accepts, and what it asks for there.
        """
        used = np.zeros((len(kind), len(self.typed)), np.int64)
        used[np.arange(len(kind)), kind] = mgpu
        used = used.cumsum(axis=0)
        held = (used <= self.typed).all(axis=1) & (used.sum(axis=1) <= self.total)
        count = len(kind) if held.all() else int(held.argmin())
        if count:
            spent = used[count - 1].tolist()
            self.typed = [left - some for left, some in zip(self.typed, spent, strict=True)]
            self.total -= sum(spent)
        return count

    def spend(self, kinds: Sequence[int], mgpu: Sequence[int], bounds: Sequence[int]) -> bool:
        """Use them for a job, each part of which takes the first accepted type that the quotas hold it on. False, and
        nothing is used, if they do not hold all parts.

        Args:
            kinds, mgpu: types that are accepted, and what is asked for on them.
            bounds: where those of each part begin, and those of the last one end.
        """
        total, typed, taken = self.total, self.typed, list[int]()
        for begin, end in pairwise(bounds):
            for at in range(begin, end):
                kind, asked = kinds[at], mgpu[at]
                if asked <= typed[kind] and asked <= self.total:
                    typed[kind] -= asked
                    self.total -= asked
                    taken.append(at)
                    break
            else:
                for at in taken:
                    typed[kinds[at]] += mgpu[at]
                self.total = total
                return False
        return True


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
    after, over = tier.copy(), list[int]()
    first = np.searchsorted(options[0], np.arange(len(tier) + 1))
    asked = asked_mgpu[options]
    first_of, kinds, amounts = first.tolist(), options[1].tolist(), asked.tolist()
    least = min(amounts, default=0)
    number = np.bincount(first_part, minlength=len(tier))
    queue = order[quotas.limited[tenant[order]] & (number[order] > 0)]
    queue = queue[np.argsort(tenant[queue], kind="stable")]
    owners, begins = np.unique(tenant[queue], return_index=True)
    ends = np.append(begins[1:], len(queue))
    numbers = number.tolist()
    for owner, start, end in zip(owners.tolist(), begins.tolist(), ends[: len(owners)].tolist(), strict=True):
        jobs = queue[start:end]
        left, begin, count = quotas.left(owner, used_mgpu[owner]), first[jobs], 0
        if (number[jobs] == 1).all():
            count = left.spend_on_first(options[1][begin], asked[begin])
        for j in jobs[count:].tolist():
            behind = j + numbers[j]
            if left.total < least or not left.spend(kinds, amounts, first_of[j : behind + 1]):
                over += range(j, behind)
    after[over] = lowest
    return after
