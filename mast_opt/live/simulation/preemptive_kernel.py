"""Compiled replay of one queue in which a job may be stopped for another one: SRTF, LAS.

At every instant at which something happens, all jobs are gone through in the policy's order. Each claims its GPUs of
all there are, as long as enough are left. Then those that wait and have a claim are placed, where servers with enough
GPUs are free or held by jobs that run without a claim. Those are stopped, unless nobody took their servers. A job
without a claim does not block those behind it; one with a claim that finds no servers keeps its claim, and waits.
Helios's simulator does this every second; there, who runs without a claim is stopped in any case.

A job that is stopped keeps its work up to its last checkpoint, and takes ``restart`` ms to get going again. Of jobs
with the same key those that run go first, so that none is stopped for another that takes as long; of those that wait,
the one that has waited longest.
"""

from __future__ import annotations

from typing import NamedTuple

from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import entry, kernel
from mast_opt.live.loop.job_log import FINISHED, STOPPED, SUBMITTED
from mast_opt.live.simulation import replay_state as rs
from mast_opt.live.simulation.server_levels import Ints, Servers

NEVER = 2**62


@by_reference
class Order(NamedTuple):
    """Lists of the jobs that wait and that run. Each list has the first in the policy's order at its end, where most
    come and go."""

    wait_key: Ints
    """Key of a waiting job: for SRTF ms until it would end, for LAS its level and its number."""
    wait_job: Ints
    run_key: Ints
    """Key of a running job: for SRTF the ms at which it ends, for LAS its level and its number."""
    run_job: Ints
    claims: Ints
    """Room for the waiting jobs that have a claim, in order; for each, its place in the list."""
    stops: Ints
    """Room for the running jobs that have none, likewise."""
    stopped: Ints
    """Room for the jobs that were stopped, in order."""
    thresholds: Ints
    """GPU-ms after which a job falls to the next level; SRTF has none."""


