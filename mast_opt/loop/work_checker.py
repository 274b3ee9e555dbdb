"""Independent check of the work in a log: no attempt does more than its time and its GPUs allow, none ends too early.

It shares nothing with the simulated host: rates follow from the table of speeds by arithmetic of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mast_opt.loop.events import Finished, JobSpec, Stopped

MICRO = 1_000_000
"""Work is counted in ms × millionths of the reference speed."""


class WorkChecker:
    """What jobs have done so far.

    Args:
        durations: ``JobSpec.duration_ms`` is the truth, at the reference speed.
        speeds: (model, GPU type, tasks) → speed, in any unit; the fastest type is the reference type.
    """

    def __init__(self, durations: bool, speeds: Mapping[tuple[str, str, int], int]) -> None:
        self._durations = durations
        self._speeds = speeds
        self._fastest: dict[tuple[str, int], int] = {}
        for (model, _, tasks), speed in speeds.items():
            self._fastest[model, tasks] = max(speed, self._fastest.get((model, tasks), 0))
        self._kept: dict[str, int] = {}

    def rate(self, spec: JobSpec, gpu_types: Collection[str]) -> int:
        """Millionths of its reference speed at which a job can work on servers of these types."""
        fastest = self._fastest.get((spec.model, spec.tasks), 0)
        if not spec.model or not fastest:
            return MICRO
        speed = min((self._speeds.get((spec.model, kind, spec.tasks), 0) for kind in gpu_types), default=0)
        share, rest = divmod(speed * MICRO, fastest)
        return share + (2 * rest >= fastest) or (1 if speed else 0)

    def stopped(self, spec: JobSpec, event: Stopped, held_ms: int, gpu_types: Collection[str]) -> Iterator[str]:
        """What is wrong with the work of an attempt that held its servers so long and was stopped."""
        work, lost = event.work_ms, event.lost_ms
        kept_ms = work if event.work_time_ms is None else event.work_time_ms
        lost_ms = lost if event.lost_time_ms is None else event.lost_time_ms
        if min(work, lost, kept_ms, lost_ms) < 0 or max(work + lost, kept_ms + lost_ms) > held_ms:
            yield f"job {event.job} ran for {held_ms} ms; it cannot have done {work} ms of work and {lost} ms lost"
        rate = self.rate(spec, gpu_types)
        before = self._kept.get(event.job, 0)
        if event.work_time_ms is None:
            done = work * MICRO
        else:
            done = kept_ms * rate
            if (before + done) // MICRO - before // MICRO != work:
                yield f"job {event.job} worked for {kept_ms} ms at {rate} millionths; it cannot have kept {work} ms"
        self._kept[event.job] = before + done

    def finished(self, spec: JobSpec, event: Finished, held_ms: int, gpu_types: Collection[str]) -> Iterator[str]:
        """What is wrong with the end of a job whose last attempt held its servers so long."""
        worked_ms = held_ms if event.work_time_ms is None else event.work_time_ms
        if not 0 <= worked_ms <= held_ms:
            yield f"job {event.job} ran for {held_ms} ms; it cannot have worked for {worked_ms} ms"
        done = self._kept.pop(event.job, 0) + worked_ms * self.rate(spec, gpu_types)
        if self._durations and spec.duration_ms is not None and done < spec.duration_ms * MICRO:
            yield f"job {event.job} has finished after {done // MICRO} of {spec.duration_ms} ms of work"
