"""Table and picture of FGD's experiment with moves of running pods, from the results of suite ``fgd``.

    python -m benchmarks.fgd_moves benchmarks/results/fgd.jsonl docs/benchmarks/images/fgd-moves.svg

Percent of the GPUs that are allocated at 130%, next to the share of pods that were moved.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.fgd import MOVED
from mast_opt.planner.bench.reporting.tables import markdown
from mast_opt.planner.bench.results.store import latest, load

matplotlib.use("svg")
from matplotlib import pyplot as plt


@dataclass(frozen=True)
class Moving:
    """Means over the seeds, in percent."""

    allowed: float
    """Pods that may be moved."""
    moved: float
    early: float
    """GPUs that are allocated when 90% have been asked for."""
    allocated: float
    bound: float
    """The most GPUs that could be allocated by a placement that admits the same pods and perhaps others."""
    seeds: int


def moving(results: Path) -> Mapping[str, list[Moving]]:
    """List → what was measured, by the share that may be moved."""
    found: dict[str, dict[float, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for result in latest(load(results)):
        name = result["contestant"]["name"]
        if "data" in result["source"] and "figures" in result and name in MOVED:
            pods = result["source"]["data"].partition(".")[0].removeprefix("openb_pod_list_")
            found[pods][MOVED[name]].append(result["figures"])
    return {pods: [_mean(share, of[share]) for share in sorted(of)] for pods, of in sorted(found.items())}


def _mean(share: float, runs: list[Any]) -> Moving:
    def mean(key: str) -> float:
        return float(statistics.mean(run[key] for run in runs))

    return Moving(share, mean("moved_percent"), mean("at_90"), mean("at_130"), mean("bound_at_130"), len(runs))


def table(measured: Mapping[str, list[Moving]]) -> str:
    """A line for each list and share; ``closed`` is the part of the distance to the bound for the pods that are
    admitted without moves."""
    lines = []
    for pods, rows in measured.items():
        none = rows[0]
        for row in rows:
            closed = (row.allocated - none.allocated) / (none.bound - none.allocated)
            shares = (f"{row.allowed:g}", f"{row.moved:.2f}")
            figures = (f"{value:.2f}" for value in (row.early, row.allocated, row.bound))
            lines.append((pods, *shares, *figures, f"{100 * closed:.0f}%"))
    return markdown(("pod list", "may be moved, %", "moved, %", "at 90%", "at 130%", "bound", "closed"), lines)


def draw(measured: Mapping[str, list[Moving]], path: Path) -> None:
    """One panel a list: what is allocated at 130% over the share of pods moved, and the bound without moves."""
    style: Any = {"svg.hashsalt": "mast-opt", "svg.fonttype": "path", "font.size": 8}
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, panels = plt.subplots(
            1, len(measured), figsize=(3.2 * len(measured), 2.6), squeeze=False, layout="constrained"
        )
        for panel, (pods, rows) in zip(panels.flat, measured.items()):
            none = rows[0]
            panel.axhline(none.bound, color="black", linewidth=0.8, linestyle="--", label="bound, same pods as without")
            half = (none.allocated + none.bound) / 2
            panel.axhline(half, color="#999999", linewidth=0.8, linestyle=":", label="half of the distance")
            values = [row.allocated for row in rows]
            panel.plot(
                [row.moved for row in rows], values, "o-", color="#c1121f", markersize=4, label="fleet with moves"
            )
            panel.set(title=f"{pods} (seeds: {none.seeds})", xlabel="pods moved, % of those admitted")
            panel.set_ylim(min(values) - 0.1, max(*values, none.bound) + 0.1)
            panel.grid(alpha=0.3)
        panels.flat[0].set_ylabel("GPUs allocated at 130%, %")
        figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    found = moving(Path(sys.argv[1]))
    print(table(found))
    draw(found, Path(sys.argv[2]))
