"""Synergy (OSDI'22): CPUs and memory for each job, beyond what is proportional to its GPUs.

Phase 1 (``solve``) gives each job one of the points (CPUs, memory) at which its rate was measured: the highest total
rate where no job is slower than at its fair point. Phase 2 (``place``) spreads the jobs over servers by a linear
program and rounds: a vertex splits at most three jobs for each server. ``tune`` is a heuristic after the paper's.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import names

SLACK = 1e-9
"""Relative excess over a capacity that is rounding."""


@dataclass(frozen=True)
class Points:
    """Points of the jobs; what is solved for is None where there is no solution."""

    status: Status
    total_rate: float | None
    bound: float | None
    """Proven limit from above."""
    share: FloatArray | None
    """[J, P] of each point; 0 or 1 where shares are whole."""
    rate: FloatArray | None
    """Rate of each job, [J]."""

    @property
    def split(self) -> int | None:
        """Jobs that have several points in turn, which rounding has to settle."""
        return None if self.share is None else int(((self.share > SLACK) & (self.share < 1 - SLACK)).any(axis=1).sum())


@dataclass(frozen=True)
class Servers:
    """Servers of the jobs; what is solved for is None where the needs cannot be met even by splitting jobs."""

    status: Status
    server: IntArray | None
    """Server of each job, [J]."""
    split: int | None
    """Jobs that the linear program spread over several servers; they were rounded."""
    overuse: FloatArray | None
    """[S, K] use beyond what a server has, which rounding may cause; 0 mostly."""


def solve(
    rate: ArrayLike, points: ArrayLike, fair: ArrayLike, totals: ArrayLike, *, whole: bool = True, solver: str = "highs"
) -> Points:
    """Phase 1 of Synergy: a point for each job, as if all servers were one.

    Args:
        rate: [J, P] of each job at each point; 0 where it cannot run.
        points: [P, K] amount of each resource, such as CPUs and memory.
        fair: [J] position of the point proportional to the job's GPUs; no job is slower than there.
        totals: [K] what there is of each resource.
        whole: one point for each job; otherwise parts of the time on several.
        solver: as in ``mast_opt.solve``.
    """
    speed = numbers("rate", rate, (None, None))
    found = tables(speed, points, fair, totals, whole=whole).solve(solver)
    if found.share is None:
        return Points(found.status, None, None, None, None)
    share = np.zeros(speed.shape)
    share[speed > 0] = found.share
    return Points(found.status, found.objective, found.bound, share, found.rate)


def tables(rate: ArrayLike, points: ArrayLike, fair: ArrayLike, totals: ArrayLike, *, whole: bool = True) -> Program:
    """The program of phase 1 of the policy Synergy: a configuration for each job and point with a rate above 0."""
    speed, amount, at, total = _inputs(rate, points, fair, totals)
    job, point = np.nonzero(speed > 0)
    label = [f"j{j}-p{p}" for j, p in zip(job.tolist(), point.tolist())]
    configuration, resource = np.nonzero(amount[point] > 0)
    return Program(
        policy="total-rate",
        whole=whole,
        resources={"labels": names("k", len(total)), "amount": total},
        jobs={
            "labels": names("j", len(speed)),
            "required": True,
            "min_rate": speed[np.arange(len(speed)), at],
        },
        configurations={"labels": label},
        members={"configuration": np.arange(len(job)), "job": job, "rate": speed[job, point]},
        uses={
            "configuration": configuration,
            "resource": resource,
            "amount": amount[point][configuration, resource],
        },
    )


def place(need: ArrayLike, servers: ArrayLike, *, solver: str = "highs") -> Servers:
    """Phase 2 of Synergy: a server for each job.

    The linear program places jobs in parts. A job in one part stays there; the others go, largest first, to the server
    with most room for them, and what that puts beyond a server's capacity is reported.

    Args:
        need: [J, K] of each job, GPUs among the resources.
        servers: [S, K] what each server has.
        solver: as in ``mast_opt.solve``.
    """
    room = numbers("servers", servers, (None, None))
    wanted = numbers("need", need, (None, room.shape[1]))
    found = placement_tables(wanted, room).solve(solver)
    if found.share is None:
        return Servers(found.status, None, None, None)
    part = found.share.reshape(len(wanted), len(room))
    server = np.argmax(part, axis=1)
    split = part.max(axis=1) < 1 - SLACK
    left = room - _used(wanted[~split], server[~split], len(room))
    scale = np.maximum(room.max(axis=0), SLACK)
    for job in np.flatnonzero(split)[np.argsort(-(wanted[split] / scale).max(axis=1), kind="stable")].tolist():
        lacking = np.clip(wanted[job] - left, 0.0, None) / scale
        server[job] = np.lexsort((-(left / scale).sum(axis=1), lacking.sum(axis=1)))[0]
        left[server[job]] -= wanted[job]
    return Servers(found.status, server, int(split.sum()), np.where(left < -SLACK * scale, -left, 0.0))


def placement_tables(need: FloatArray, servers: FloatArray) -> Program:
    """The program of phase 2 of the policy Synergy: a configuration for each job and server, and nothing to
    minimise.
    """
    jobs, places = names("j", len(need)), len(servers)
    resources = [f"s{s}-k{k}" for s in range(places) for k in range(servers.shape[1])]
    label = [f"{job}-s{s}" for job in jobs for s in range(places)]
    job, server, kind = (axis.ravel() for axis in np.indices((len(need), places, servers.shape[1])))
    used = need[job, kind] > 0
    job, server, kind = job[used], server[used], kind[used]
    return Program(
        policy="cost",
        resources={"labels": resources, "amount": servers.ravel()},
        jobs={"labels": jobs, "required": True},
        configurations={"labels": label},
        members={
            "configuration": np.arange(len(label)),
            "job": np.repeat(np.arange(len(need)), places),
            "rate": np.ones(len(label)),
        },
        uses={
            "configuration": job * places + server,
            "resource": server * servers.shape[1] + kind,
            "amount": need[job, kind],
        },
    )


def proportional(rate: ArrayLike, fair: ArrayLike) -> float:
    """Total rate if each job has its fair point of CPUs and memory."""
    speed = numbers("rate", rate, (None, None))
    return float(speed[np.arange(len(speed)), np.asarray(fair, np.int64)].sum())


def tune(rate: ArrayLike, points: ArrayLike, fair: ArrayLike, totals: ArrayLike, gpus: ArrayLike = 1.0) -> IntArray:
    """[J] points by a heuristic after the paper's TUNE; no job is slower than at its fair point.

    Each job gives back what it does not need for its fair rate: it takes the least point that is as fast. Then each,
    most GPUs first, takes the fastest point for which what is left suffices.

    Args:
        rate, points, fair, totals: as in ``solve``.
        gpus: [J] GPUs of each job.

    Raises:
        UsageError: the fair points do not fit.
    """
    speed, amount, at, total = _inputs(rate, points, fair, totals)
    size = numbers("gpus", gpus, (len(speed),))
    limit = total * (1 + SLACK)
    if (amount[at].sum(axis=0) > limit).any():
        raise UsageError("the fair points need more than there is; expected fair points that fit together")
    weight = (amount / np.maximum(total, SLACK)).max(axis=1)
    frugal = (amount[None] <= amount[at][:, None]).all(axis=2) & (speed >= speed[np.arange(len(speed)), at][:, None])
    point: IntArray = np.where(frugal, weight, np.inf).argmin(axis=1)
    left = limit - amount[point].sum(axis=0)
    for job in np.argsort(-size, kind="stable").tolist():
        able = (amount - amount[point[job]] <= left).all(axis=1)
        chosen = np.lexsort((weight, -np.where(able, speed[job], -1.0)))[0]
        left = left + amount[point[job]] - amount[chosen]
        point[job] = chosen
    return point


def _inputs(
    rate: ArrayLike, points: ArrayLike, fair: ArrayLike, totals: ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Rates [J, P], points [P, K], fair points [J] and totals [K] of Synergy, checked. Raises UsageError."""
    speed = numbers("rate", rate, (None, None))
    total = numbers("totals", totals, (None,))
    amount = numbers("points", points, (speed.shape[1], len(total)))
    at = np.broadcast_to(np.asarray(fair, np.int64), (len(speed),))
    if len(at) and not 0 <= at.min() <= at.max() < len(amount):
        raise UsageError(f"fair is {at.tolist()}; expected a position in points for each job")
    return speed, amount, at, total


def _used(need: FloatArray, server: IntArray, servers: int) -> FloatArray:
    """[S, K] what Synergy's jobs use on their servers."""
    used = np.zeros((servers, need.shape[1]))
    np.add.at(used, server, need)
    return used
