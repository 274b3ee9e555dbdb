"""Plots of results as SVG files. matplotlib is an extra (``plots``) and imported only here."""

import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.planner.bench.results import metrics as figures
from mast_opt.planner.bench.results.metrics import Instance, Result

FLOOR = 1e-4
"""Gaps are drawn as at least this, for the same reason as times."""
LEAST_S = 0.01
"""Times are drawn as at least this, so that a logarithmic axis can show them."""
OURS = "#c1121f"
COLOURS = {
    **dict.fromkeys(("tetris", "exhaustive+repair", "ras", "twine"), OURS),
    "exhaustive": "#f29e94",
    "highs": "#1f77b4",
    "highs strong": "#85bbe2",
    "cpsat": "#ff8c1a",
    "scip": "#2a9d3f",
    "cbc": "#8c564b",
    "gurobi": "#17becf",
    "xpress": "#bcbd22",
    "copt": "#e377c2",
    "cplex": "#5a6b00",
    **dict.fromkeys(("rebalancer", "rebalancer servers", "rebalancer tasks"), "#7b4fa8"),
}
"""A contestant has the same colour in every plot."""
OTHER_COLOURS = ("#6c757d", "#b08900", "#3d5a80", "#a5a58d", "#cc6fa3", "#0aa")
"""Colours of contestants whose names are not known beforehand."""


