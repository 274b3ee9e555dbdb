"""Migration steps of a job-placement plan as rows: what moves, what is stopped then, and what starts at last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.migration.move_order import order_of_moves
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Ints
from mast_opt.problems.kind.migration_plan import Move, Order, Stopped


def migration_plan(problem: JobPlacement, plan: Plan) -> Order:
    """Moves wave by wave, then every stop before every start, since a start may need the room of any victim; starts in
    queue order.

    A running job moves when its target is free; where moves wait for one another, one of them stops first and starts
    at its target later, and is named as stopped. Nothing else can be in the way: moves need no room that a victim
    frees, victims hold their room until they stop, and what starts fits into what is then free. The amounts are GPUs.
    """
    p = problem
    held = np.bincount(p.allocations.running, weights=p.held[:, GPU], minlength=len(p.running)) / WHOLE
    moves, stopped, wave = _moves(p, plan, held)
    victims = np.flatnonzero(plan.preempt).tolist()
    moves += [
        Move(wave, "stop", p.running.labels[v], _before(p, v), None, float(held[v]), unit="GPUs") for v in victims
    ]
    gpus = p.need_mgpu[plan.job, p.servers.gpu_type[plan.server]] * plan.tasks / WHOLE
    rank = np.empty(len(p.jobs), np.int64)
    rank[p.order] = np.arange(len(p.jobs))
    wave += bool(victims)
    for j in sorted(set(plan.job.tolist()), key=rank.__getitem__):
        rows = plan.job == j
        amount, place = float(gpus[rows].sum()), servers_in_words(p, plan.server[rows])
        moves.append(Move(wave, "start", p.jobs.labels[j], None, place, amount, unit="GPUs"))
    return Order(tuple(moves), unit="GPUs", stopped=tuple(stopped))


def _moves(problem: JobPlacement, plan: Plan, held: NDArray[np.float64]) -> tuple[list[Move], list[Stopped], int]:
    """Rows of the moves, the jobs that stop on the way, and the number of waves."""
    p = problem
    order = order_of_moves(p, plan)
    gone = {v: at for at, v in order.stopped_before}
    moves: list[Move] = []
    wave = 0
    for at, movers in enumerate(order.waves):
        stops = [v for before, v in order.stopped_before if before == at]
        moves += [
            Move(wave, "stop", p.running.labels[v], _before(p, v), None, float(held[v]), unit="GPUs") for v in stops
        ]
        wave += bool(stops)
        for v in sorted(movers):
            target = servers_in_words(p, plan.moved_server[plan.moved == v])
            action, source = ("start", None) if v in gone else ("move", _before(p, v))
            moves.append(Move(wave, action, p.running.labels[v], source, target, float(held[v]), unit="GPUs"))
        wave += 1
    stopped = [Stopped(p.running.labels[v], 1.0, float(held[v]), 0, 0) for v in gone]
    return moves, stopped, wave


def _before(problem: JobPlacement, v: int) -> str | None:
    """Present place of a running job, in words."""
    return servers_in_words(problem, problem.allocations.server[problem.allocations.running == v])


def servers_in_words(problem: JobPlacement, servers: Ints) -> str | None:
    """The servers by name while they are few, else how many of which cluster."""
    names = sorted({problem.servers.labels[s] for s in servers.tolist()})
    if len(names) <= 3:
        return ", ".join(names) or None
    clusters = sorted({problem.clusters.labels[problem.server_cluster[s]] for s in servers.tolist()})
    return f"{len(names)} servers of {', '.join(clusters)}"
