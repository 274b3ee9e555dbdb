"""Tiresias (NSDI'19): the order in which jobs of unknown length get GPUs, by the service that they have attained.

Service is two-dimensional: GPUs × time. Least attained service comes first (2D-LAS); with a record of past jobs, the
highest Gittins index does. Queues make the order coarse, so that jobs do not displace one another all the time. There
is no program: a ``Rule`` gives keys, ``runs`` who has GPUs now, ``replay`` what an order does to completion times.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.live.policies.arguments import numbers


@dataclass(frozen=True)
class Waiting:
    """Quantities of the jobs that an order may look at, [J] each; a quantity that nobody knows is infinite."""

    gpus: FloatArray
    """GPUs that the job holds while it runs."""
    attained: FloatArray
    """GPU-seconds that it has had."""
    remaining: FloatArray
    """Seconds that it has to run; only orders that know durations look at it."""


Rule = Callable[[Waiting], FloatArray]
"""(jobs) → keys [J]; the lowest comes first, and ties go by position."""


def fewest_gpus(jobs: Waiting) -> FloatArray:
    """Keys of Tiresias' order: smallest job first."""
    return jobs.gpus


def least_remaining_time(jobs: Waiting) -> FloatArray:
    """Keys of Tiresias' order: shortest remaining time first (SRTF)."""
    return jobs.remaining


def least_remaining_service(jobs: Waiting) -> FloatArray:
    """Keys of Tiresias' order: shortest remaining GPUs × time first (SRSF)."""
    return jobs.gpus * jobs.remaining


def least_attained(jobs: Waiting) -> FloatArray:
    """Keys of Tiresias' order, 2D-LAS: least GPU-seconds attained first."""
    return jobs.attained


def queues(thresholds: ArrayLike) -> Rule:
    """Discretised 2D-LAS: a job is in the queue of its attained service, and first come, first served inside.

    Args:
        thresholds: ascending GPU-seconds at which a job falls into the next queue.

    Raises:
        UsageError: thresholds that do not ascend.
    """
    limits = numbers("thresholds", thresholds, (None,), above=0.0)
    if (np.diff(limits) <= 0).any():
        raise UsageError(f"thresholds are {limits.tolist()}; expected ascending numbers")
    return lambda jobs: np.searchsorted(limits, jobs.attained, side="right").astype(np.float64)


def gittins(history: ArrayLike) -> Rule:
    """Highest Gittins index first, for lengths that are distributed as in the past.

    Args:
        history: GPU-seconds that past jobs took in all, ≥ 1 of them.
    """
    past = np.sort(numbers("history", history, (None,), above=0.0))
    if not len(past):
        raise UsageError("history is empty; expected the service of at least one past job")
    return lambda jobs: -gittins_index(jobs.attained, past)


def gittins_index(attained: ArrayLike, history: ArrayLike) -> FloatArray:
    """[J] the Gittins index: the best ratio, over further services Δ, of P(done by then) to expected service.

        G(a) = max_Δ  P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]

    S is drawn from ``history``; the maximum is at a Δ that ends a past job. A job that has had more than any past one
    has index 0.

    Args:
        attained: [J] a, the service that each job has had.
        history: services of past jobs, in any order.
    """
    had = numbers("attained", attained, (None,))
    past = np.sort(numbers("history", history, (None,), above=0.0))
    return np.array([_index(past[past > a] - a) for a in had.tolist()])


def _index(further: FloatArray) -> float:
    """The Gittins index of a job whose further service is one of these, ascending, each as likely as the others."""
    if not len(further):
        return 0.0
    done = np.arange(1, len(further) + 1)
    spent = np.cumsum(further) + (len(further) - done) * further
    return float((done / spent).max())


def promoted(attained: ArrayLike, executed_s: ArrayLike, waited_s: ArrayLike, knob: float) -> FloatArray:
    """[J] attained service in which a job that has starved counts as new (PROMOTEKNOB).

    Args:
        attained: [J] GPU-seconds.
        executed_s: [J] seconds that each job has run.
        waited_s: [J] seconds since it last ran.
        knob: a job that waits ``knob`` times as long as it has run begins again at 0.
    """
    had = numbers("attained", attained, (None,))
    ran = numbers("executed_s", executed_s, had.shape)
    waited = numbers("waited_s", waited_s, had.shape)
    return np.where((had > 0) & (waited >= knob * ran), 0.0, had)


def order(keys: FloatArray) -> IntArray:
    """[J] positions of the jobs in Tiresias' order, first to last: by key, ties by position."""
    return np.argsort(keys, kind="stable")


def runs(keys: FloatArray, gpus: ArrayLike, capacity: float) -> BoolArray:
    """[J] who runs: in order, every job that fits into what those before it leave.

    Args:
        keys: [J] of a rule.
        gpus: [J] GPUs of each job, all or none.
        capacity: GPUs that there are.
    """
    wanted = numbers("gpus", gpus, keys.shape)
    chosen = np.zeros(len(keys), np.bool_)
    left = capacity
    for job in order(keys).tolist():
        if wanted[job] <= left:
            chosen[job] = True
            left -= wanted[job]
    return chosen


def replay(
    gpus: ArrayLike,
    duration_s: ArrayLike,
    capacity: float,
    rule: Rule,
    *,
    arrival_s: ArrayLike = 0.0,
    quantum_s: float = 1.0,
) -> FloatArray:
    """[J] completion times of the jobs, from their arrivals, if the order is taken again every quantum.

    A job that is stopped loses nothing. Who runs changes earlier than that if a job ends or arrives.

    Args:
        gpus: [J] GPUs of each job.
        duration_s: [J] seconds that it runs.
        capacity: GPUs that there are.
        rule: the order.
        arrival_s: [J] when it is submitted.
        quantum_s: seconds after which the order is taken again.

    Raises:
        UsageError: a job that needs more GPUs than there are.
    """
    wanted = numbers("gpus", gpus, (None,), above=0.0)
    duration = numbers("duration_s", duration_s, wanted.shape, above=0.0)
    arrival = numbers("arrival_s", arrival_s, wanted.shape)
    if quantum_s <= 0:
        raise UsageError(f"quantum_s is {quantum_s:g}; expected a number above 0")
    if (wanted > capacity).any():
        job = int(np.argmax(wanted))
        raise UsageError(f"gpus[{job}] is {wanted[job]:g}; expected at most the capacity, {capacity:g}")
    remaining, attained = np.array(duration), np.zeros(len(wanted))
    end, now = np.full(len(wanted), np.nan), float(arrival.min(initial=0.0))
    while np.isnan(end).any():
        here = np.flatnonzero(np.isnan(end) & (arrival <= now))
        later = arrival[arrival > now]
        if not len(here):
            now = float(later.min())
            continue
        keys = rule(Waiting(wanted[here], attained[here], remaining[here]))
        running = here[runs(keys, wanted[here], capacity)]
        step = min(quantum_s, float(remaining[running].min()), float(later.min(initial=np.inf)) - now)
        now += step
        remaining[running] -= step
        attained[running] += step * wanted[running]
        end[running[remaining[running] <= 1e-9 * duration[running]]] = now
    return end - arrival
