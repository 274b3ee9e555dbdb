"""Verifier of job-placement plans: every hard rule, checked in exact integers from the plan alone."""

from collections.abc import Sequence

import numpy as np

from mast_opt.core.verdict import Verdict, Violation
from mast_opt.problems.job_placement import units
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.verification.measures import measure, task_needs

_LIMITED = ("moves", "GPU-hours")
"""Unit of each of ``MOVE_LIMITS``, in words."""


def verify(problem: JobPlacement, plan: Plan) -> Verdict:
    """Every violation of the plan, and its objective. Raises ValueError for a plan of other running jobs."""
    check = _Check(problem, plan)
    check.structure()
    check.gangs()
    check.parts()
    check.moves()
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
    """Finds violations; ``plan`` keeps the rows whose positions are in range, each with at most the job's tasks.

    Where jobs run afterwards is in two parts: rows of ``plan`` for pending jobs, then those of moved jobs, which count
    in the last tier: they use what is free, and nothing that a victim frees.
    """

    def __init__(self, problem: JobPlacement, plan: Plan) -> None:
        self.p = problem.standing
        self.plan = plan
        self.violations: list[Violation] = []

    def report(self, name: str, index: Sequence[str], amount: float, limit: float, unit: str) -> None:
        """Note a violation by a job-placement plan of a limit."""
        self.violations.append(Violation(name, tuple(index), float(amount), float(limit), unit))

    def structure(self) -> None:
        """Check a job-placement plan's rows: positions in range, tasks positive, no row twice."""
        p, plan = self.p, self.plan
        if len(plan.preempt) != len(p.running):
            raise ValueError(f"preempt has {len(plan.preempt)} entries; expected {len(p.running)}, one per running job")
        index = np.where(plan.indexed, plan.gpu_index, -1)
        at = (plan.job, plan.server)
        kept = self._sound("assignments", (p.jobs.labels, p.servers.labels), at, plan.tasks, index)
        order = np.flatnonzero(kept)
        order = order[np.lexsort((plan.server[order], plan.job[order]))]
        job = plan.job[order]
        tasks = np.minimum(plan.tasks[order], p.jobs.tasks[job] + 1)
        moves = self._sound_moves()
        self.plan = Plan(
            job, plan.server[order], tasks, plan.gpu_index[order], plan.indexed[order], plan.preempt.copy(), *moves
        )
        self._place()

    def _sound(
        self,
        name: str,
        axes: tuple[tuple[str, ...], ...],
        at: tuple[units.Ints, ...],
        tasks: units.Ints,
        index: units.Ints,
    ) -> units.Bools:
        """Mask of a plan's rows with positions in range and with a task. Reports the others, and equal rows."""
        kept, found = tasks >= 1, list[tuple[int, int, int, str]]()
        for axis, position in zip(axes, at):
            last, inside = len(axis) - 1, (position >= 0) & (position < len(axis))
            for row, value in zip(np.flatnonzero(~inside).tolist(), position[~inside].tolist()):
                found.append((row, max(value - last, -value), last, "position"))
            kept &= inside
        found += [(row, 1 - int(tasks[row]), 1, "tasks") for row in np.flatnonzero(tasks < 1).tolist()]
        _, first, count = np.unique(np.stack([*at, index], axis=1), axis=0, return_index=True, return_counts=True)
        found += [(row, times - 1, 1, "rows") for row, times in zip(first.tolist(), count.tolist()) if times > 1]
        for row, amount, limit, unit in found:
            labels = [_label(axis, int(position[row])) for axis, position in zip(axes, at)]
            self.report(name, labels, amount, limit, unit)
        return kept

    def _sound_moves(self) -> tuple[units.Ints, units.Ints, units.Ints, units.Ints, units.Bools]:
        """The rows of moved jobs without those whose positions are out of range, that have no task, or whose job may
        not be moved: movable."""
        p, plan = self.p, self.plan
        index = np.where(plan.moved_indexed, plan.moved_gpu_index, -1)
        axes, at = (p.running.labels, p.servers.labels), (plan.moved, plan.moved_server)
        kept = self._sound("moves", axes, at, plan.moved_tasks, index)
        for v in np.setdiff1d(plan.moved[kept], p.movable.running).tolist():
            self.report("movable", (p.running.labels[v],), 1, 0, "jobs")
            kept &= plan.moved != v
        order = np.flatnonzero(kept)
        order = order[np.lexsort((plan.moved_server[order], plan.moved[order]))]
        v = plan.moved[order]
        number = np.bincount(p.allocations.running, weights=p.allocations.tasks, minlength=len(p.running))
        tasks = np.minimum(plan.moved_tasks[order], number[v].astype(np.int64) + 1)
        return v, plan.moved_server[order], tasks, plan.moved_gpu_index[order], plan.moved_indexed[order]

    def _place(self) -> None:
        """The rows of pending and moved jobs as one: server, tasks, needs of a task, tier, GPU."""
        p, plan = self.p, self.plan
        self.gone = np.zeros(len(p.running), np.bool_)
        self.gone[plan.moved] = True
        self.server = np.concatenate([plan.server, plan.moved_server])
        self.tasks = np.concatenate([plan.tasks, plan.moved_tasks])
        self.need = task_needs(p, plan)
        self.tier = np.concatenate([p.queue_tier[plan.job], np.full(len(plan.moved), len(p.tiers) - 1)])
        self.gpu_index = np.concatenate([plan.gpu_index, plan.moved_gpu_index])
        self.indexed = np.concatenate([plan.indexed, plan.moved_indexed])

    def _name(self, row: int) -> tuple[str, str]:
        """Job and server of a sound row of either part."""
        p, plan = self.p, self.plan
        starts = row < len(plan.job)
        job = p.jobs.labels[plan.job[row]] if starts else p.running.labels[plan.moved[row - len(plan.job)]]
        return job, p.servers.labels[self.server[row]]

    def _leave(self, tier: int) -> units.Bools:
        """Mask [A] of the allocations whose room work of a tier may use: of victims of less important tiers, and of
        moved jobs."""
        p = self.p
        leave: units.Bools = (self.plan.preempt & (p.running.tier > tier)) | self.gone
        return leave[p.allocations.running]

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

    def parts(self) -> None:
        """Check jobs' parts; together: all parts of a job, or none; one_region, one_cluster, one_rack, one_server: the
        level that they must stay within.
        """
        p, plan = self.p, self.plan
        admitted = np.isin(p.parts.job, plan.job)
        cluster = p.server_cluster[plan.server]
        places = (plan.server, p.servers.rack[plan.server], cluster, p.clusters.region[cluster])
        for g, label in enumerate(p.multipart_jobs.labels):
            parts = p.parts.whole == g
            there, number = int(admitted[parts].sum()), int(parts.sum())
            if 0 < there < number:
                self.report("together", (label,), number - there, number, "parts")
            level = int(p.multipart_jobs.within[g])
            distinct = len(np.unique(places[level][np.isin(plan.job, p.parts.job[parts])]))
            if distinct > 1:
                name = units.WHOLE_JOB_LEVELS[level]
                self.report(f"one_{name}", (label,), distinct - 1, 1, f"{name}s")

    def moves(self) -> None:
        """moved: all tasks of a moved job, in one cluster; stays: in its region, on its GPU type, and as close together
        as it was; interrupted: it is not stopped as well; move_limit: what all moves together are."""
        p, plan = self.p, self.plan
        places = (
            ("servers", np.arange(len(p.servers))),
            ("racks", p.servers.rack),
            ("clusters", p.server_cluster),
        )
        for v in np.unique(plan.moved).tolist():
            label = p.running.labels[v]
            rows, before = np.flatnonzero(plan.moved == v), np.flatnonzero(p.allocations.running == v)
            server, held = plan.moved_server[rows], p.allocations.server[before]
            tasks, wanted = int(plan.moved_tasks[rows].sum()), int(p.allocations.tasks[before].sum())
            if tasks != wanted:
                self.report("moved", (label,), abs(tasks - wanted), wanted, "tasks")
            for unit, place in places:
                number = len(np.unique(place[server]))
                if number > 1 and len(np.unique(place[held])) == 1:
                    self.report("stays", (label,), number - 1, 1, unit)
            for unit, group in (("region", p.server_region), ("GPU type", p.servers.gpu_type)):
                outside = int((group[server] != group[held[0]]).sum())
                if outside:
                    self.report("stays", (label,), outside, 0, f"servers of another {unit}")
            if plan.preempt[v]:
                self.report("interrupted", (label,), 1, 1, "jobs")
        moving = self.gone[p.movable.running]
        amounts = (units.WHOLE * int(moving.sum()), sum(p.movable.restart_mgpu_hours[moving].tolist()))
        for limit, most in zip(p.move_limits.limit.tolist(), p.move_limits.most_milli.tolist()):
            if amounts[limit] > most:
                name = units.MOVE_LIMITS[limit]
                self.report("move_limit", (name,), amounts[limit] - most, most, f"thousandths of {_LIMITED[limit]}")

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
        for level, place in ((units.SERVER, plan.server), (units.RACK, p.servers.rack[plan.server])):
            pairs = np.unique(np.stack([plan.job, place], axis=1), axis=0)
            jobs, count = np.unique(pairs[:, 0], return_counts=True)
            for j, n in zip(jobs.tolist(), count.tolist()):
                if n > 1 and p.jobs.within[j] == level:
                    self.report(f"one_{units.LEVELS[level]}", (p.jobs.labels[j],), n - 1, 1, f"{units.LEVELS[level]}s")

    def victims(self) -> None:
        """preemptible: only jobs that may be stopped are."""
        p = self.p
        for v in np.flatnonzero(self.plan.preempt & ~p.running.preemptible).tolist():
            self.report("preemptible", (p.running.labels[v],), 1, 0, "jobs")

    def capacity(self) -> None:
        """Σ_{j: tier ≥ p} need ≤ free + Σ_{v: tier > p} held + what moved jobs leave, for every server, resource and
        tier."""
        p = self.p
        need = self.need * self.tasks[:, None]
        tiers = len(p.tiers)
        asked = np.zeros((len(p.servers), 3, tiers), np.int64)
        room = np.repeat(p.free[:, :, None], tiers, axis=2)
        for tier in range(tiers):
            rows = self.tier >= tier
            np.add.at(asked[:, :, tier], self.server[rows], need[rows])
            gives = self._leave(tier)
            np.add.at(room[:, :, tier], p.allocations.server[gives], p.held[gives])
        self.short_of_gpus = asked[:, units.GPU] > room[:, units.GPU]
        for s, resource, tier in np.argwhere(asked > room).tolist():
            labels = (p.servers.labels[s], str(p.tiers[tier]), units.RESOURCES[resource])
            limit = int(room[s, resource, tier])
            self.report("capacity", labels, int(asked[s, resource, tier]) - limit, limit, units.UNITS[resource])

    def devices(self) -> None:
        """device: what shares a GPU fits on it; split: a fraction names its GPU; whole: whole GPUs are left."""
        p, tier, mgpu = self.p, self.tier, self.need[:, units.GPU]
        count = p.servers.supply[:, units.GPU] // units.WHOLE
        start = np.cumsum(count) - count
        fraction = (mgpu > 0) & (mgpu < units.WHOLE)
        for row in np.flatnonzero(fraction & ~self.indexed).tolist():
            self.report("split", self._name(row), int(self.tasks[row]), 0, "tasks without gpu_index")
        room = self._device_room(start, int(count.sum()))
        used = np.zeros_like(room)
        for row in np.flatnonzero(self.indexed & (mgpu > 0)).tolist():
            s, first = int(self.server[row]), int(self.gpu_index[row])
            wide = 1 if fraction[row] else int(mgpu[row]) // units.WHOLE * int(self.tasks[row])
            amount = int(mgpu[row]) * int(self.tasks[row]) if fraction[row] else units.WHOLE
            if not 0 <= first <= first + wide <= count[s]:
                place = (p.servers.labels[s], str(p.tiers[tier[row]]), str(first))
                self.report("device", place, wide, int(count[s]), "GPUs")
                continue
            used[start[s] + first : start[s] + first + wide, : tier[row] + 1] += amount
        owner = np.repeat(np.arange(len(count)), count)
        for d, at in np.argwhere(used > room).tolist():
            s = int(owner[d])
            place = (p.servers.labels[s], str(p.tiers[at]), str(d - int(start[s])))
            self.report("device", place, int(used[d, at] - room[d, at]), int(room[d, at]), units.UNITS[units.GPU])
        rows = ~fraction & ~self.indexed & (mgpu > 0)
        self._whole(owner, room, used, rows, mgpu // units.WHOLE * self.tasks)

    def _device_room(self, start: units.Ints, devices: int) -> units.Ints:
        """[device, P] milli-GPUs that work of each tier and less important work may use."""
        p = self.p
        entries = p.held_devices
        at = start[p.allocations.server[entries.row]] + entries.device
        room = np.full((devices, len(p.tiers)), units.WHOLE)
        for tier in range(len(p.tiers)):
            stays = ~self._leave(tier)[entries.row]
            np.subtract.at(room[:, tier], at[stays], entries.mgpu[stays])
        return room

    def _whole(
        self, owner: units.Ints, room: units.Ints, used: units.Ints, rows: units.Bools, gpus: units.Ints
    ) -> None:
        """whole: work of tier ≥ p finds enough GPUs that nothing else uses."""
        p = self.p
        untouched = used[:, 0] == 0
        for at in range(len(p.tiers)):
            left = np.bincount(owner[untouched & (room[:, at] == units.WHOLE)], minlength=len(p.servers))
            asked = np.zeros(len(p.servers), np.int64)
            counted = rows & (self.tier >= at)
            np.add.at(asked, self.server[counted], gpus[counted])
            for s in np.flatnonzero((asked > left) & ~self.short_of_gpus[:, at]).tolist():
                self.report(
                    "whole", (p.servers.labels[s], str(p.tiers[at])), int(asked[s] - left[s]), int(left[s]), "GPUs"
                )


def _label(axis: tuple[str, ...], position: int) -> str:
    """Label at a position of the plan; its number where the instance has no such label."""
    return axis[position] if 0 <= position < len(axis) else f"#{position}"
