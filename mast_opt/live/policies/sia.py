"""Sia (SOSP'23): GPU type and size of each elastic job, on a cluster of several types.

Each job chooses one of some configurations (GPUs, type), or none. With the goodputs of a job divided by its least,
times the fewest GPUs that it can run on, the policy minimises Σ goodput^p + λ for each job without GPUs if p < 0, and
maximises Σ goodput^p − λ for each such job if p > 0. Configurations other than the present one count less by a factor.
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


@dataclass(frozen=True)
class Choice:
    """Configurations of the jobs; what is solved for is None where there is no solution."""

    status: Status
    objective: float | None
    """Σ goodput^p, and λ for each job without GPUs."""
    bound: float | None
    configuration: IntArray | None
    """[J] position of the configuration; −1 for a job that waits."""


def normalised(goodput: ArrayLike, gpus: ArrayLike) -> FloatArray:
    """[J, C] goodput of each job over its least, times the fewest GPUs that it can run on; 0 where it cannot run.

    Args:
        goodput: [J, C] 0 where the job cannot run.
        gpus: [C] GPUs of each configuration.
    """
    size = numbers("gpus", gpus, (None,), above=0.0)
    rate = numbers("goodput", goodput, (None, len(size)))
    able = rate > 0
    nowhere = np.flatnonzero(~able.any(axis=1))
    if len(nowhere):
        raise UsageError(f"goodput[{nowhere[0]}] is 0 everywhere; expected a configuration in which the job runs")
    least = np.where(able, rate, np.inf).min(axis=1, keepdims=True)
    fewest = np.where(able, size, np.inf).min(axis=1, keepdims=True)
    worth: FloatArray = fewest * rate / least
    return worth


def solve(
    goodput: ArrayLike,
    gpus: ArrayLike,
    kind: ArrayLike,
    supply: ArrayLike,
    *,
    power: float = -0.5,
    waiting: float = 1.1,
    current: ArrayLike | None = None,
    factor: ArrayLike = 1.0,
    solver: str = "highs",
) -> Choice:
    """Sia's choice: the best configuration of each job, or none.

    Args:
        goodput: [J, C] of each job in each configuration; 0 where it cannot run.
        gpus: [C] GPUs of each configuration. Sizes that pack on nodes are ``node_sizes.sizes`` of each type.
        kind: [C] position of its GPU type.
        supply: [G] GPUs of each type.
        power: p; the lower, the fairer.
        waiting: λ, the penalty of a job without GPUs.
        current: [J] present configuration, −1 for none.
        factor: [J] on the goodput of a job that leaves its present configuration.
        solver: as in ``mast_opt.solve``.
    """
    worth = _worth(goodput, gpus, current, factor)
    found = _program(worth, gpus, kind, supply, power, waiting).solve(solver)
    if found.share is None or found.objective is None:
        return Choice(found.status, None, None, None)
    job, chosen = np.nonzero(worth > 0)
    taken = found.share[: len(job)] > 0.5
    position = np.full(len(worth), -1)
    position[job[taken]] = chosen[taken]
    added = waiting * len(worth) if power > 0 else 0.0
    return Choice(found.status, found.objective - added, None if found.bound is None else found.bound - added, position)


def tables(
    goodput: ArrayLike,
    gpus: ArrayLike,
    kind: ArrayLike,
    supply: ArrayLike,
    *,
    power: float = -0.5,
    waiting: float = 1.1,
    current: ArrayLike | None = None,
    factor: ArrayLike = 1.0,
) -> Program:
    """The program of the policy Sia: each job's configurations, and one without GPUs for each job.

    For p > 0 its objective is higher than that of ``solve`` by λ for each job, so that no rate is below 0.
    """
    return _program(_worth(goodput, gpus, current, factor), gpus, kind, supply, power, waiting)


def _worth(goodput: ArrayLike, gpus: ArrayLike, current: ArrayLike | None, factor: ArrayLike) -> FloatArray:
    """[J, C] normalised goodputs, with the factor where the configuration changes."""
    worth = normalised(goodput, gpus)
    held = np.full(len(worth), -1) if current is None else np.asarray(current, np.int64)
    stays = (held[:, None] == np.arange(worth.shape[1])) | (held[:, None] < 0)
    return np.where(stays, worth, worth * numbers("factor", factor, (len(worth),))[:, None])


def _program(
    worth: FloatArray, gpus: ArrayLike, kind: ArrayLike, supply: ArrayLike, power: float, waiting: float
) -> Program:
    """The program of the policy Sia for the worth [J, C] of jobs in configurations. Raises UsageError."""
    size = numbers("gpus", gpus, (None,), above=0.0)
    there = numbers("supply", supply, (None,))
    at = np.asarray(kind, np.int64)
    if at.shape != size.shape or (len(at) and not 0 <= at.min() <= at.max() < len(there)):
        raise UsageError(f"kind is {at.tolist()}; expected the position of a GPU type for each configuration")
    if power == 0 or not np.isfinite(power):
        raise UsageError(f"power is {power:g}; expected a finite number other than 0")
    job, chosen = np.nonzero(worth > 0)
    types, jobs = names("g", len(there)), names("j", len(worth))
    running = [f"j{j}-c{c}" for j, c in zip(job.tolist(), chosen.tolist())]
    label = running + [f"{name}-waits" for name in jobs]
    value = worth[job, chosen] ** power
    if power < 0:
        rate, cost = np.r_[worth[job, chosen], np.zeros(len(jobs))], np.r_[value, np.full(len(jobs), waiting)]
    else:
        rate, cost = np.r_[value + waiting, np.zeros(len(jobs))], np.zeros(len(label))
    return Program(
        policy="cost" if power < 0 else "total-rate",
        whole=True,
        resources={"labels": types, "amount": there},
        jobs={"labels": jobs, "required": True},
        configurations={"labels": label, "cost": cost},
        members={"configuration": np.arange(len(label)), "job": np.r_[job, np.arange(len(jobs))], "rate": rate},
        uses={"configuration": np.arange(len(job)), "resource": at[chosen], "amount": size[chosen]},
    )
