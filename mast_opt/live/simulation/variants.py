"""A trace at another load, or with jobs that come in another order."""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.live.simulation.traces.schema import MOST_MS
from mast_opt.live.simulation.traces.trace import JobTrace, Submissions
from mast_opt.problems.job_placement.units import Ints


def variant(trace: JobTrace, load: float = 1.0, seed: int = 0) -> JobTrace:
    """The trace with jobs that come so many times as fast, and in another order.

    Times of submission are divided by ``load`` (whole ms, downward); durations stay. A seed other than 0 exchanges the
    times of submission at random among the jobs of each home region: the same jobs, hence the same work in every
    region, at the same times, in another order.

    Raises:
        UsageError: the load is not above 0, or so small that times grow beyond what a trace may have.
    """
    if not load > 0 or not np.isfinite(load):
        raise UsageError(f"load is {load}; expected a number above 0", argument="load")
    jobs = trace.submissions
    if float(jobs.submitted_ms.max()) / load > MOST_MS:
        raise UsageError(
            f"load is {load}; expected more: times grow beyond {MOST_MS // 1000:,} seconds", argument="load"
        )
    times = jobs.submitted_ms if load == 1 else np.floor(jobs.submitted_ms / load).astype(np.int64)
    if seed:
        times = _exchanged(times, jobs, seed)
    if times is jobs.submitted_ms:
        return trace
    order = np.argsort(times, kind="stable")
    return replace(trace, submissions=replace(jobs_at(jobs, order), submitted_ms=times[order]))


def _exchanged(times: Ints, jobs: Submissions, seed: int) -> Ints:
    """[J] submission times of a trace, exchanged at random among the jobs of each home region."""
    rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(b"order of arrival")]))
    found, homes = times.copy(), np.array(jobs.home_region, dtype=object)
    for home in sorted(set(jobs.home_region)):
        mine = np.flatnonzero(homes == home)
        found[mine] = times[rng.permutation(mine)]
    return found


def jobs_at(jobs: Submissions, order: Ints) -> Submissions:
    """The trace's jobs at these positions, in this order."""
    place = np.full(len(jobs), -1, np.int64)
    place[order] = np.arange(len(order))

    def moved(value: Any) -> Any:  # noqa: ANN401 - a column
        if isinstance(value, Mapping):
            return {int(place[job]): one for job, one in value.items() if place[job] >= 0}
        return value[order] if isinstance(value, np.ndarray) else tuple(value[at] for at in order.tolist())

    columns = {item.name: getattr(jobs, item.name) for item in fields(jobs)}
    return replace(jobs, **{name: moved(value) for name, value in columns.items() if len(value) or name == "labels"})


def digest_of(trace: JobTrace) -> str:
    """A checksum of everything in a trace that a run depends on."""
    found = hashlib.blake2b(digest_size=16)
    jobs = trace.submissions
    found.update(repr((trace.regions, trace.servers)).encode())
    found.update(repr((sorted(trace.replicas.items()), trace.quotas.rows())).encode())
    found.update(repr((trace.surroundings, sorted(trace.speeds.alone.items()))).encode())
    for item in fields(jobs):
        value = getattr(jobs, item.name)
        found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(_plain(value)).encode())
    return found.hexdigest()


def _plain(value: object) -> object:
    """A value of a trace for its checksum: mappings in order."""
    if isinstance(value, Mapping):
        return [(key, _plain(one)) for key, one in sorted(value.items())]
    return value