@kernel
def _insert(keys: Ints, jobs: Ints, size: int, key: int, job: int) -> None:
    """Put a job into a list with descending keys, in order after those with the same key."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] > key:
            low = middle + 1
        else:
            high = middle
    for at in range(size, low, -1):
        keys[at], jobs[at] = keys[at - 1], jobs[at - 1]
    keys[low], jobs[low] = key, job


@kernel
def _remove(keys: Ints, jobs: Ints, size: int, places: Ints, count: int) -> int:
    """Take out the jobs at these places, which descend. Returns how many are left."""
    if count == 0:
        return size
    left: int = places[count - 1]
    following = count - 2
    for at in range(left + 1, size):
        if following >= 0 and places[following] == at:
            following -= 1
        else:
            keys[left], jobs[left] = keys[at], jobs[at]
            left += 1
    return left


@kernel
def _level(thresholds: Ints, attained: int) -> int:
    """Number of thresholds that a job has passed."""
    level = 0
    while level < thresholds.size and thresholds[level] <= attained:
        level += 1
    return level


@kernel
def _falls_at(thresholds: Ints, attained: int, need: int, started: int) -> int:
    """Time when a job that holds that many GPUs from ``started`` on passes its next threshold."""
    level = _level(thresholds, attained)
    return NEVER if level == thresholds.size else started + (thresholds[level] - attained + need - 1) // need


@kernel
def _next_time(jobs: rs.QueueJobs, attempts: rs.Attempts, order: Order, at: Ints, las: bool, tick: int) -> int:
    """Time of the next event."""
    now = jobs.submitted[at[rs.COME]] if at[rs.COME] < jobs.submitted.size else NEVER
    if not las:
        return min(now, order.run_key[at[rs.RUNNING] - 1] + tick) if at[rs.RUNNING] > 0 else now
    for running in range(at[rs.RUNNING]):
        job = order.run_job[running]
        now = min(now, attempts.ends[job] + tick, attempts.falls[job])
    return now


@kernel
def _end_jobs(
    jobs: rs.QueueJobs, attempts: rs.Attempts, order: Order, servers: Servers, log: rs.Log, at: Ints, now: int,
    las: bool, tick: int,
) -> None:  # fmt: skip
    """Let jobs go that have ended; under SRTF they are the first ones."""
    ended = 0
    for running in range(at[rs.RUNNING] - 1, -1, -1):
        job = order.run_job[running]
        if attempts.ends[job] + tick == now:
            rs.free_up(servers, jobs, attempts, log, at, job)
            rs.write(log, at, now, FINISHED, job)
            at[rs.DEMAND] -= jobs.need[job]
            order.stops[ended] = running
            ended += 1
        elif not las:
            break
    at[rs.RUNNING] = _remove(order.run_key, order.run_job, at[rs.RUNNING], order.stops, ended)


@kernel
def _lower(jobs: rs.QueueJobs, attempts: rs.Attempts, order: Order, at: Ints, now: int) -> None:
    """Let running jobs fall that have passed a threshold."""
    first = at[rs.RUNNING] - 1
    while first >= 0:
        job = order.run_job[first]
        if attempts.falls[job] != now:
            first -= 1
            continue
        held = attempts.attained[job] + (now - attempts.started[job]) * jobs.need[job]
        attempts.falls[job] = _falls_at(order.thresholds, held, jobs.need[job], now)
        for other in range(first, at[rs.RUNNING] - 1):
            order.run_key[other], order.run_job[other] = order.run_key[other + 1], order.run_job[other + 1]
        key = _level(order.thresholds, held) * jobs.submitted.size + job
        _insert(order.run_key, order.run_job, at[rs.RUNNING] - 1, key, job)


@kernel
def _claim(jobs: rs.QueueJobs, order: Order, at: Ints, gpus: int, elapsed: int) -> tuple[int, int]:
    """Go through all jobs in order, with that many GPUs.

    ``elapsed``: what the keys of running jobs have fallen by.

    Returns:
        How many waiting jobs have a claim, and how many running ones have none.
    """
    if at[rs.DEMAND] <= gpus:
        for claim in range(at[rs.WAITING]):
            order.claims[claim] = at[rs.WAITING] - 1 - claim
        return at[rs.WAITING], 0
    quota, waiting, running, claims, stops = gpus, at[rs.WAITING] - 1, at[rs.RUNNING] - 1, 0, 0
    while (quota > 0 and waiting >= 0) or running >= 0:
        waits = waiting >= 0
        if waits and running >= 0:
            waits = order.wait_key[waiting] < order.run_key[running] - elapsed
        if waits:
            if jobs.need[order.wait_job[waiting]] <= quota:
                quota -= jobs.need[order.wait_job[waiting]]
                order.claims[claims] = waiting
                claims += 1
            waiting -= 1
        else:
            if jobs.need[order.run_job[running]] <= quota:
                quota -= jobs.need[order.run_job[running]]
            else:
                order.stops[stops] = running
                stops += 1
            running -= 1
    return claims, stops


@kernel
def _trade(
    jobs: rs.QueueJobs, attempts: rs.Attempts, order: Order, servers: Servers, log: rs.Log, at: Ints, claims: int,
    stops: int, elapsed: int, in_vain: bool,
) -> tuple[int, int]:  # fmt: skip
    """Give the jobs that have a claim their servers, also those of the jobs in ``stops``, in the policy's order.

    Returns:
        How many of the claims found servers, and how many jobs are stopped: those whose servers went to a job before
        them in the order, or all of ``stops`` where that is ``in_vain``.
    """
    for stop in range(stops):
        rs.free_up(servers, jobs, attempts, log, at, order.run_job[order.stops[stop]])
    claim, stop, placed, stopped = 0, 0, 0, 0
    while claim < claims or stop < stops:
        if _waits_first(order, claim, claims, stop, stops, elapsed):
            if rs.hold(servers, jobs, attempts, log, at, order.wait_job[order.claims[claim]]):
                order.claims[placed] = order.claims[claim]
                placed += 1
            claim += 1
        else:
            if in_vain or not rs.hold_again(servers, jobs, attempts, log, at, order.run_job[order.stops[stop]]):
                order.stops[stopped] = order.stops[stop]
                stopped += 1
            stop += 1
    return placed, stopped


@kernel
def _waits_first(order: Order, claim: int, claims: int, stop: int, stops: int, elapsed: int) -> bool:
    """Whether the next claim goes before the next job that may be stopped."""
    if claim == claims or stop == stops:
        return stop == stops
    return bool(order.wait_key[order.claims[claim]] < order.run_key[order.stops[stop]] - elapsed)


@kernel
def _stop(
    jobs: rs.QueueJobs, attempts: rs.Attempts, order: Order, log: rs.Log, at: Ints, now: int, stops: int, carried: bool
) -> None:
    """Stop the running jobs at the places in ``stops``, and keep them in ``stopped``."""
    for stop in range(stops):
        job = order.run_job[order.stops[stop]]
        held = now - attempts.started[job]
        work = max(0, held - attempts.delay[job])
        lost = work % jobs.checkpoint[job] if jobs.checkpoint[job] else 0
        attempts.left[job] -= work - lost
        attempts.delay[job] = jobs.restart[job] + (max(0, attempts.delay[job] - held) if carried else 0)
        attempts.attained[job] += held * jobs.need[job]
        log.stop_work[at[rs.STOPS]], log.stop_lost[at[rs.STOPS]] = work - lost, lost
        at[rs.STOPS] += 1
        rs.write(log, at, now, STOPPED, job)
        order.stopped[stop] = job
    at[rs.RUNNING] = _remove(order.run_key, order.run_job, at[rs.RUNNING], order.stops, stops)


@kernel
def _start(
    jobs: rs.QueueJobs, attempts: rs.Attempts, order: Order, log: rs.Log, at: Ints, now: int, placed: int, las: bool
) -> None:
    """Start the waiting jobs that found servers."""
    for claim in range(placed):
        waiting = order.claims[claim]
        job = order.wait_job[waiting]
        rs.write_placed(attempts, log, at, now, job)
        attempts.started[job] = now
        attempts.ends[job] = now + attempts.delay[job] + attempts.left[job]
        if las:
            attempts.falls[job] = _falls_at(order.thresholds, attempts.attained[job], jobs.need[job], now)
        key = order.wait_key[waiting] if las else attempts.ends[job]
        _insert(order.run_key, order.run_job, at[rs.RUNNING], key, job)
        at[rs.RUNNING] += 1
    at[rs.WAITING] = _remove(order.wait_key, order.wait_job, at[rs.WAITING], order.claims, placed)


@entry
def replay_preemptive(
    jobs: rs.QueueJobs, attempts: rs.Attempts, order: Order, servers: Servers, log: rs.Log, at: Ints, until: int,
    most_rows: int, las: bool, tick: int, carried: bool, in_vain: bool,
) -> bool:  # fmt: skip
    """Go on with a replay until it ends, until the time is up, or until the log has ``most_rows`` rows or is full.

    Args:
        las: least attained service; else shortest remaining time.
        tick: ms that it takes to notice that a job has ended.
        carried: a restart that was cut short is finished by the next attempt, in addition to that one's own.
        in_vain: jobs without a claim are stopped even where nobody takes their servers.

    Returns:
        Whether it has ended, or the time is up.
    """
    size, gpus = jobs.submitted.size, (servers.counts.size - 1) * servers.free.size
    while at[rs.COME] < size or at[rs.RUNNING] > 0:
        now = _next_time(jobs, attempts, order, at, las, tick)
        if now > until:
            break
        if (
            at[rs.ROWS] >= most_rows
            or at[rs.ROWS] + 2 * size > log.at_ms.size
            or at[rs.SHARES] + gpus > log.share_gpus.size
        ):
            return False
        at[rs.NOW] = now
        _end_jobs(jobs, attempts, order, servers, log, at, now, las, tick)
        while at[rs.COME] < size and jobs.submitted[at[rs.COME]] == now:
            job = at[rs.COME]
            rs.write(log, at, now, SUBMITTED, job)
            attempts.left[job] = jobs.duration[job]
            at[rs.DEMAND] += jobs.need[job]
            _insert(order.wait_key, order.wait_job, at[rs.WAITING], job if las else jobs.duration[job], job)
            at[rs.WAITING] += 1
            at[rs.COME] += 1
        if las:
            _lower(jobs, attempts, order, at, now)
        elapsed = 0 if las else now
        claims, stops = _claim(jobs, order, at, gpus, elapsed)
        placed, stops = _trade(jobs, attempts, order, servers, log, at, claims, stops, elapsed, in_vain)
        _stop(jobs, attempts, order, log, at, now, stops, carried)
        _start(jobs, attempts, order, log, at, now, placed, las)
        for stop in range(stops):
            job = order.stopped[stop]
            level = _level(order.thresholds, attempts.attained[job])
            key = level * size + job if las else attempts.delay[job] + attempts.left[job]
            _insert(order.wait_key, order.wait_job, at[rs.WAITING], key, job)
            at[rs.WAITING] += 1
    return True
