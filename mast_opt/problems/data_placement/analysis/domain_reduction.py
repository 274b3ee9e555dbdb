"""Domain reduction for data placement: regions that the limits of a single dataset or workload leave possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.verification.measures import totals

ROUNDING = 1e-9
"""Relative error granted to sums of link capacities, the only amounts that are compared as floats."""


@dataclass(frozen=True)
class ReducedDomains:
    """Grids of what is open; nothing that a feasible plan does is closed."""

    p: DataPlacement

    @cached_property
    def new_pins(self) -> Bools:
        """[I, R] replicas that have to be brought in."""
        return self.p.datasets.pinned & ~self.p.datasets.stored

    @cached_property
    def pinned_mb(self) -> list[int]:
        """Storage [R] that pinned replicas take, in MB."""
        return _by_region(self.p.datasets.pinned, self.p.datasets.size_mb)

    @cached_property
    def arriving_mb(self) -> list[int]:
        """[R] size of the pins that have to be brought in."""
        return _by_region(self.new_pins, self.p.datasets.size_mb)

    @cached_property
    def fits(self) -> Bools:
        """[I, R] there is room next to what is pinned."""
        room = [have - taken for have, taken in zip(self.p.usable_storage_mb.tolist(), self.pinned_mb)]
        fits: Bools = self.p.datasets.pinned | (self.p.datasets.size_mb[:, None] <= _int64(room))
        return fits

    @cached_property
    def arrives(self) -> Bools:
        """[I, R] stored there already, or ingress has room next to the pins that arrive."""
        p = self.p
        room = [most - taken for most, taken in zip(p.ingress_mb.tolist(), self.arriving_mb)]
        free: Bools = (
            p.datasets.stored
            | p.datasets.pinned
            | ~p.regions.ingress_limited
            | (p.datasets.size_mb[:, None] <= _int64(room))
        )
        return free

    @cached_property
    def reached(self) -> Bools:
        """[I, R] stored there already, stored nowhere (an upload), or links from its holders carry it in time."""
        p = self.p
        if p.links is None:
            return np.ones(p.datasets.stored.shape, np.bool_)
        capacity = np.zeros((len(p.regions), len(p.regions)))
        linked = np.zeros(capacity.shape)
        capacity[p.links.source, p.links.target] = p.links.capacity_mb_per_day * float(p.days)
        linked[p.links.source, p.links.target] = 1
        carried = (p.datasets.stored @ capacity) * (1 + ROUNDING) >= p.datasets.size_mb[:, None] * (1 - ROUNDING)
        reached: Bools = (
            p.datasets.stored
            | ~p.datasets.stored.any(axis=1, keepdims=True)
            | ((p.datasets.stored @ linked > 0) & carried)
        )
        return reached

    @cached_property
    def holds(self) -> Bools:
        """[I, R] regions that may come to hold a replica."""
        return ~self.p.closed & self.fits & self.arrives & self.reached

    @cached_property
    def quota_mcores(self) -> Ints:
        """[R, A] cores that an application may use in a region: its quota, and no more than there are."""
        p = self.p
        most = np.repeat(p.regions.cpu_mcores[:, None], len(p.apps), axis=1)
        most[p.cpu_quotas.region, p.cpu_quotas.app] = np.minimum(
            p.cpu_quotas.cpu_mcores, p.regions.cpu_mcores[p.cpu_quotas.region]
        )
        return most

    @cached_property
    def supplied(self) -> Bools:
        """[W, R] some GPU type that the workload accepts is there, or it needs none."""
        p = self.p
        there = np.append(p.regions.supply_mgpu > 0, np.ones((len(p.regions), 1), np.bool_), axis=1)
        option = there.T[p.options.gpu_type] | (p.options.mgpu == 0)[:, None]
        found = np.zeros(p.allowed.shape, np.bool_)
        at, region = np.nonzero(option)
        found[p.options.workload[at], region] = True
        return found

    @cached_property
    def room_for_work(self) -> Bools:
        """[W, R] cores and quota for all of the workload, or for any part of it if it splits."""
        p = self.p
        most = self.quota_mcores.T[p.workloads.app]
        fits: Bools = (p.workloads.cpu_mcores[:, None] <= most) | (p.workloads.splittable[:, None] & (most > 0))
        return fits

    @cached_property
    def has_data(self) -> Bools:
        """[W, R] every dataset of the workload may be there, or be read remotely."""
        p = self.p
        lacks = np.zeros(p.allowed.shape, np.bool_)
        if not p.remote_reads:
            read, region = np.nonzero(~self.holds[p.reads.dataset])
            lacks[p.reads.workload[read], region] = True
        return ~lacks

    @cached_property
    def possible(self) -> Bools:
        """[W, R] regions where the workload may run, as far as its own limits say."""
        return self.p.allowed & self.supplied & self.room_for_work & self.has_data


def _by_region(cells: Bools, size: Ints) -> list[int]:
    row, region = np.nonzero(cells)
    return totals(region, size[row], 1, cells.shape[1])


def _int64(amounts: list[int]) -> Ints:
    """The amounts as an array; anything below −1 says no more than −1 does."""
    return np.array([max(amount, -1) for amount in amounts], np.int64)
