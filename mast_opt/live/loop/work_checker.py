"""Independent check of the work in a log: no attempt does more than its time and its GPUs allow, none ends too early.

It shares nothing with the simulated host: rates follow from the table of speeds by arithmetic of its own.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec

MICRO = 1_000_000
"""Work is counted in ms × millionths of the reference speed."""


@dataclass(slots=True)
class Hold:
    """The time for which an attempt held its servers."""

    begin_ms: int
    end_ms: int
    gpu_types: Collection[str]
    others: Sequence[tuple[int, JobSpec | None]] = ()
    """(time, partner on the same GPUs from then on), ascending; none before the first."""
    tasks: int | None = None
    """Tasks at the begin; None for those of the job's specification."""
    sizes: Sequence[tuple[int, int]] = ()
    """(time, tasks from then on), ascending, where it was resized."""

    @property
    def where(self) -> str:
        """GPU types of an attempt's servers in words."""
        shared = ", shared for a part of the time" if self.others else ""
        return f"{', '.join(sorted(self.gpu_types))}{shared}"


class WorkChecker:
    """Work that jobs have done so far.

    Args:
        durations: ``JobSpec.duration_ms`` is the truth, at the reference speed.
        speeds: (model, GPU type, tasks) → speed, in any unit; the fastest type is the reference type.
        packed: (model, other model, GPU type, tasks) → speed of the first while the other is on the same GPUs.
    """

    def __init__(
        self,
        durations: bool,
        speeds: Mapping[tuple[str, str, int], int],
        packed: Mapping[tuple[str, str, str, int], int],
    ) -> None:
        self._durations = durations
        self._speeds, self._packed = speeds, packed
        self._fastest: dict[tuple[str, int], int] = {}
        for (model, _, tasks), speed in speeds.items():
            self._fastest[model, tasks] = max(speed, self._fastest.get((model, tasks), 0))
        self._kept: dict[str, int] = {}

    def rate(
        self,
        spec: JobSpec,
        gpu_types: Collection[str],
        other: JobSpec | None = None,
        tasks: int | None = None,
    ) -> int:
        """Millionths of its reference speed at which a job of the log can work on servers of these types, where the
        other has the same GPUs, or with so many tasks.
        """
        fastest, tasks = self._fastest.get((spec.model, spec.tasks), 0), spec.tasks if tasks is None else tasks
        if not spec.model or not fastest:
            share, rest = divmod(tasks * MICRO, spec.tasks)
            return share + (2 * rest >= spec.tasks)
        if other is None:
            found = (self._speeds.get((spec.model, kind, tasks), 0) for kind in gpu_types)
        else:
            found = (self._packed.get((spec.model, other.model, kind, spec.tasks), 0) for kind in gpu_types)
        speed = min(found, default=0)
        share, rest = divmod(speed * MICRO, fastest)
        return share + (2 * rest >= fastest) or (1 if speed else 0)

    def stopped(self, spec: JobSpec, event: ev.Stopped, held: Hold) -> Iterator[str]:
        """Check the work of an attempt that was stopped."""
        held_ms = held.end_ms - held.begin_ms
        work, lost = event.work_ms, event.lost_ms
        kept_ms = work if event.work_time_ms is None else event.work_time_ms
        lost_ms = lost if event.lost_time_ms is None else event.lost_time_ms
        most = held_ms if held.tasks is None else self._done(spec, event.attempt, held, held_ms) // MICRO + 1
        if min(work, lost, kept_ms, lost_ms) < 0 or work + lost > most or kept_ms + lost_ms > held_ms:
            yield f"job {event.job} ran for {held_ms} ms; it cannot have done {work} ms of work and {lost} ms lost"
        before = self._kept.get(event.job, 0)
        if event.work_time_ms is None:
            done = work * MICRO
        else:
            done = self._done(spec, event.attempt, held, kept_ms)
            if (before + done) // MICRO - before // MICRO != work:
                yield f"job {event.job} worked for {kept_ms} ms on {held.where}; it cannot have kept {work} ms"
        self._kept[event.job] = before + done

    def finished(self, spec: JobSpec, event: ev.Finished, held: Hold) -> Iterator[str]:
        """Check the work of a job that has finished."""
        held_ms = held.end_ms - held.begin_ms
        worked_ms = held_ms if event.work_time_ms is None else event.work_time_ms
        if not 0 <= worked_ms <= held_ms:
            yield f"job {event.job} ran for {held_ms} ms; it cannot have worked for {worked_ms} ms"
        done = self._kept.pop(event.job, 0) + self._done(spec, event.attempt, held, worked_ms)
        if self._durations and spec.duration_ms is not None and done < spec.duration_ms * MICRO:
            yield f"job {event.job} has finished after {done // MICRO} of {spec.duration_ms} ms of work"

    def within_limit(self, spec: JobSpec, name: str, held: Hold) -> Iterator[str]:
        """Check how long an attempt ran: a simulated host ends jobs at their limits."""
        held_ms = held.end_ms - held.begin_ms
        longest_ms = spec.longest_ms
        if self._durations and longest_ms is not None and held_ms > longest_ms:
            yield f"job {name} ran for {held_ms} ms; its limit and grace are {longest_ms}"

    def _done(self, spec: JobSpec, attempt: int, held: Hold, worked_ms: int) -> int:
        """Work that an attempt of the log can do in so much time, in ms × millionths of the reference speed."""
        if held.sizes:
            return self._done_by_size(spec, attempt, held, worked_ms)
        first = held.begin_ms + (spec.restart_ms if attempt > 1 and held.others else 0)
        last = first + worked_ms
        done, at, other = 0, first, None
        for since_ms, following in held.others:
            until = min(max(since_ms, at), last)
            done += (until - at) * self.rate(spec, held.gpu_types, other)
            at, other = until, following
        return done + (last - at) * self.rate(spec, held.gpu_types, other, held.tasks)

    def _done_by_size(self, spec: JobSpec, attempt: int, held: Hold, worked_ms: int) -> int:
        """Work of an attempt of the log that was resized: it begins to work a restart after each change of size."""
        done, left_ms, tasks = 0, worked_ms, held.tasks
        begins = held.begin_ms + (spec.restart_ms if attempt > 1 else 0)
        for at_ms, following in (*held.sizes, (held.end_ms, None)):
            worked = min(left_ms, max(0, at_ms - begins))
            done += worked * self.rate(spec, held.gpu_types, tasks=tasks)
            left_ms, tasks, begins = left_ms - worked, following, at_ms + spec.restart_ms
        return done
