"""Domain reduction of the job-placement MIP: tasks that a server could hold at most after all possible preemptions."""

import numpy as np

from mast_opt.problems.job_placement.formulation.index_sets import IndexSets, JobOptions
from mast_opt.problems.job_placement.movable_jobs import MovableJobs
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, WHOLE, Bools, Ints


def room_by_tier(movers: MovableJobs) -> Ints:
    """[S, 3, P] what is free, what victims less important than tier p hold, and what movable jobs hold."""
    p = movers.problem
    movable = np.zeros(len(p.running), np.bool_)
    movable[movers.running] = True
    room = np.repeat(p.free[:, :, None], len(p.tiers), axis=2)
    for tier in range(len(p.tiers)):
        gives = movable | (p.running.preemptible & (p.running.tier > tier))
        rows = gives[p.allocations.running]
        np.add.at(room[:, :, tier], p.allocations.server[rows], p.held[rows])
    return room


def most_tasks(movers: MovableJobs, cells: IndexSets) -> Ints:
    """[c] for each (job, server), most tasks of a job: no more than this can run there, and never more than the job
    has.
    """
    p, need = movers.problem, cells.need
    room = room_by_tier(movers)[cells.server, :, p.queue_tier[cells.job]]
    whole = room[:, GPU] // WHOLE // np.maximum(need[:, GPU] // WHOLE, 1)
    shared = room[:, GPU] // np.maximum(need[:, GPU], 1)
    most = np.where(need[:, GPU] >= WHOLE, whole, np.where(need[:, GPU] > 0, shared, p.jobs.tasks[cells.job]))
    for resource in (CPU, MEMORY):
        fits = room[:, resource] // np.maximum(need[:, resource], 1)
        most = np.where(need[:, resource] > 0, np.minimum(most, fits), most)
    return np.minimum(most, p.jobs.tasks[cells.job])


def possible_options(movers: MovableJobs, options: JobOptions) -> Bools:
    """Mask [o] of the options where all tasks of the job might fit, within the level that it must stay within."""
    from mast_opt.problems.job_placement.formulation.domain_reduction_kernel import (
        mark_possible,  # compiles with numba: only where it is needed
    )

    p, o = movers.problem, options
    order = np.lexsort((p.servers.rack, p.servers.gpu_type, p.server_cluster))
    group = (p.server_cluster * len(p.gpu_types) + p.servers.gpu_type)[order]
    own = o.cluster * len(p.gpu_types) + o.type
    possible = np.zeros(len(o.job), np.bool_)
    mark_possible(
        np.searchsorted(group, own),
        np.searchsorted(group, own, side="right"),
        p.servers.rack[order],
        room_by_tier(movers)[order],
        o.need,
        p.queue_tier[o.job],
        p.jobs.tasks[o.job],
        p.jobs.within[o.job],
        possible,
    )
    return possible
