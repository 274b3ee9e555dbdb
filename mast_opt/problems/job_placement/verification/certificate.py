"""Certificate of a job-placement bound: prices of capacity, and the bound that they prove, with numpy alone.

Nothing here is shared with the search. The capacity of each server s is stated for each tier p and resource,

    Σ_{j: tier ≥ p} need[j]·count[j,s] ≤ free[s] + Σ_{v: tier > p} held[v,s]·preempt[v].

For prices y ≥ 0 of these rows, every plan costs at least

    Σ_j min(reject[j], least[j]) + Σ_v min(0, stop[v] − Σ_s Σ_{p < tier v} y·held[v,s]) − Σ_s Σ_p y·free[s]

where least[j] is the cheapest place for all tasks of a job (a cluster's servers of one type; a rack or a server where
it must stay within one), each server taking no more tasks than it could hold after all stops, at the price
Σ_{p ≤ tier j} y of what a task needs there. Terms that are not priced here (spread, balance, fragmentation) are at
least 0. A movable job frees what it holds for all tiers, at no cost.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import PlanError
from mast_opt.core.units import MICRO
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CLUSTER, CPU, GPU, MEMORY, RACK, SERVER, WHOLE, Bools, Ints
from mast_opt.problems.kind.certificate_format import array_faults, price

ROUNDING = 1e-10
"""Relative allowance for the rounding of sums."""


@dataclass(frozen=True, eq=False)
class CapacityPrices:
    """Prices of capacity."""

    capacity: FloatArray
    """[S, P, 3] of a milli-GPU, millicore and MiB of a server, for work of tier p and less important work."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of a job-placement certificate as a file keeps them."""
        return {"capacity": self.capacity}


def certified_bound(problem: JobPlacement, arrays: Mapping[str, NDArray[Any]]) -> float:
    """The bound that a file's arrays prove for the objective; where it is lexicographic, for its first term.

    Raises:
        PlanError: the arrays are no certificate, or a price is negative.
    """
    shape = (len(problem.servers), len(problem.standing.tiers), 3)
    found = array_faults(arrays, {"capacity": price(*shape)})
    if found:
        raise PlanError(found)
    return CapacityBound(problem).value(CapacityPrices(np.asarray(arrays["capacity"])))


@dataclass(frozen=True, eq=False)
class Places:
    """Servers where the tasks of one job may run."""

    server: Ints
    """Servers, [n]."""
    most: Ints
    """[n] tasks that it could hold after all stops, at least 1."""
    need: Ints
    """[n, 3] of a task there."""
    place: Ints
    """[n] a server, rack or cluster with a type: all tasks are in one."""
    price: FloatArray
    """[places] of the job there, in the unit of the objective."""


