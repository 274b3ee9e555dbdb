"""Reservations of a plan (job placement): the waiting jobs for which a live fleet would keep servers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.analysis.rejection_reasons import Obstacle, reasons
from mast_opt.problems.job_placement.fit_times import FOREVER
from mast_opt.problems.job_placement.gpu_assignment import read_devices
from mast_opt.problems.job_placement.live_fleet.types import Job, Share
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, Ints
from mast_opt.problems.job_placement.verification.measures import free_after

if TYPE_CHECKING:
    from mast_opt.problems.job_placement.live_fleet.fits_by import FitsBy
    from mast_opt.problems.job_placement.live_fleet.fleet import Fleet

MOST_LOOKED_AT = 200
"""Waiting jobs that may get one, in queue order."""


@dataclass(frozen=True)
class Reservation:
    """Reservation of a waiting job."""

    job: int
    """Its row of ``jobs``, the first one of a job of several parts."""
    region: int
    by_ms: int | None
    """Time from the plan at which it fits if all work ends at its limit, whoever waits before it; None where limits do
    not say. That of a job of several parts is one at which it is placed in a trial; it may fit before."""
    servers: tuple[str, ...]
    """Servers that would be kept for it; empty where the time is not known."""


def reservations(problem: JobPlacement, plan: Plan, waiting: Ints) -> dict[int, Reservation]:
    """Job → its reservation: one a region, for the first waiting job that other jobs alone keep out of it. A job that
    may run in several gets the one where it fits first.

    Args:
        waiting: rows of ``jobs`` in queue order; the first ``MOST_LOOKED_AT`` are looked at.
    """
    p, found, taken = problem, dict[int, Reservation](), set[int]()
    works: Works | None = None
    for j in waiting[:MOST_LOOKED_AT].tolist():
        if len(taken) == len(p.regions):
            break
        fits = [one.cluster for one in reasons(p, j) if one.obstacle is Obstacle.IN_USE]
        left = sorted({int(region) for region in p.clusters.region[fits]} - taken)
        if not left or p.first_part[j] != j:
            continue
        works = works or Works(p, plan)
        each = {region: works.fits_by(j, [region]) for region in left}
        times = {region: FOREVER if one is None else one.by_ms for region, one in each.items()}
        region = min(left, key=lambda one: (times[one], -works.free_mgpu[one]))
        first = each[region]
        found[j] = Reservation(j, region, first.by_ms if first else None, first.servers if first else ())
        taken.add(region)
    return found


def facts(problem: JobPlacement, plan: Plan) -> dict[str, Any]:
    """The reservations of the waiting jobs, for programs."""
    p = problem
    waiting = p.order[~np.isin(p.order, plan.job)]
    return {
        "reservations": [
            {
                "job": p.jobs.labels[j],
                "region": p.regions[one.region],
                "within_s": None if one.by_ms is None else one.by_ms / MILLI,
                "servers": list(one.servers),
            }
            for j, one in reservations(p, plan, waiting).items()
        ]
    }


class Works:
    """Work on every server after a plan: a row for each job and server, of fractions for each device."""

    def __init__(self, problem: JobPlacement, plan: Plan) -> None:
        p = self._p = problem
        self.free_mgpu = np.bincount(p.server_region, free_after(p, plan)[:, GPU], len(p.regions)).tolist()
        """[R] milli-GPUs that the plan leaves free."""
        leaves = plan.preempt.copy()
        leaves[plan.moved] = True
        stays = np.flatnonzero(~leaves[p.allocations.running])
        need_of = np.zeros((len(p.running), 3), np.int64)
        need_of[p.allocations.running] = p.allocations.need
        kind = p.servers.gpu_type[plan.server]
        asked = np.stack(
            [p.need_mgpu[plan.job, kind], p.jobs.cpu_mcores[plan.job], p.jobs.memory_mib[plan.job]], axis=1
        )
        running = np.concatenate([p.allocations.running[stays], plan.moved])
        self.job = [
            *(f"running {p.running.labels[v]}" for v in running.tolist()),
            *(p.jobs.labels[j] for j in plan.job),
        ]
        """Name of each row's job; those of running jobs say so, lest a pending one has the same."""
        self.tier = np.concatenate([p.running.tier[running], p.jobs.tier[plan.job]])
        self.tenant = np.concatenate([p.running.tenant[running], p.jobs.tenant[plan.job]])
        end = np.concatenate([p.running.ends_within_ms[running], p.jobs.limit_ms[plan.job]])
        self.end = np.where(end > 0, end, FOREVER)
        at = self._standing = p.standing
        self._tier = np.concatenate([at.running.tier[running], at.jobs.tier[plan.job]])
        self.stoppable = np.concatenate([at.running.preemptible[running], at.jobs.tier[plan.job] > 0])
        held = p.allocations
        self.server = np.concatenate([held.server[stays], plan.moved_server, plan.server])
        self.tasks = np.concatenate([held.tasks[stays], plan.moved_tasks, plan.tasks])
        self.need = np.concatenate([held.need[stays], need_of[plan.moved], asked])
        index = np.concatenate([held.gpu_index[stays], plan.moved_gpu_index, plan.gpu_index])
        indexed = np.concatenate([held.indexed[stays], plan.moved_indexed, plan.indexed])
        found = read_devices(p.servers.supply[:, GPU], self.server, self.tasks, self.need, index, indexed)
        self.mgpu_of: dict[int, dict[int, int]] = {}
        for row, device, mgpu in zip(found.row.tolist(), found.device.tolist(), found.mgpu.tolist()):
            self.mgpu_of.setdefault(row, {})[device] = mgpu

    def fits_by(self, j: int, regions: Sequence[int]) -> "FitsBy | None":
        """The one of these regions where a waiting job fits first, see ``Fleet.fits_by``; ``j`` is its row of ``jobs``,
        the first one where it has several parts."""
        job = replace(Job.of(self._standing, j), tenant="", datasets=(), read_mb_per_day={})
        return self._fleet.fits_by(job, 0, regions=[self._p.regions[r] for r in regions])

    @cached_property
    def _fleet(self) -> "Fleet":
        """The servers with this work, whose tiers say what quotas do; without data."""
        from mast_opt.problems.job_placement.live_fleet.conversion import servers_of
        from mast_opt.problems.job_placement.live_fleet.fleet import Fleet

        fleet = Fleet(servers_of(self._p), tiers=self._standing.tiers, placement="best-fit")
        for row, job, shares in self.jobs():
            tier = self._standing.tiers[self._tier[row]]
            fleet.adopt(replace(job, tier=tier, tenant=""), shares, started_ms=0)
        return fleet

    def jobs(self) -> Iterator[tuple[int, Job, tuple[Share, ...]]]:
        """(first row, job, its shares) of the work. Work with unlike tasks is a job for each sort of them and
        cluster."""
        p, rows_of = self._p, dict[tuple[object, ...], list[int]]()
        for row, name in enumerate(self.job):
            rows_of.setdefault((name, *self.need[row].tolist(), int(p.server_cluster[self.server[row]])), []).append(
                row
            )
        for number, ((name, *_), rows) in enumerate(rows_of.items()):
            first, shares = rows[0], dict[int, Share]()
            for row in rows:
                s, old = int(self.server[row]), shares.get(int(self.server[row]))
                gpus = dict(old.gpus) if old else {}
                for device, mgpu in self.mgpu_of.get(row, {}).items():
                    gpus[device] = gpus.get(device, 0) + mgpu
                shares[s] = Share(p.servers.labels[s], int(self.tasks[row]) + (old.tasks if old else 0), gpus)
            need, end_ms = self.need[first].tolist(), int(self.end[first])
            job = Job(
                f"{name} {number}",
                p.tiers[self.tier[first]],
                tasks=int(self.tasks[rows].sum()),
                mgpu=need[GPU],
                cpu_mcores=need[CPU],
                memory_mib=need[MEMORY],
                tenant=p.tenants[self.tenant[first]],
                preemptible=bool(self.stoppable[first]),
                limit_ms=None if end_ms == FOREVER else end_ms,
            )
            yield first, job, tuple(shares.values())
