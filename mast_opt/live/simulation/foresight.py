"""Perfect forecasts of a simulated run: what the trace will ask for."""

from __future__ import annotations

import numpy as np

from mast_opt.live.loop.demand import DAY_MS, DemandClass
from mast_opt.live.loop.jobs import JobClasses
from mast_opt.live.loop.policy import View
from mast_opt.live.simulation.traces.trace import JobTrace


class Foresight:
    """The demand of each class in the next days, as if no job had to wait. A ``slow_paths.forecasts.Forecast``.

    Args:
        trace: that is run.
        days: that are averaged.
    """

    def __init__(self, trace: JobTrace, days: int) -> None:
        self._span_ms = days * DAY_MS
        jobs, classes = trace.submissions, JobClasses()
        spans: dict[DemandClass, list[tuple[int, int, int]]] = {}
        for j, name in enumerate(jobs.labels):
            one, begin_ms = classes.of(name, jobs.spec(j)), int(jobs.submitted_ms[j])
            spans.setdefault(one.demand, []).append((begin_ms, begin_ms + int(jobs.duration_ms[j]), one.asked_mgpu))
        self._spans = {of: np.array(rows, np.int64) for of, rows in spans.items()}

    def __call__(self, view: View, of: DemandClass) -> int:
        """Milli-GPUs that jobs of the class will really use, on average over the span."""
        begin, end, mgpu = self._spans[of].T
        till = view.now_ms + self._span_ms
        return int((np.clip(np.minimum(end, till) - np.maximum(begin, view.now_ms), 0, None) * mgpu).sum()) // (
            self._span_ms
        )
