"""The two pictures of the study, as SVG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from benchmarks.fast_path.figures import Filling, pairs
from benchmarks.fast_path.runs import HEURISTICS, Records, Run

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

COLOURS = dict(zip(HEURISTICS, ("#0072b2", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9")))
plt.rcParams.update({"svg.hashsalt": "mast-opt", "svg.fonttype": "none", "font.size": 10, "axes.spines.top": False})
plt.rcParams.update(
    {"axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3, "figure.constrained_layout.use": True}
)


def draw_gaps(records: Records, best: Sequence[Run], path: Path) -> None:
    """For each solver, the share of batches whose gap is at most x."""
    figure, axes = plt.subplots(figsize=(7.2, 3.6))
    for solver in HEURISTICS:
        gap = np.sort([max(pair.gap, 0.0) for pair in pairs(records, solver, best)]) * 100
        share = np.arange(1, len(gap) + 1) / len(gap) * 100
        axes.step([0, *gap], [0, *share], where="post", label=solver, color=COLOURS[solver])
    axes.set(xlabel="gap to the proven optimum, % of tier-weighted value", ylabel="% of batches with at most this gap")
    axes.set(xlim=(-0.2, 15), ylim=(0, 101))
    axes.legend(loc="lower right", frameon=False)
    _save(figure, path)


def draw_filling(found: Sequence[Filling], path: Path) -> None:
    """What early binding gives away at each fill: mean, and the middle half of the seeds."""
    figure, axes = plt.subplots(figsize=(7.2, 3.2))
    fill = [one.fill for one in found]
    low, high = (np.array([np.percentile(one.difference, q) for one in found]) * 100 for q in (25, 75))
    axes.fill_between(fill, low, high, alpha=0.2, color=COLOURS["federated"], label="middle half of the batches")
    mean = [one.difference.mean() * 100 for one in found]
    axes.plot(fill, mean, marker="o", color=COLOURS["federated"], label="mean")
    axes.set(xlabel="% of GPUs held when the queue arrives", ylabel="value lost by early binding, %", ylim=(0, None))
    axes.set_xticks(fill)
    axes.legend(loc="upper left", frameon=False)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
