"""Movable running jobs (job placement) as pending ones: the problem in which a move is a second placement.

A movable job becomes a further pending job of no value, with its tasks as they run now. It may go where its GPU type is
in its region, and stays as close together as it is: within one server, or one rack, if it is so now. It counts in the
last tier, so that it takes only what is free and what other moves free, never what a victim frees.
"""

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import NO_MOVE_LIMITS, NOTHING_MOVES, JobPlacement
from mast_opt.problems.job_placement.units import CLUSTER, GPU, RACK, SERVER, Bools, Ints

_ROWS = ("job", "server", "tasks", "gpu_index", "indexed")
_MOVED = ("moved", "moved_server", "moved_tasks", "moved_gpu_index", "moved_indexed")


@dataclass(frozen=True, eq=False)
class MovableJobs:
    """The problem with its M movable jobs behind the J pending ones; the problem itself where nothing may move."""

    problem: JobPlacement
    stated: JobPlacement
    """The problem as it was given."""
    running: Ints
    """[M] running job of each."""
    restart_mgpu_hours: Ints
    """GPU-hours that a restart loses, in thousandths, [M]."""

    @property
    def first(self) -> int:
        """J, the position of the first movable running job among the jobs of ``problem``."""
        return len(self.stated.jobs)

    def moved(self, plan: Plan) -> Bools:
        """Mask [V] of the running jobs that a plan of the problem as stated moves."""
        moved = np.zeros(len(self.stated.running), np.bool_)
        moved[plan.moved] = True
        return moved

    def joined(self, plan: Plan) -> Plan:
        """The job-placement plan as one of ``problem``; rows of jobs that are not movable are left out."""
        if not len(plan.moved):
            return plan
        at = np.full(len(self.stated.running), -1)
        at[self.running] = self.first + np.arange(len(self.running))
        known = at[plan.moved] >= 0
        rows = {
            name: np.concatenate([getattr(plan, name), getattr(plan, moved)[known]])
            for name, moved in zip(_ROWS[1:], _MOVED[1:])
        }
        return Plan(job=np.concatenate([plan.job, at[plan.moved[known]]]), preempt=plan.preempt, **rows)

    def split(self, plan: Plan) -> Plan:
        """A job-placement plan of ``problem`` as one of the problem as stated."""
        if not len(self.running):
            return plan
        moves = plan.job >= self.first
        kept = {name: getattr(plan, name)[~moves] for name in _ROWS}
        gone = {name: getattr(plan, row)[moves] for row, name in zip(_ROWS, _MOVED)}
        gone["moved"] = self.running[gone["moved"] - self.first]
        return Plan(preempt=plan.preempt, **kept, **gone)


def without_moves(problem: JobPlacement) -> JobPlacement:
    """The problem in which no running job may be moved."""
    return replace(problem, movable=NOTHING_MOVES, move_limits=NO_MOVE_LIMITS) if len(problem.movable) else problem


def movable_jobs(problem: JobPlacement) -> MovableJobs:
    """The movable jobs of a problem."""
    p, movable = problem.standing, problem.movable
    if not len(movable):
        return MovableJobs(p, p, movable.running, movable.restart_mgpu_hours)
    count, first = len(movable), len(p.jobs)
    new = first + np.arange(count)
    row = _first_row(p)
    region, kind = p.server_region[p.allocations.server[row]], p.servers.gpu_type[p.allocations.server[row]]
    need = p.allocations.need[row]
    homes, home = np.unique(region, return_inverse=True)
    at_home = homes[:, None] == np.arange(len(p.regions))
    tasks = np.bincount(p.allocations.running, weights=p.allocations.tasks, minlength=len(p.running))
    zero = np.zeros(count, np.int64)
    jobs = p.jobs.appended(
        labels=[p.running.labels[v] for v in movable.running.tolist()],
        tier=zero + len(p.tiers) - 1,
        value_milli=zero,
        tasks=tasks[movable.running].astype(np.int64),
        cpu_mcores=need[:, 1],
        memory_mib=need[:, 2],
        within=_closeness(p),
        prefer=zero + SERVER,
        tenant=p.running.tenant[movable.running],
    )
    datasets = p.datasets.appended(labels=_unused(p, homes), stored=at_home, residency=at_home)
    extended = replace(
        p,
        jobs=jobs,
        datasets=datasets,
        options=p.options.appended(job=new, gpu_type=kind, mgpu=need[:, GPU]),
        reads=p.reads.appended(job=new, dataset=len(p.datasets) + home, mb_per_day=zero),
        movable=NOTHING_MOVES,
        move_limits=NO_MOVE_LIMITS,
    )
    return MovableJobs(extended, p, movable.running, movable.restart_mgpu_hours)


def _first_row(problem: JobPlacement) -> Ints:
    """[M] an allocation of each movable job; all of them are alike."""
    found = np.zeros(len(problem.running), np.int64)
    found[problem.allocations.running] = np.arange(len(problem.allocations))
    return found[problem.movable.running]


def _closeness(problem: JobPlacement) -> Ints:
    """[M] the level within which each movable job is now."""
    p, running = problem, problem.movable.running
    level = np.full(len(p.running), CLUSTER)
    for at, place in ((RACK, p.servers.rack[p.allocations.server]), (SERVER, p.allocations.server)):
        pairs = np.unique(np.stack([p.allocations.running, place], axis=1), axis=0)
        level[np.bincount(pairs[:, 0], minlength=len(p.running)) == 1] = at
    return level[running]


def _unused(problem: JobPlacement, regions: Ints) -> tuple[str, ...]:
    """Names of datasets that stand for being in these regions."""
    taken = set(problem.datasets.labels)
    names = []
    for r in regions.tolist():
        name = f"state_in_{r}"
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return tuple(names)
