"""What a log says about jobs, as columns: one row for each event that changes what a job holds or waits for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.job_placement.units import WHOLE
from mast_opt.loop.events import (
    Adopted,
    Cancelled,
    CapacitySet,
    Failed,
    Finished,
    JobSpec,
    Placed,
    Resized,
    ServerDown,
    ServerUp,
    Started,
    Stopped,
    Stored,
    Submitted,
)

Ints = NDArray[np.int64]

SUBMITTED, PLACED, STARTED, STOPPED, FINISHED, FAILED, CANCELLED = range(7)
"""Kinds of rows."""


@dataclass(frozen=True, eq=False)
class JobLog:
    """The rows of a log, in order, and what they are about."""

    jobs: tuple[str, ...]
    tier: Ints
    mgpu: Ints
    """Milli-GPUs of all tasks."""
    duration_ms: Ints
    """-1 where nobody knows."""
    at_ms: Ints
    kind: NDArray[np.int8]
    job: NDArray[np.int32]
    at_once: bool
    """Whether a job runs from the moment when it is placed, so that there are no rows STARTED."""
    stop_work_ms: Ints
    """Of every row STOPPED, in order: work that is kept."""
    stop_lost_ms: Ints
    """Of every row STOPPED: work that has to be done again."""
    supply_at_ms: Ints
    """When the GPUs in service change."""
    supply_mgpu: Ints
    """GPUs in service from then on."""

    def __len__(self) -> int:
        return len(self.at_ms)

    @property
    def started(self) -> NDArray[np.bool_]:
        """Rows with which a job begins to run."""
        return np.equal(self.kind, PLACED if self.at_once else STARTED)

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Rows with which a job gives back what it holds, or stops waiting, for good."""
        return np.greater_equal(self.kind, FINISHED)


_KINDS = {Placed: PLACED, Started: STARTED, Stopped: STOPPED, Finished: FINISHED, Failed: FAILED, Cancelled: CANCELLED}


def job_log(log: Iterable[Stored]) -> JobLog:
    """The rows of a log of events. Jobs that were resized or adopted make it refuse: their GPUs are not one number.

    Raises:
        ValueError: such an event.
    """
    specs: dict[str, JobSpec] = {}
    numbers: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    stops: list[tuple[int, int]] = []
    supply: list[tuple[int, int]] = []
    gpus: dict[str, int] = {}
    in_service = 0
    for stored in log:
        event, at = stored.event, stored.at_ms
        if isinstance(event, Submitted):
            numbers[event.job] = len(numbers)
            specs[event.job] = event.spec
            rows.append((at, SUBMITTED, numbers[event.job]))
        elif isinstance(event, (Placed, Started, Stopped, Finished, Failed, Cancelled)):
            rows.append((at, _KINDS[type(event)], numbers[event.job]))
            if isinstance(event, Placed) and event.at_once:
                rows.append((at, STARTED, numbers[event.job]))
            if isinstance(event, Stopped):
                stops.append((event.work_ms, event.lost_ms))
        elif isinstance(event, (ServerUp, CapacitySet, ServerDown)):
            now = 0 if isinstance(event, ServerDown) else event.gpus * WHOLE
            in_service += now - gpus.get(event.server, 0)
            gpus[event.server] = now
            supply.append((at, in_service))
        elif isinstance(event, (Resized, Adopted)):
            raise ValueError(f"event {stored.seq} is {type(event).__name__}, whose GPUs rows do not tell")
    table = np.array(rows, np.int64).reshape(-1, 3)
    stopped, steps = np.array(stops, np.int64).reshape(-1, 2), np.array(supply, np.int64).reshape(-1, 2)
    return JobLog(
        jobs=tuple(specs),
        tier=np.array([spec.tier for spec in specs.values()], np.int64),
        mgpu=np.array([spec.tasks * spec.mgpu for spec in specs.values()], np.int64),
        duration_ms=np.array([_known(spec.duration_ms) for spec in specs.values()], np.int64),
        at_ms=table[:, 0],
        kind=table[:, 1].astype(np.int8),
        job=table[:, 2].astype(np.int32),
        at_once=False,
        stop_work_ms=stopped[:, 0],
        stop_lost_ms=stopped[:, 1],
        supply_at_ms=steps[:, 0],
        supply_mgpu=steps[:, 1],
    )


def _known(duration_ms: int | None) -> int:
    return -1 if duration_ms is None else duration_ms
