"""Times when waiting jobs of the service start: what is promised, what a child process predicts, what would make it
sooner; and how far such words were from what came true."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import IO, Any

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.jobs import JobClasses, JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.start_errors import EXPECTED, USUALLY_BY, StartErrors
from mast_opt.live.loop.state import State
from mast_opt.live.policies.part_times import times_of
from mast_opt.problems.job_placement.fit_times import FOREVER
from mast_opt.problems.job_placement.live_fleet.answers import Bid

EVERY_S = 60.0
"""Seconds between two times that starts are predicted."""
MOST_S = 600.0
"""Seconds after which the child process that predicts starts hangs, and is ended."""
MOST_SERVERS = 2000
"""Servers in service up to which changes are looked at that make a job fit sooner, but not at once."""
Begin = Callable[[int, IO[bytes]], subprocess.Popen[bytes]]
"""Begins a process that predicts starts, given the time, and writes them to a file."""


class StartTimes:
    """Times that are said of starts.

    Args:
        begin: as it says; without it nothing is predicted.
    """

    def __init__(self, begin: Begin | None) -> None:
        self._begin = begin
        self._begun_s = -EVERY_S
        self._asking: tuple[subprocess.Popen[bytes], IO[bytes], int] | None = None
        self._known: dict[str, tuple[int | None, int | None]] = {}
        self._at_ms: int | None = None
        """Time of the state that starts were predicted from."""
        self.errors = StartErrors()

    def take(self, events: Iterable[ev.Stored]) -> None:
        """Take in events of the log."""
        for stored in events:
            self.errors.take(stored.at_ms, stored.event)

    def keep(self, now_s: float, now_ms: int, state: State) -> None:
        """Take what the child process has predicted, and begin another one when it is time and any job waits."""
        if self._asking is not None:
            process, out, asked_ms = self._asking
            if process.poll() is None:
                if now_s - self._begun_s > MOST_S:
                    process.kill()  # it hangs
                return
            self._asking = None
            with out:
                out.seek(0)
                found = [] if process.returncode else json.load(out)
            self._known = {name: (by_ms, expected_ms) for name, by_ms, expected_ms in found if name in state.jobs}
            self._at_ms = None if process.returncode else asked_ms
            for name, (by_ms, expected_ms) in self._known.items():
                if state.jobs[name].waits:
                    self.errors.say(USUALLY_BY, name, asked_ms, by_ms)
                    self.errors.say(EXPECTED, name, asked_ms, expected_ms)
        elif self._begin is not None and now_s - self._begun_s >= EVERY_S:
            self._begun_s = now_s
            if any(record.waits for record in state.jobs.values()):
                with suppress(OSError), ExitStack() as stack:  # it may lack memory or processes: a minute later
                    out = stack.enter_context(tempfile.TemporaryFile())
                    self._asking = self._begin(now_ms, out), out, now_ms
                    stack.pop_all()  # it is open as long as the process runs

    def close(self) -> None:
        """End the child process, if there is one."""
        if self._asking is not None:
            self._asking[0].kill()
            self._asking[0].wait()
            self._asking[1].close()

    def of_jobs(self, records: Sequence[JobRecord], state: State) -> list[dict[str, Any]]:
        """Times, for a client, when each of these jobs starts; None where they are not known, and unless it waits."""
        promised = any(record.promise is not None for record in records)
        unenforced = unenforced_regions(state) if promised else frozenset[str]()
        return [self._of(record, unenforced) for record in records]

    def _of(self, record: JobRecord, unenforced: Collection[str]) -> dict[str, Any]:
        """Times of one job, and whether the limits that its promise relies on are enforced."""
        by_ms, expected_ms = self._known.get(record.name, (None, None)) if record.waits else (None, None)
        promise = record.promise
        return {
            "promised_by_ms": None if promise is None else promise.by_ms,
            "limits_enforced": None if promise is None else promise.region not in unenforced,
            "usually_by_ms": by_ms,
            "expected_ms": expected_ms,
            "predicted_at_ms": None if by_ms is None and expected_ms is None else self._at_ms,
        }


def unenforced_regions(state: State) -> frozenset[str]:
    """Regions where a job runs that its host does not end at its limit."""
    running = (job for job in state.jobs.values() if job.shares and job.spec.limit_ms is not None)
    return frozenset(job.region for job in running if job.spec.limit_grace_ms is None)


def fits_by_ms(record: JobRecord, state: State) -> int | None:
    """Time when a job fits if what runs ends at its limit, whoever waits before it; None where limits do not say. That
    of a job of several parts is one at which a trial places it."""
    snapshot = Snapshot(state, ())
    tier = snapshot.importance(record)
    times = (times_of(record, tier, region, snapshot).by() for region in snapshot.admissible(record))
    by_ms = min(times, default=FOREVER)
    return None if by_ms == FOREVER else max(by_ms, state.now_ms)


def sooner(record: JobRecord, state: State) -> list[dict[str, Any]]:
    """Changes of a waiting job, for a client, with which it would fit sooner, and when it would."""
    now = fits_by_ms(record, state)
    found = list[dict[str, Any]]()
    for words, changed in _changes(record, state):
        regions = Snapshot(state, ()).admissible(changed)
        if regions and isinstance(state.fleet.place(changed.job, regions=regions), Bid):
            by_ms: int | None = state.now_ms
        else:
            by_ms = fits_by_ms(changed, state) if len(state.inventory.up) <= MOST_SERVERS else None
        if by_ms is not None and (now is None or by_ms < now):
            found.append({"change": words, "fits_by_ms": by_ms})
    return found


def _changes(record: JobRecord, state: State) -> Iterator[tuple[str, JobRecord]]:
    """Changes of a job that may make it fit sooner, one at a time, each with the job that it would be."""
    spec, classes = record.spec, JobClasses()

    def changed(**given: Any) -> JobRecord:  # noqa: ANN401 - fields of a job
        other = replace(spec, **given)
        return replace(record, spec=other, of=classes.of(record.name, other))

    kinds = sorted({server.gpu_type for server in state.inventory.in_service()})
    types = [part.gpu_types and dict.fromkeys(kinds, max(part.gpu_types.values())) for part in spec.parts]
    wider = tuple(
        replace(part, gpu_types=some and {**some, **(part.gpu_types or {})}) for part, some in zip(spec.parts, types)
    )
    if wider != spec.parts:
        yield "GPUs of any type", changed(parts=wider)
    for kind in kinds if spec.gpu_types is not None else ():
        if kind not in (spec.gpu_types or ()):
            yield f"GPUs of type {kind}", changed(gpu_types={kind: spec.mgpu})
    if spec.datasets:
        yield "its data in every region", changed(datasets=())
    if record.bound:
        yield "any region", replace(record, bound="")
    for tasks in sorted({spec.tasks // 2, spec.tasks // 4} - {0, spec.tasks}, reverse=True):
        yield f"{tasks} tasks instead of {spec.tasks}", changed(tasks=tasks)
    if any(part.tasks > 1 for part in spec.parts):
        halves = tuple(replace(part, tasks=max(1, part.tasks // 2)) for part in spec.parts)
        yield "half of the tasks of each part", changed(parts=halves)
    over = (
        Snapshot(state, ()).importance(record) != spec.tier
        if spec.parts
        else state.fleet.short_of_quota(record.job) > 0
    )
    if spec.tenant and over:
        yield f"a larger quota of {spec.tenant}", changed(tenant="")
