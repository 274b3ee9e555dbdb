"""Pictures of a run over time. Each step of a line is the mean, or the most, of a span of time."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.wording import plain
from mast_opt.live.loop.history import History, Steps
from mast_opt.problems.job_placement.units import WHOLE
from mast_opt.problems.kind.presentation import Chart, HeatMap, Lines, Scale, grid

SPANS = 160
"""Steps of a line."""
PERIODS = 7
"""Columns of the heat map."""
MB_A_TB = 1_000_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
SHORT_MS = 3 * DAY_MS
"""Runs shorter than this are shown in hours."""
_Line = tuple[str, tuple[tuple[float, float], ...]]


def charts_of(found: History) -> list[Chart]:
    """Every picture for which the log says something."""
    scale = _TimeScale(found)
    queue = Lines(
        "Jobs that wait",
        scale.unit,
        "jobs",
        (
            scale.line("mean", found.waiting_jobs.means(scale.edges)),
            scale.line("most", found.waiting_jobs.most(scale.edges).astype(np.float64)),
        ),
        f"Each step is a span of {scale.span}: the mean over it, and the most at any time in it.",
        from_zero=True,
    )
    return [queue, *_gpus(found, scale), *_by_region(found, scale), *_data(found, scale), *_planned(found, scale)]


class _TimeScale:
    """The time of a run, cut into spans."""

    def __init__(self, found: History) -> None:
        length = max(found.last_ms - found.first_ms, 1)
        self.first_ms, self.last_ms = found.first_ms, found.first_ms + length
        self.unit, self.unit_ms = ("hours", HOUR_MS) if length < SHORT_MS else ("days", DAY_MS)
        self.edges = self.cut(min(SPANS, length))
        width = length / (len(self.edges) - 1) / HOUR_MS
        self.span = f"{width:.2g} hours" if width >= 1 else f"{width * 60:.2g} minutes"

    def cut(self, spans: int) -> NDArray[np.int64]:
        """Edges of so many spans of a run of about the same length."""
        return np.linspace(self.first_ms, self.last_ms, spans + 1).astype(np.int64)

    def x(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Times of a run in the unit of a chart's axis, since the first event."""
        return np.asarray((times - self.first_ms) / self.unit_ms, np.float64)

    def line(self, name: str, values: NDArray[np.float64]) -> _Line:
        """A chart's line of a value for each span."""
        ends = np.append(values, values[-1:])
        return name, tuple(zip(self.x(self.edges).tolist(), ends.tolist(), strict=True))

    def steps(self, name: str, series: Steps, unit: float) -> _Line:
        """A chart's line of every step of a series, up to the end of the run."""
        times = np.append(series.at_ms, self.last_ms)
        return name, tuple(zip(self.x(times).tolist(), (series.at(times) / unit).tolist(), strict=True))


def _gpus(found: History, scale: _TimeScale) -> list[Chart]:
    """GPUs held and in service; what waiting jobs want by itself, since it may be many times that."""

    def all_of(series: Mapping[str, Steps]) -> NDArray[np.float64]:
        total = np.zeros(len(scale.edges) - 1)
        return sum((one.means(scale.edges) for one in series.values()), start=total) / WHOLE

    lines = (
        scale.line("held by jobs", all_of(found.held_mgpu)),
        scale.line("in service", all_of(found.supply_mgpu)),
    )
    wanted = (scale.line("wanted", found.waiting_mgpu.means(scale.edges) / WHOLE),)
    note = f"Means over spans of {scale.span}."
    return [
        Lines(title, scale.unit, "GPUs", drawn, note, from_zero=True)
        for title, drawn in (("GPUs", lines), ("GPUs that waiting jobs want", wanted))
    ]


def _by_region(found: History, scale: _TimeScale) -> list[Chart]:
    """GPUs held over those in service, region by region and period by period."""
    if not found.supply_mgpu:
        return []
    edges = scale.cut(min(PERIODS, scale.last_ms - scale.first_ms))
    ends = [plain(float(at)) for at in np.round(scale.x(edges), 1)]
    rows: list[list[float | None]] = []
    for region, series in found.supply_mgpu.items():
        supply = series.means(edges)
        used = found.held_mgpu[region].means(edges) if region in found.held_mgpu else np.zeros(len(supply))
        rows.append([float(held / there) if there > 0 else None for held, there in zip(used, supply, strict=True)])
    chart = HeatMap(
        "GPUs in use by region",
        "region",
        scale.unit,
        tuple(found.supply_mgpu),
        tuple(f"{first}–{last}" for first, last in pairwise(ends)),
        None,
        grid(rows),
        Scale.FILL,
        f"Held over in service, means over periods; columns are {scale.unit}.",
        after_name="in use",
    )
    return [chart]


def _data(found: History, scale: _TimeScale) -> list[Chart]:
    """Charts of a run's data: what is stored and being copied, and moves so far."""
    charts: list[Chart] = []
    stored = [
        scale.steps(name, series, MB_A_TB)
        for name, series in (("stored", found.stored_mb), ("being copied", found.copying_mb))
        if len(series.at_ms)
    ]
    if stored:
        charts.append(Lines("Storage", scale.unit, "TB", tuple(stored), "All replicas of all regions.", from_zero=True))
    moves = [scale.steps(name, series, 1) for name, series in sorted(found.counts.items())]
    if moves:
        charts.append(Lines("Moves so far", scale.unit, "moves", tuple(moves), from_zero=True))
    return charts


def _planned(found: History, scale: _TimeScale) -> list[Chart]:
    """Chart of the worst ratios that a run's plans of data promised, tier by tier."""
    lines = tuple(scale.steps(f"tier {tier}", series, WHOLE) for tier, series in found.planned_ratio.items())
    note = "The largest demand over supply of a region and GPU type, for work of a tier and more important work."
    title, amount = "Worst ratio of the plan of data", "demand over supply"
    return [Lines(title, scale.unit, amount, lines, note, from_zero=True)] if lines else []