class CapacityBound:
    """Bound of one problem at any prices: the facts that it is computed from."""

    def __init__(self, problem: JobPlacement) -> None:
        self._p = p = problem.standing
        weights = dict(p.objective.weights)
        if p.objective.lexicographic:
            weights = dict.fromkeys(weights, 0.0) | {p.objective.order[0]: 1.0}
        self._weights = weights
        worth = p.tier_weight[p.queue_tier] * p.jobs.value_milli
        self.rejected: FloatArray = weights["rejected"] * worth / (worth.sum() if worth.any() else 1.0)
        """[J] cost of not admitting a job."""
        gpus = np.bincount(p.allocations.running, weights=p.held[:, GPU], minlength=len(p.running))
        stop = p.tier_weight[p.running.tier] * (p.running.at_risk_mgpu_hours + gpus) / max(p.all_mgpu, 1)
        self.stopped: FloatArray = weights["preemption"] * stop if p.all_mgpu else np.zeros(len(p.running))
        """[V] cost of stopping a job."""
        self._movable = np.zeros(len(p.running), np.bool_)
        self._movable[p.movable.running] = True
        self._fitting: dict[tuple[int, int], Ints] = {}

    def value(self, prices: CapacityPrices) -> float:
        """The capacity bound on job placement; every term is a penalty, so it is at least 0."""
        p, y = self._p, prices.capacity
        until = np.cumsum(y, axis=1)
        parts = [*(-(until[:, -1] * p.free)).ravel().tolist(), *np.minimum(0.0, self._victims(until)).tolist()]
        parts += [min(float(self.rejected[j]), self._least(j, until)) for j in range(len(p.jobs))]
        allowed = ROUNDING * math.fsum(map(abs, parts))
        return max(0.0, math.fsum(parts) - allowed)

    def _victims(self, until: FloatArray) -> FloatArray:
        """[V] what stopping or moving a job costs less what it frees is worth, at the prices ``until`` each tier."""
        p = self._p
        running, server = p.allocations.running, p.allocations.server
        tier = p.running.tier[running]
        before = np.where((tier > 0)[:, None], until[server, np.maximum(tier - 1, 0)], 0.0)
        stop, move = (
            np.bincount(running, weights=(p.held * worth).sum(axis=1), minlength=len(p.running))
            for worth in (before, until[server, -1])
        )
        left = np.where(p.running.preemptible, self.stopped - stop, 0.0)
        return np.where(self._movable, np.minimum(left, -move), left)

    def _least(self, j: int, until: FloatArray) -> float:
        """The cheapest place for all tasks of a pending job."""
        here, tasks = self.places(j), int(self._p.jobs.tasks[j])
        if not len(here.server):
            return math.inf
        each = (here.need * until[here.server, self._p.queue_tier[j]]).sum(axis=1)
        order = np.lexsort((each, here.place))
        place, most = here.place[order], here.most[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        before = np.cumsum(most) - most
        before -= np.repeat(before[first], np.diff(first, append=len(place)))
        taken = np.clip(tasks - before, 0, most)
        cost = np.add.reduceat(taken * each[order], first) + here.price
        cost[np.add.reduceat(taken, first) < tasks] = math.inf
        return float(cost.min())

    def places(self, j: int) -> Places:
        """Servers where a pending job may run, by place; the places of ``price`` are in the same order."""
        p = self._p
        kind, tier = p.servers.gpu_type, int(p.queue_tier[j])
        most = np.zeros(len(kind), np.int64)
        open_to = p.accepts[j, kind] & p.open_region[j, p.server_region]
        for k in np.flatnonzero(p.accepts[j]).tolist():
            fits = self._most(int(p.need_mgpu[j, k]), tier)
            most = np.where(open_to & (kind == k), fits, most)
        for resource, asked in ((CPU, int(p.jobs.cpu_mcores[j])), (MEMORY, int(p.jobs.memory_mib[j]))):
            if asked:
                most = np.minimum(most, self._room[:, tier, resource] // asked)
        most = np.minimum(most, int(p.jobs.tasks[j]))
        level = self._place[int(p.jobs.within[j])]
        server = np.flatnonzero(most > 0)
        _, first, place = np.unique(level[server], return_index=True, return_inverse=True)
        need = np.empty((len(server), 3), np.int64)
        need[:, GPU], need[:, CPU:] = p.need_mgpu[j, kind[server]], (p.jobs.cpu_mcores[j], p.jobs.memory_mib[j])
        return Places(server, most[server], need, place.reshape(-1), self._price(j, server[first]))

    def _price(self, j: int, server: Ints) -> FloatArray:
        """[·] remote reads and costs of a pending job in the clusters of these servers."""
        p = self._p
        cost = np.zeros(len(server))
        rows = p.costs.job == j
        if rows.any():
            of_cluster = np.zeros(len(p.clusters))
            of_cluster[p.costs.cluster[rows]] = p.costs.cost_micro[rows] / MICRO
            cost += self._weights["cost"] * of_cluster[p.server_cluster[server]]
        volume = max(int(p.reads.mb_per_day.sum()), 1)
        cost += self._weights["remote"] * p.missing_mb[j, p.server_region[server]] / volume
        return cost

    def _most(self, mgpu: int, tier: int) -> Ints:
        """[S] tasks of pending jobs of so many milli-GPUs that the GPUs of each server hold after all stops
        for a tier.
        """
        known = self._fitting.get((mgpu, tier))
        if known is None:
            room, count = self._device_room[:, tier], len(self._p.servers)
            if mgpu >= WHOLE:
                whole = np.bincount(self._device_server[room == WHOLE], minlength=count)
                known = whole // (mgpu // WHOLE)
            elif mgpu:
                known = np.bincount(self._device_server, weights=room // mgpu, minlength=count).astype(np.int64)
            else:
                known = np.full(count, int(self._p.jobs.tasks.max(initial=1)))
            self._fitting[mgpu, tier] = known
        return known

    @cached_property
    def _place(self) -> dict[int, Ints]:
        """Level that a pending job must stay within → [S] the place of each server, which has one type."""
        p, types = self._p, len(self._p.gpu_types)
        kind = p.servers.gpu_type
        level = {SERVER: np.arange(len(kind)), RACK: p.servers.rack * types + kind}
        return {**level, CLUSTER: p.server_cluster * types + kind}

    def _released(self, rows: Ints, tier: int) -> Bools:
        """Mask [·] of the allocations that can be stopped for a tier, or moved."""
        running = self._p.allocations.running[rows]
        stop = self._p.running.preemptible[running] & (self._p.running.tier[running] > tier)
        return stop | self._movable[running]

    @cached_property
    def _room(self) -> Ints:
        """[S, P, 3] what servers have for jobs for a tier after all stops."""
        p = self._p
        room = np.repeat(p.free[:, None, :], len(p.tiers), axis=1)
        for tier in range(len(p.tiers)):
            rows = np.flatnonzero(self._released(np.arange(len(p.allocations)), tier))
            np.add.at(room[:, tier], p.allocations.server[rows], p.held[rows])
        return room

    @cached_property
    def _device_server(self) -> Ints:
        """[D] the server of each GPU, in job placement's bound."""
        return np.repeat(np.arange(len(self._p.servers)), self._p.servers.supply[:, GPU] // WHOLE)

    @cached_property
    def _device_room(self) -> Ints:
        """[D, P] milli-GPUs that each GPU has for a tier of jobs after all stops."""
        p, entries = self._p, self._p.held_devices
        gpus = p.servers.supply[:, GPU] // WHOLE
        at = (np.cumsum(gpus) - gpus)[p.allocations.server[entries.row]] + entries.device
        room = np.full((int(gpus.sum()), len(p.tiers)), WHOLE)
        for tier in range(len(p.tiers)):
            stays = ~self._released(entries.row, tier)
            np.subtract.at(room[:, tier], at[stays], entries.mgpu[stays])
        return room
