"""Verifier of job-placement plans: every hard rule, checked in exact integers from the plan alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mast_opt.core.verdict import Verdict, Violation
from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import GPU, LEVELS, RACK, RESOURCES, SERVER, UNITS, WHOLE, Bools, Ints
from mast_opt.job_placement.verification.measures import measure


def verify(problem: JobPlacement, plan: Plan) -> Verdict:
    """Every violation of the plan, and its objective. Raises ValueError for a plan of other running jobs."""
    check = _Check(problem, plan)
    check.structure()
    check.gangs()
    check.regions_and_types()
    check.levels()
    check.victims()
    check.capacity()
    check.devices()
    terms, metrics = measure(problem, check.plan)
    weights = problem.objective.weights
    objective = float(sum(weights[name] * value for name, value in terms.items()))
    return Verdict(tuple(check.violations), objective, terms, metrics)


class _Check:
    """Finds violations; ``plan`` keeps the rows whose positions are in range, each with at most the job's tasks."""

    def __init__(self, problem: JobPlacement, plan: Plan) -> None:
        self.p = problem
        self.plan = plan
        self.violations: list[Violation] = []

    def report(self, name: str, index: Sequence[str], amount: float, limit: float, unit: str) -> None:
        self.violations.append(Violation(name, tuple(index), float(amount), float(limit), unit))

    def structure(self) -> None:
        """Positions in range, tasks positive, no row twice."""
        p, plan = self.p, self.plan
        if len(plan.preempt) != len(p.running):
            raise ValueError(f"preempt has {len(plan.preempt)} entries; expected {len(p.running)}, one per running job")
        kept = np.ones(len(plan.job), np.bool_)
        for axis, at in ((p.jobs.labels, plan.job), (p.servers.labels, plan.server)):
            for row in np.flatnonzero((at < 0) | (at >= len(axis))).tolist():
                limit = len(axis) - 1
                self.report("assignments", self._row(row), max(int(at[row]) - limit, -int(at[row])), limit, "position")
                kept[row] = False
        for row in np.flatnonzero(plan.tasks < 1).tolist():
            self.report("assignments", self._row(row), 1 - int(plan.tasks[row]), 1, "tasks")
            kept[row] = False
        key = np.stack([plan.job, plan.server, np.where(plan.indexed, plan.gpu_index, -1)], axis=1)
        _, first, count = np.unique(key, axis=0, return_index=True, return_counts=True)
        for row, times in zip(first[count > 1].tolist(), count[count > 1].tolist()):
            self.report("assignments", self._row(row), times - 1, 1, "rows")
        at = np.flatnonzero(kept)
        at = at[np.lexsort((plan.server[at], plan.job[at]))]
        job = plan.job[at]
        tasks = np.minimum(plan.tasks[at], p.jobs.tasks[job] + 1)
        self.plan = Plan(job, plan.server[at], tasks, plan.gpu_index[at], plan.indexed[at], plan.preempt.copy())

    def _row(self, row: int) -> tuple[str, str]:
        plan = self.plan
        return _label(self.p.jobs.labels, int(plan.job[row])), _label(self.p.servers.labels, int(plan.server[row]))

    def gangs(self) -> None:
        """admitted: one cluster and one type; gang: all tasks there."""
        p, plan = self.p, self.plan
        clusters, types = p.server_cluster[plan.server], p.servers.gpu_type[plan.server]
        cells, at = np.unique(np.stack([plan.job, clusters, types], axis=1), axis=0, return_inverse=True)
        placed = np.zeros(len(cells), np.int64)
        np.add.at(placed, at.reshape(-1), plan.tasks)
        jobs, count = np.unique(cells[:, 0], return_counts=True)
        for j, n in zip(jobs[count > 1].tolist(), count[count > 1].tolist()):
            self.report("admitted", (p.jobs.labels[j],), n - 1, 1, "clusters and types")
        for (j, c, k), n in zip(cells.tolist(), placed.tolist()):
            if n != p.jobs.tasks[j]:
                labels = (p.jobs.labels[j], p.clusters.labels[c], p.gpu_types[k])
                self.report("gang", labels, abs(n - int(p.jobs.tasks[j])), int(p.jobs.tasks[j]), "tasks")

    def regions_and_types(self) -> None:
        """data: the region (with priced remote reads, any) holds what the job reads; residency: it may be read there;
        accepts: the type is one of the job's."""
        p, plan = self.p, self.plan
        restricted = p.datasets.residency.sum(axis=1) > 0
        pairs = np.unique(np.stack([plan.job, p.server_region[plan.server]], axis=1), axis=0)
        reads = np.argsort(p.reads.job, kind="stable")
        first = np.searchsorted(p.reads.job[reads], np.arange(len(p.jobs) + 1))
        for j, r in pairs.tolist():
            data = p.reads.dataset[reads[first[j] : first[j + 1]]]
            lost = p.datasets.stored[data].sum(axis=1) == 0
            lacks = int((lost if p.remote_reads else ~p.datasets.stored[data, r]).sum())
            if lacks:
                self.report("data", (p.jobs.labels[j], p.regions[r]), lacks, 0, "datasets")
            for i in data[restricted[data] & ~p.datasets.residency[data, r]].tolist():
                self.report("residency", (p.jobs.labels[j], p.datasets.labels[i], p.regions[r]), 1, 0, "jobs")
        refused = ~p.accepts[plan.job, p.servers.gpu_type[plan.server]]
        for row in np.flatnonzero(refused).tolist():
            labels = (p.jobs.labels[plan.job[row]], p.servers.labels[plan.server[row]])
            self.report("accepts", labels, int(plan.tasks[row]), 0, "tasks")

    def levels(self) -> None:
        """one_server, one_rack: no more than the level that the job must stay within."""
        p, plan = self.p, self.plan
        for level, place in ((SERVER, plan.server), (RACK, p.servers.rack[plan.server])):
            pairs = np.unique(np.stack([plan.job, place], axis=1), axis=0)
            jobs, count = np.unique(pairs[:, 0], return_counts=True)
            for j, n in zip(jobs.tolist(), count.tolist()):
                if n > 1 and p.jobs.within[j] == level:
                    self.report(f"one_{LEVELS[level]}", (p.jobs.labels[j],), n - 1, 1, f"{LEVELS[level]}s")

    def victims(self) -> None:
        """preemptible: only jobs that may be stopped are."""
        p = self.p
        for v in np.flatnonzero(self.plan.preempt & ~p.running.preemptible).tolist():
            self.report("preemptible", (p.running.labels[v],), 1, 0, "jobs")

    def capacity(self) -> None:
        """Σ_{j: tier ≥ p} need ≤ free + Σ_{v: tier > p} held, for every server, resource and tier."""
        p, plan = self.p, self.plan
        need = self._needs()
        tiers = len(p.tiers)
        asked = np.zeros((len(p.servers), 3, tiers), np.int64)
        room = np.repeat(p.free[:, :, None], tiers, axis=2)
        stopped = plan.preempt[p.allocations.running]
        for tier in range(tiers):
            rows = p.queue_tier[plan.job] >= tier
            np.add.at(asked[:, :, tier], plan.server[rows], need[rows])
            gives = stopped & (p.running.tier[p.allocations.running] > tier)
            np.add.at(room[:, :, tier], p.allocations.server[gives], p.held[gives])
        self.short_of_gpus = asked[:, GPU] > room[:, GPU]
        for s, resource, tier in np.argwhere(asked > room).tolist():
            labels = (p.servers.labels[s], str(p.tiers[tier]), RESOURCES[resource])
            limit = int(room[s, resource, tier])
            self.report("capacity", labels, int(asked[s, resource, tier]) - limit, limit, UNITS[resource])

    def _needs(self) -> Ints:
        p, plan = self.p, self.plan
        mgpu = p.need_mgpu[plan.job, p.servers.gpu_type[plan.server]]
        per_task = np.stack([mgpu, p.jobs.cpu_mcores[plan.job], p.jobs.memory_mib[plan.job]], axis=1)
        return per_task * plan.tasks[:, None]

    def devices(self) -> None:
        """device: what shares a GPU fits on it; split: a fraction names its GPU; whole: whole GPUs are left."""
        p, plan = self.p, self.plan
        count = p.servers.supply[:, GPU] // WHOLE
        start = np.cumsum(count) - count
        tier = p.queue_tier[plan.job]
        mgpu = p.need_mgpu[plan.job, p.servers.gpu_type[plan.server]]
        fraction = (mgpu > 0) & (mgpu < WHOLE)
        for row in np.flatnonzero(fraction & ~plan.indexed).tolist():
            labels = (p.jobs.labels[plan.job[row]], p.servers.labels[plan.server[row]])
            self.report("split", labels, int(plan.tasks[row]), 0, "tasks without gpu_index")
        room = self._device_room(start, int(count.sum()))
        used = np.zeros_like(room)
        for row in np.flatnonzero(plan.indexed & (mgpu > 0)).tolist():
            s, first = int(plan.server[row]), int(plan.gpu_index[row])
            wide = 1 if fraction[row] else int(mgpu[row]) // WHOLE * int(plan.tasks[row])
            amount = int(mgpu[row]) * int(plan.tasks[row]) if fraction[row] else WHOLE
            if not 0 <= first <= first + wide <= count[s]:
                place = (p.servers.labels[s], str(p.tiers[tier[row]]), str(first))
                self.report("device", place, wide, int(count[s]), "GPUs")
                continue
            used[start[s] + first : start[s] + first + wide, : tier[row] + 1] += amount
        owner = np.repeat(np.arange(len(count)), count)
        for d, at in np.argwhere(used > room).tolist():
            s = int(owner[d])
            place = (p.servers.labels[s], str(p.tiers[at]), str(d - int(start[s])))
            self.report("device", place, int(used[d, at] - room[d, at]), int(room[d, at]), UNITS[GPU])
        rows = ~fraction & ~plan.indexed & (mgpu > 0)
        self._whole(owner, room, used, rows, mgpu // WHOLE * plan.tasks, tier)

    def _device_room(self, start: Ints, devices: int) -> Ints:
        """[device, P] milli-GPUs that work of each tier and less important work may use."""
        p = self.p
        entries = p.held_devices
        at = start[p.allocations.server[entries.row]] + entries.device
        room = np.full((devices, len(p.tiers)), WHOLE)
        stopped = self.plan.preempt[p.allocations.running[entries.row]]
        for tier in range(len(p.tiers)):
            stays = ~(stopped & (p.running.tier[p.allocations.running[entries.row]] > tier))
            np.subtract.at(room[:, tier], at[stays], entries.mgpu[stays])
        return room

    def _whole(self, owner: Ints, room: Ints, used: Ints, rows: Bools, gpus: Ints, tier: Ints) -> None:
        """whole: work of tier ≥ p finds enough GPUs that nothing else uses."""
        p = self.p
        untouched = used[:, 0] == 0
        for at in range(len(p.tiers)):
            left = np.bincount(owner[untouched & (room[:, at] == WHOLE)], minlength=len(p.servers))
            asked = np.zeros(len(p.servers), np.int64)
            counted = rows & (tier >= at)
            np.add.at(asked, self.plan.server[counted], gpus[counted])
            for s in np.flatnonzero((asked > left) & ~self.short_of_gpus[:, at]).tolist():
                self.report(
                    "whole", (p.servers.labels[s], str(p.tiers[at])), int(asked[s] - left[s]), int(left[s]), "GPUs"
                )


def _label(axis: tuple[str, ...], position: int) -> str:
    return axis[position] if 0 <= position < len(axis) else f"#{position}"
