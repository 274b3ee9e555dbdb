"""Pollux (OSDI'21): how many GPUs each elastic job gets, by goodput.

A job's speedup is its goodput on a placement over its goodput on one GPU. The policy maximises the sum of speedups, or
their harmonic mean (fitness with p = −1). A size other than the present one counts less, since restarting takes time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Status
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.goodput import Goodput
from mast_opt.live.policies.node_sizes import packed, sizes, spanned
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import names

POLICIES = {"sum": "total-rate", "harmonic": "harmonic"}
"""Objective → policy of resource allocation."""


@dataclass(frozen=True)
class Placement:
    """GPUs of the jobs on N nodes. What is solved for is None where there is no solution."""

    status: Status
    objective: float | None
    """Sum or harmonic mean of the speedups."""
    bound: float | None
    """Proven limit from above."""
    gpus: IntArray | None
    """[J] 0 for a job that waits."""
    on_node: IntArray | None
    """[J, N]"""
    speedup: FloatArray | None
    """[J] over one GPU, with the factor for restarting."""


def speedups(jobs: Sequence[Goodput], nodes: int, gpus_per_node: int) -> FloatArray:
    """[J, S] goodput of each job on each of ``node_sizes.sizes`` over its goodput on one GPU.

    Raises UsageError for a job that cannot run on one GPU.
    """
    able = sizes(nodes, gpus_per_node)
    spans = spanned(able, gpus_per_node)
    table = np.array([[job.best(n, r) for n, r in zip(spans.tolist(), able.tolist())] for job in jobs])
    if (table[:, 0] <= 0).any():
        raise UsageError(f"jobs[{int(np.argmin(table[:, 0]))}] has no batch for one GPU; expected one that fits")
    ratios: FloatArray = table / table[:, :1]
    return ratios


def restart_factor(age_s: ArrayLike, restarts: ArrayLike, restart_s: float) -> FloatArray:
    """[J] what remains of a speedup if the job is restarted: (age − restarts · restart_s)/(age + restart_s), ≥ 0."""
    age = numbers("age_s", age_s, (None,))
    often = numbers("restarts", restarts, age.shape)
    factor: FloatArray = np.clip((age - often * restart_s) / (age + restart_s), 0.0, None)
    return factor


def solve(
    speedup: ArrayLike,
    nodes: int,
    gpus_per_node: int,
    *,
    objective: str = "sum",
    current: ArrayLike | None = None,
    factor: ArrayLike = 1.0,
    solver: str = "highs",
    **limits: Unpack[SolveLimits],
) -> Placement:
    """Pollux' placement: the best sizes, and nodes for them.

    Args:
        speedup: [J, S] as by ``speedups``.
        nodes, gpus_per_node: equal nodes.
        objective: ``sum``, or ``harmonic``, under which every job runs.
        current: [J] GPUs that each job holds, 0 for none.
        factor: [J] on the speedup of a job that changes its size while it holds GPUs.
        solver, limits: as in ``mast_opt.solve``; the gap is 1e-6 unless stated.
    """
    program = tables(speedup, nodes, gpus_per_node, objective=objective, current=current, factor=factor)
    found = program.solve(solver, **limits)
    if found.share is None or found.objective is None:
        return Placement(found.status, None, None, None, None, None)
    jobs, taken = len(program.jobs["labels"]), found.share > 0.5
    running = program.members["job"][taken]
    gpus, ratio = np.zeros(jobs, np.int64), np.zeros(jobs)
    gpus[running] = program.uses["amount"][taken]
    ratio[running] = program.members["rate"][taken]
    harmonic = objective == "harmonic"
    values = [jobs / value if harmonic and value else value for value in (found.objective, found.bound)]
    return Placement(found.status, values[0], values[1], gpus, packed(gpus, nodes, gpus_per_node), ratio)


def tables(
    speedup: ArrayLike,
    nodes: int,
    gpus_per_node: int,
    *,
    objective: str = "sum",
    current: ArrayLike | None = None,
    factor: ArrayLike = 1.0,
) -> Program:
    """The program of the policy Pollux: a configuration for each job and size with a speedup above 0."""
    if objective not in POLICIES:
        raise UsageError(f"objective is {objective!r}; expected one of: {', '.join(POLICIES)}")
    able = sizes(nodes, gpus_per_node)
    worth = numbers("speedup", speedup, (None, len(able)))
    held = numbers("current", 0.0 if current is None else current, (len(worth),))[:, None]
    stays = (held == 0) | (held == able)
    worth = np.where(stays, worth, worth * numbers("factor", factor, (len(worth),))[:, None])
    job, size = np.nonzero(worth > 0)
    every = np.arange(len(job))
    label = [f"j{j}-{able[s]}" for j, s in zip(job.tolist(), size.tolist())]
    return Program(
        policy=POLICIES[objective],
        whole=True,
        resources={"labels": ["gpu"], "amount": [float(nodes * gpus_per_node)]},
        jobs={"labels": names("j", len(worth))},
        configurations={"labels": label},
        members={"configuration": every, "job": job, "rate": worth[job, size]},
        uses={"configuration": every, "resource": np.zeros(len(job), np.int64), "amount": able[size]},
    )
