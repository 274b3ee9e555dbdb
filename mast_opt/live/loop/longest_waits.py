"""Jobs that waited longest, and why: how much of the wait its region had enough free GPUs, and who started before
it."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from mast_opt.core.wording import percent
from mast_opt.live.loop.history import History, Steps, Wait
from mast_opt.problems.job_placement.units import WHOLE


@dataclass(frozen=True, slots=True)
class LongWait:
    """All waits of a job together."""

    job: str
    tier: int
    gpus: float
    region: str
    """Region where it waited longest; empty where that is not known."""
    submitted_ms: int
    waited_ms: int
    attempts: int
    """Number of times that it has begun to wait."""
    open: bool
    why: str


def longest_waits(found: History, most: int, without: Collection[str] = ()) -> tuple[LongWait, ...]:
    """The jobs that waited longest, those with equal waits in the order of the log.

    Args:
        most: how many; jobs that did not wait are not listed, unless they have still not started.
        without: jobs that are left out.
    """
    waits, ranked = _ranked(found, without)
    reasons = _Reasons(found)
    return tuple(reasons.long_wait(job, waits[job]) for job in ranked[:most])


def longest_by_size(found: History, without: Collection[str] = ()) -> dict[int, LongWait]:
    """Size, see ``size_class``, ascending → the job of it that waited longest.

    Args:
        without: jobs that are left out.
    """
    waits, ranked = _ranked(found, without)
    first: dict[int, str] = {}
    for job in ranked:
        spec = found.jobs[job][0]
        first.setdefault(size_class(spec.stated_mgpu), job)
    reasons = _Reasons(found)
    return {size: reasons.long_wait(job, waits[job]) for size, job in sorted(first.items())}


def size_class(mgpu: int) -> int:
    """The class of jobs by their size: the least power of two that is not below their GPUs."""
    return 1 << max(0, -(-mgpu // WHOLE) - 1).bit_length()


def _ranked(found: History, without: Collection[str]) -> tuple[dict[str, list[Wait]], list[str]]:
    """(job → its waits, the jobs that waited or have still not started, the longest wait first)."""
    waits: dict[str, list[Wait]] = {}
    for wait in found.waits:
        if wait.job not in without:
            waits.setdefault(wait.job, []).append(wait)
    total = {job: _total_ms(own) for job, own in waits.items()}
    return waits, sorted((job for job, own in waits.items() if total[job] or own[-1].open), key=lambda job: -total[job])


def _total_ms(waits: list[Wait]) -> int:
    """Length of all waits of a job together."""
    return sum(wait.end_ms - wait.begin_ms for wait in waits)


class _Reasons:
    def __init__(self, found: History) -> None:
        self._found = found
        self._free: dict[str, Steps] = {}
        waits: dict[str, list[tuple[int, int, int]]] = {}
        for wait in found.waits:
            waits.setdefault(wait.region, []).append((wait.begin_ms, wait.end_ms, found.jobs[wait.job][1]))
        self._waits = {region: np.array(rows, np.int64) for region, rows in waits.items()}
        """Region → (begin, end, submission of the job) of every wait there."""

    def long_wait(self, name: str, waits: list[Wait]) -> LongWait:
        """Describe the long wait of a job."""
        spec, submitted = self._found.jobs[name]
        longest = max(waits, key=lambda wait: wait.end_ms - wait.begin_ms)
        mgpu = spec.stated_mgpu
        words = [longest.reason] if longest.reason else []
        if longest.region:
            words.append(self._room(longest, mgpu))
            words += self._others(longest, submitted)
        if len(waits) > 1:
            words.append(f"stopped {'once' if len(waits) == 2 else f'{len(waits) - 1:,} times'}")
        why = "; ".join(words)
        return LongWait(
            name,
            spec.tier,
            mgpu / WHOLE,
            longest.region,
            submitted,
            _total_ms(waits),
            len(waits),
            waits[-1].open,
            ("still waits; " if waits[-1].open else "") + why,
        )

    def _room(self, wait: Wait, mgpu: int) -> str:
        """Words on how long the region had enough free GPUs while a job waited."""
        free = self._free_in(wait.region)
        share = free.time_of_at_least(mgpu, wait.begin_ms, wait.end_ms) / max(wait.end_ms - wait.begin_ms, 1)
        gpus = f"{mgpu / WHOLE:g} free GPU{'s' * (mgpu > WHOLE)}"
        if share == 0:
            return f"{wait.region} never had {gpus}"
        if share == 1:
            return f"{wait.region} had {gpus} all the time, but not close enough together or not in its turn"
        return f"{wait.region} had {gpus} for {percent(share, 0)} of the wait"

    def _others(self, wait: Wait, submitted: int) -> list[str]:
        """Jobs of the log that waited in the same region meanwhile: those in front of it, and those that it
        let pass.
        """
        begin, end, came = self._waits[wait.region].T
        meanwhile = (begin < wait.end_ms) & (end > wait.begin_ms)
        earlier = int((meanwhile & (came < submitted)).sum())
        later = int(((end >= wait.begin_ms) & (end < wait.end_ms) & (came > submitted)).sum())
        words = [f"{earlier:,} that came earlier waited there too"] if earlier else []
        return words + ([f"{later:,} that came later started before it"] if later else [])

    def _free_in(self, region: str) -> Steps:
        """Time series of a log of the GPUs that are free in a region."""
        if region not in self._free:
            nothing = Steps(np.zeros(0, np.int64), np.zeros(0, np.int64))
            supply, held = (series.get(region, nothing) for series in (self._found.supply_mgpu, self._found.held_mgpu))
            times = np.union1d(supply.at_ms, held.at_ms)
            self._free[region] = Steps(times, supply.at(times) - held.at(times))
        return self._free[region]
