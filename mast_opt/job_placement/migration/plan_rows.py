"""Migration steps of a job-placement plan as rows: what is stopped first, and what starts then."""

from __future__ import annotations

import numpy as np

from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import GPU, WHOLE
from mast_opt.kind.migration_plan import Move, Order


def migration_plan(problem: JobPlacement, plan: Plan) -> Order:
    """Every stop before every start, since a start may need the room of any victim; starts in queue order.

    Nothing can be in the way: victims hold their room until they stop, and what starts fits into what is then free.
    The amounts are GPUs.
    """
    p = problem
    stopped = np.flatnonzero(plan.preempt).tolist()
    held = np.bincount(p.allocations.running, weights=p.held[:, GPU], minlength=len(p.running)) / WHOLE
    moves = [
        Move(
            0,
            "stop",
            p.running.labels[v],
            _at(p, p.allocations.server[p.allocations.running == v]),
            None,
            float(held[v]),
            unit="GPUs",
        )
        for v in stopped
    ]
    gpus = p.need_mgpu[plan.job, p.servers.gpu_type[plan.server]] * plan.tasks / WHOLE
    rank = np.empty(len(p.jobs), np.int64)
    rank[p.order] = np.arange(len(p.jobs))
    for j in sorted(set(plan.job.tolist()), key=rank.__getitem__):
        rows = plan.job == j
        amount = float(gpus[rows].sum())
        moves.append(
            Move(int(bool(stopped)), "start", p.jobs.labels[j], None, _at(p, plan.server[rows]), amount, unit="GPUs")
        )
    return Order(tuple(moves), unit="GPUs")


def _at(problem: JobPlacement, servers: np.ndarray) -> str | None:
    """The servers by name while they are few, else how many of which cluster."""
    names = sorted({problem.servers.labels[s] for s in servers.tolist()})
    if len(names) <= 3:
        return ", ".join(names) or None
    clusters = sorted({problem.clusters.labels[problem.server_cluster[s]] for s in servers.tolist()})
    return f"{len(names)} servers of {', '.join(clusters)}"
