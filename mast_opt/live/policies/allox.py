"""AlloX (EuroSys'20): which machine runs which job, and in which order, at the least total completion time.

A job that is k-th from the end on its machine delays itself and the k − 1 jobs behind it, so it adds k times its
processing time to the sum of completion times. The choice of machines and places is therefore a least-cost matching of
jobs and places. ``solve`` finds it by scipy's assignment algorithm; ``tables`` states it as a resource allocation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import names

MARGIN = 2
"""Places on each machine at first, beyond its part of the jobs by mean speed; doubled where a machine fills all."""


@dataclass(frozen=True)
class Schedule:
    """Machines and places of the jobs. J counts jobs, M machines."""

    machine: IntArray
    """[J] −1 for a job that is not scheduled now."""
    from_end: IntArray
    """[J] 1 for the last job on its machine; 0 for a job that is not scheduled now."""
    completion_s: FloatArray
    """[J] from now; NaN for a job that is not scheduled now."""
    total_s: float
    """Σ of completion times and of what the jobs have waited so far."""

    def order(self, machine: int) -> IntArray:
        """The jobs of a machine in AlloX's schedule, first to last."""
        here = np.flatnonzero(self.machine == machine)
        return here[np.argsort(-self.from_end[here], kind="stable")]


def solve(
    processing_s: ArrayLike,
    *,
    waited_s: ArrayLike = 0.0,
    ready_s: ArrayLike = 0.0,
    progress: ArrayLike | None = None,
    alpha: float = 1.0,
) -> Schedule:
    """The schedule of the least total completion time; jobs are not stopped once they run.

    Args:
        processing_s: [J, M] seconds that each job takes on each machine; infinite where it cannot run.
        waited_s: [J] what each job has waited so far; it adds to the total and changes nothing else.
        ready_s: [M] when each machine can begin, from now.
        progress: [J] of the job's user; with ``alpha`` < 1, only jobs of users with least progress are candidates.
        alpha: share of the jobs that are candidates, above 0; at least one is.

    Raises:
        UsageError: a job that can run nowhere, or an ``alpha`` < 1 without ``progress``.
    """
    time, delay = _inputs(processing_s, waited_s)
    jobs, machines = time.shape
    ready = numbers("ready_s", ready_s, (machines,))
    candidates = np.flatnonzero(_candidates(jobs, progress, alpha))
    time_now = time[candidates]
    speed = np.where(np.isfinite(time_now), 1 / time_now, 0.0).mean(axis=0)
    places = np.minimum(np.ceil(len(candidates) * speed / speed.sum()).astype(np.int64) + MARGIN, len(candidates))
    while True:
        at = np.repeat(np.arange(machines), places)
        place = np.arange(len(at)) - np.repeat(np.cumsum(places) - places, places)
        cost = time_now[:, at] * (place + 1) + ready[at]
        row, slot = linear_sum_assignment(np.where(np.isfinite(cost), cost, _never(cost)))
        # An unused last place has price 0, and any place behind it costs every job more: it would change nothing.
        full = np.zeros(machines, np.bool_)
        full[at[slot[place[slot] == places[at[slot]] - 1]]] = True
        full &= places < len(candidates)
        if not full.any():
            break
        places[full] = np.minimum(2 * places[full], len(candidates))
    machine, from_end = np.full(jobs, -1), np.zeros(jobs, np.int64)
    machine[candidates[row]], from_end[candidates[row]] = at[slot], place[slot] + 1
    return _schedule(time, delay, ready, machine, from_end)


def tables(processing_s: ArrayLike, *, waited_s: ArrayLike = 0.0) -> Program:
    """The program of the policy AlloX as a resource allocation: one configuration for each job, machine and place from
    the end.

    The objective of the ``cost`` policy is the total without what the jobs have waited so far. J²·M configurations: for
    small instances and for comparisons.
    """
    time, _ = _inputs(processing_s, waited_s)
    jobs, machines = time.shape
    job, machine, place = (axis.ravel() for axis in np.indices((jobs, machines, jobs)))
    kept = np.isfinite(time[job, machine])
    job, machine, place = job[kept], machine[kept], place[kept]
    each = np.arange(len(job))
    label = [f"j{j}-m{m}-{p + 1}" for j, m, p in zip(job.tolist(), machine.tolist(), place.tolist())]
    return Program(
        policy="cost",
        whole=True,
        resources={"labels": [f"m{m}-{p + 1}" for m in range(machines) for p in range(jobs)], "amount": 1.0},
        jobs={"labels": names("j", jobs), "required": True},
        configurations={"labels": label, "cost": (place + 1) * time[job, machine]},
        members={"configuration": each, "job": job, "rate": 1 / time[job, machine]},
        uses={"configuration": each, "resource": machine * jobs + place, "amount": np.ones(len(job))},
    )


def _inputs(processing_s: ArrayLike, waited_s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Processing times [J, M] and waiting times [J] of AlloX's jobs, checked. Raises UsageError."""
    time = numbers("processing_s", processing_s, (None, None), above=0.0, infinite=True)
    nowhere = np.flatnonzero(~np.isfinite(time).any(axis=1))
    if len(nowhere):
        raise UsageError(f"processing_s[{nowhere[0]}] is infinite everywhere; expected a machine on which the job runs")
    return time, numbers("waited_s", waited_s, (len(time),))


def _candidates(jobs: int, progress: ArrayLike | None, alpha: float) -> BoolArray:
    """[J] jobs that AlloX may schedule now: those of users with least progress, a share ``alpha`` of all,
    rounded up.
    """
    if not 0 < alpha <= 1:
        raise UsageError(f"alpha is {alpha:g}; expected a number above 0, at most 1")
    if alpha == 1:
        return np.ones(jobs, np.bool_)
    if progress is None:
        raise UsageError(f"alpha is {alpha:g} and progress is not given; expected the progress of each job's user")
    made = numbers("progress", progress, (jobs,))
    chosen = np.zeros(jobs, np.bool_)
    chosen[np.argsort(made, kind="stable")[: int(np.ceil(alpha * jobs))]] = True
    return chosen


def _never(cost: FloatArray) -> float:
    """A cost that no least-cost matching of AlloX pays if it can pay finite ones."""
    return float(1 + cost[np.isfinite(cost)].max()) * (len(cost) + 1)


def _schedule(
    time: FloatArray, delay: FloatArray, ready: FloatArray, machine: IntArray, from_end: IntArray
) -> Schedule:
    """AlloX's schedule of jobs with these machines and places from the end, with completion times."""
    own = np.where(machine >= 0, time[np.arange(len(time)), machine], 0.0)
    order = np.lexsort((-from_end, machine))
    running = np.cumsum(own[order])
    first = np.r_[True, np.diff(machine[order]) != 0]
    before = np.maximum.accumulate(np.where(first, running - own[order], -np.inf))
    completion = np.full(len(time), np.nan)
    completion[order] = running - before + ready[machine[order]]
    completion[machine < 0] = np.nan
    return Schedule(machine, from_end, completion, float(np.nansum(completion) + delay[machine >= 0].sum()))
