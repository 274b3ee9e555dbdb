"""Singularity (arXiv 2202.07848): GPUs of elastic jobs under service levels.

A job keeps its number of workers; on fewer GPUs they take turns, so it runs on n, n/2, n/4, … or no GPUs. Its tier
guarantees a fraction of its demand over time. What is left goes where the weights are highest.
"""

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.core.verdict import Conflict
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import names

GUARANTEES = {"premium": 0.95, "standard": 0.7, "basic": 0.0}
"""Tier → fraction of the demand that it is guaranteed; a reconstruction, to be replaced by one's own."""


@dataclass(frozen=True)
class Sized:
    """Sizes of the jobs over time; what is solved for is None where there is no solution."""

    status: Status
    objective: float | None
    """Σ weight · GPUs."""
    bound: float | None
    gpus: FloatArray | None
    """[J] on average over time, in GPUs that work for the job."""
    share: tuple[tuple[tuple[int, float], ...], ...] | None
    """Shares of each job: (GPUs, part of the time) of the sizes above 0 that it has."""
    conflicts: tuple[Conflict, ...] = ()
    """Reasons why there is no solution, where that shows before solving."""


def halves(demand: int) -> list[int]:
    """Sizes above 0 that Singularity can give to a job with so many workers: n, n/2, n/4, … while they are whole."""
    sizes = [demand]
    while sizes[-1] % 2 == 0:
        sizes.append(sizes[-1] // 2)
    return sizes


def tables(
    demand: ArrayLike,
    capacity: float,
    *,
    weight: ArrayLike = 1.0,
    guaranteed: ArrayLike = 0.0,
    overhead: float = 0.0,
    whole: bool = False,
) -> Program:
    """The program of the policy Singularity: a configuration for each job and size above 0."""
    wanted = numbers("demand", demand, (None,), above=0.0)
    if (wanted != np.floor(wanted)).any():
        raise UsageError(f"demand is {wanted.tolist()}; expected whole numbers of GPUs")
    floor = numbers("guaranteed", guaranteed, wanted.shape)
    if (floor > 1).any():
        raise UsageError(f"guaranteed[{int(np.argmax(floor))}] is {floor.max():g}; expected fractions from 0 to 1")
    if not 0 <= overhead < 1:
        raise UsageError(f"overhead is {overhead:g}; expected a number from 0, below 1")
    size = [(job, gpus) for job, most in enumerate(wanted.astype(int).tolist()) for gpus in halves(most)]
    at, gpus = (np.array(column) for column in zip(*size, strict=True))
    label = [f"j{job}-{held}" for job, held in size]
    return Program(
        policy="total-rate",
        whole=whole,
        resources={"labels": ["gpu"], "amount": [float(capacity)]},
        jobs={
            "labels": names("j", len(wanted)),
            "weight": numbers("weight", weight, wanted.shape, above=0.0),
            "min_rate": floor * wanted,
        },
        configurations={"labels": label},
        members={
            "configuration": np.arange(len(at)),
            "job": at,
            "rate": np.where(gpus < wanted[at], gpus * (1 - overhead), gpus),
        },
        uses={"configuration": np.arange(len(at)), "resource": np.zeros(len(at), np.int64), "amount": gpus},
    )


def solve(
    demand: ArrayLike,
    capacity: float,
    *,
    weight: ArrayLike = 1.0,
    guaranteed: ArrayLike = 0.0,
    overhead: float = 0.0,
    whole: bool = False,
    solver: str = "highs",
) -> Sized:
    """Sizes of elastic jobs (Singularity) of the highest Σ weight · GPUs under the guarantees.

    Args:
        demand: [J] workers, and the GPUs that they can use at most.
        capacity: GPUs that there are.
        weight: [J] worth of a GPU to the job.
        guaranteed: [J] fraction of its demand, as in ``GUARANTEES``.
        overhead: part of a GPU's work that is lost while workers take turns on it.
        whole: does each job keep one size, instead of several in turn?
        solver: as in ``mast_opt.solve``.
    """
    program = tables(demand, capacity, weight=weight, guaranteed=guaranteed, overhead=overhead, whole=whole)
    found = program.solve(solver)
    if found.share is None:
        return Sized(found.status, None, None, None, None, found.conflicts)
    parts = found.share.tolist()
    sizes = [halves(int(most)) for most in np.asarray(demand).tolist()]
    ends = np.cumsum([len(each) for each in sizes]).tolist()
    shares = tuple(
        tuple((gpus, part) for gpus, part in zip(each, parts[end - len(each) : end]) if part > 0)
        for each, end in zip(sizes, ends)
    )
    return Sized(found.status, found.objective, found.bound, found.rate, shares)


def fitted(
    job: IntArray,
    need: FloatArray,
    rate: FloatArray,
    asked: IntArray,
    tier: IntArray,
    floor: FloatArray,
    capacity: float,
) -> IntArray:
    """Sizes with which all jobs run at once, as far as they can, so that as few as possible take turns.

    Where they do not fit with what they ask for, jobs shrink by one size at a time: the least important tier first, and
    in a tier the largest job. Into GPUs that are left over they grow: the most important tier first, the smallest job.

    Args:
        job: [S] position of the job that may have a size; sizes of a job are next to one another, and ascend.
        need: [S] GPUs.
        rate: [S]; a job grows only to be faster.
        asked: [J] position of the size that each job asks for.
        tier: [J] 0 is the most important.
        floor: [J] part of its rate with that size below which a job is not shrunk.
        capacity: GPUs that there are.

    Returns:
        [J] position of the size that each job has.
    """
    size = asked.copy()
    left = capacity - float(need[size].sum())

    def change(members: list[int], by: int) -> None:
        """Let jobs shrink (by −1) until all fit, or grow (by 1) as long as one can."""
        nonlocal left
        queue = [(by * need[size[j]], by * j, j) for j in members]
        heapq.heapify(queue)
        while queue and (by > 0 or left < 0):
            _, _, j = heapq.heappop(queue)
            at, to = size[j], size[j] + by
            if not 0 <= to < len(job) or job[to] != j:
                continue
            more = float(need[to] - need[at])
            if rate[to] >= floor[j] * rate[asked[j]] if by < 0 else more <= left and rate[to] > rate[at]:
                size[j] = to
                left -= more
                heapq.heappush(queue, (by * need[to], by * j, j))

    of_tier = [np.flatnonzero(tier == one).tolist() for one in np.unique(tier)]
    for members in reversed(of_tier):
        change(members, -1)
    for members in of_tier:
        change(members, 1)
    return size