def draw(
    folder: Path, suite: str, wanted: Sequence[str], results: Sequence[Result], best: Mapping[Instance, float]
) -> None:
    """Write ``SUITE-KIND-PLOT.svg`` into the folder for each wanted plot and each kind of problem among the results.

    Raises:
        UsageError: matplotlib is missing, or there is no plot of that name.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError("plots need matplotlib; install it with: pip install 'mast-opt[plots]'") from error
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    style: Any = {
        "svg.hashsalt": "mast-opt",
        "svg.fonttype": "path",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    for name in wanted:
        if name not in PLOTS:
            raise UsageError(f"there is no plot called {name!r}; expected some of: {', '.join(PLOTS)}")
        for kind in kinds_of(results):
            with plt.rc_context(style):
                figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
                PLOTS[name](axes, [result for result in results if result["source"].get("kind") == kind], best)
                if axes.get_legend_handles_labels()[0]:
                    axes.legend(fontsize=8, frameon=False)
                figure.savefig(folder / file_name(suite, kind, name), metadata={"Date": None})
                plt.close(figure)


def kinds_of(results: Sequence[Result]) -> list[str]:
    """The kinds of problem among the results, in order of appearance; contestants differ from one to the next."""
    return list(dict.fromkeys(result["source"]["kind"] for result in results if result["source"].get("kind")))


def file_name(suite: str, kind: str, plot: str) -> str:
    """Name of the file of a plot."""
    return f"{suite}-{kind}-{plot}.svg"


def profile(axes: Any, results: Sequence[Result], best: Mapping[Instance, float]) -> None:
    """Performance profile of the benchmark's time until within 1% of the best known value."""
    times: dict[str, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        value = best.get(figures.instance(result))
        if value is None:
            continue
        task = (*figures.instance(result), result["time_limit_s"])
        reached = figures.time_to(result, figures.target_of(value, figures.TARGETS[1], figures.sense(result)))
        times[figures.contestant(result)][task].append(math.inf if reached is None else max(reached, LEAST_S))
    profiles = figures.performance_profile(times)
    end = max([10.0, *(factors[-1] for factors, _ in profiles.values() if len(factors))])
    for name, (factors, shares) in profiles.items():
        last = shares[-1] if len(shares) else 0.0
        axes.step([1.0, *factors, end], [0.0, *shares, last], where="post", **_pen(name))
    axes.set_xscale("log")
    axes.set_xlim(0.98, end)
    axes.set_ylim(-0.01, 1.02)
    axes.set_xlabel("time to within 1% of the best known, as a multiple of the quickest")
    axes.set_ylabel("share of runs")


def time_to_target(axes: Any, results: Sequence[Result], best: Mapping[Instance, float]) -> None:
    """Share of the runs that are within 10% of the best known value after so many seconds."""
    reached: dict[str, list[float]] = defaultdict(list)
    runs: dict[str, int] = defaultdict(int)
    for result in results:
        value = best.get(figures.instance(result))
        if value is None:
            continue
        name = figures.contestant(result)
        runs[name] += 1
        at = figures.time_to(result, figures.target_of(value, figures.TARGETS[0], figures.sense(result)))
        reached[name] += [] if at is None else [max(at, LEAST_S)]
    end = max((float(result["time_limit_s"]) for result in results), default=1.0)
    for name, count in runs.items():
        times = sorted(reached[name])
        shares = [n / count for n in range(len(times) + 1)]
        axes.step([LEAST_S, *times, end], [*shares, shares[-1]], where="post", **_pen(name))
    _seconds(axes)
    axes.set_ylim(-0.01, 1.02)
    axes.set_ylabel("share of runs within 10% of the best known")


def over_time(axes: Any, results: Sequence[Result], best: Mapping[Instance, float]) -> None:
    """Gap of the incumbent to the best known value over time: the geometric middle of all runs of a contestant."""
    curves: dict[str, list[Any]] = defaultdict(list)
    limit = max((float(result["time_limit_s"]) for result in results), default=1.0)
    grid = np.geomspace(LEAST_S, limit, 200)
    for result in results:
        value = best.get(figures.instance(result))
        known = [event for event in result.get("events", ()) if len(event) == 3 and event[1] is not None]
        if value is None or not known:
            continue
        at = np.searchsorted([event[0] for event in known], grid, side="right") - 1
        sense = figures.sense(result)
        gaps = np.array([sense.minimised(event[1] - value) / max(abs(value), 1e-9) for event in known])
        curves[figures.contestant(result)].append(np.where(at >= 0, np.maximum(gaps[at], FLOOR), np.nan))
    for name, lines in curves.items():
        stack = np.log(np.array(lines))
        there = ~np.isnan(stack).any(axis=0)
        axes.plot(grid[there], np.exp(stack[:, there].mean(axis=0)), **_pen(name, f"{name} ({len(lines)})"))
    _seconds(axes)
    _gaps(axes)


def scaling(axes: Any, results: Sequence[Result], best: Mapping[Instance, float]) -> None:
    """Final gap to the best known value along the entries, in the order of the suite.

    Entries whose names differ in their numbers only form one series; between series, and where there is no plan, the
    lines are broken.
    """
    entries = list(dict.fromkeys(result["entry"] for result in results))
    series = ["".join(letter for letter in entry if letter not in "0123456789,.") for entry in entries]
    at = np.cumsum([0, *(1 + (one != other) for one, other in pairwise(series))])
    breaks = np.flatnonzero(np.diff(at) > 1) + 1
    gaps: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        gap = figures.gap_of(result, best)
        if gap is not None:
            gaps[figures.contestant(result)][result["entry"]].append(max(gap, FLOOR))
    for name, by_entry in gaps.items():
        means = [figures.shifted_geometric_mean(by_entry.get(entry, ()), 1e-3) for entry in entries]
        heights = np.array([math.nan if mean is None else mean for mean in means])
        axes.plot(np.insert(at * 1.0, breaks, math.nan), np.insert(heights, breaks, math.nan), marker=".", **_pen(name))
    _gaps(axes)
    axes.set_xticks(at, entries, rotation=30, ha="right")


def _pen(name: str, label: str | None = None) -> dict[str, Any]:
    """How a contestant's line looks; ours are drawn over the others."""
    colour = COLOURS.get(name) or OTHER_COLOURS[zlib.crc32(name.encode()) % len(OTHER_COLOURS)]
    ours = colour == OURS
    return {"label": label or name, "color": colour, "linewidth": 2.2 if ours else 1.4, "zorder": 3 if ours else 2}


def _seconds(axes: Any) -> None:
    """The horizontal axis of time in a benchmark plot."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, position: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, position: "")
    axes.set_xlabel("seconds")


def _gaps(axes: Any) -> None:
    """The vertical axis of a benchmark plot, of gaps to the best known value."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, position: f"{100 * value:,.10g}%")
    axes.set_ylabel("gap to the best known (0.01% or more)")


PLOTS: Mapping[str, Callable[[Any, Sequence[Result], Mapping[Instance, float]], None]] = {
    "profile": profile,
    "time-to-target": time_to_target,
    "over-time": over_time,
    "scaling": scaling,
}
"""Plots that a suite may ask for."""
TITLES = {
    "profile": "Performance profile: the share of runs within 1% of the best known value, by how much longer than the "
    "quickest run on the instance that took",
    "time-to-target": "Time to target: the share of runs within 10% of the best known value, by seconds",
    "over-time": "Quality over time: gap to the best known value, geometric middle of the runs (their number)",
    "scaling": "Gap to the best known value at the limit, by entry",
}
