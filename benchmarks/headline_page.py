"""Tables and picture of the page on the published headline, from the results of suite ``headline``.

python -m benchmarks.headline_page benchmarks/results/headline.jsonl docs/benchmarks/images/headline.svg
"""

from __future__ import annotations

import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from mast_opt.core.wording import UNKNOWN
from mast_opt.planner.bench.reporting.tables import markdown
from mast_opt.planner.bench.results.store import latest, load

matplotlib.use("svg")
from matplotlib import pyplot as plt

NAMES = {"hard": "V0 hard", "soft": "V1 soft", "derived": "V2 derived"}
COLOURS = {"hard": "#7b4fa8", "soft": "#ff8c1a", "derived": "#1f77b4"}


@dataclass(frozen=True)
class Measure:
    """A figure of the runs, less of which is better."""

    key: str
    head: str
    digits: int
    target: float | None = None
    log: bool = False


MEASURES = (
    Measure("tier_0_after", "tier-0 ratio", 3, 1.0),
    Measure("away_from_data_%", "workloads with remote reads, %", 2, 0.1, log=True),
    Measure("remote_volume_%", "volume read remotely, %", 4),
    Measure("more_storage_%", "more storage, %", 0, 125.0),
    Measure("moved_work_%", "moved GPU work, %", 0),
    Measure("refused_%", "refused GPUs, %", 1),
    Measure("gap_%", "proven gap, %", 1),
)
DRAWN = ("tier_0_after", "away_from_data_%", "more_storage_%", "gap_%")
Runs = Mapping[tuple[str, str], Sequence[Mapping[str, float | None]]]
"""(entry, method) → figures of each seed, in the order of the seeds."""


def runs_of(results: Path) -> Runs:
    found: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
    for result in latest(load(results)):
        if "figures" in result:
            found[result["entry"], result["contestant"]["name"]].append((result["seed"], result["figures"]))
    return {key: [figures for _, figures in sorted(seeds, key=lambda seed: seed[0])] for key, seeds in found.items()}


def storage_of(entry: str) -> float:
    """Copies of everything that there is storage for, by the name of the entry."""
    named = re.search(r"for ([\d.]+) copies", entry)
    assert named is not None, entry
    return float(named[1])


def table(runs: Runs) -> str:
    """A row per entry and method: median, and least to most where seeds differ."""
    heads = ("storage for", "method", "seeds", *(measure.head for measure in MEASURES))
    lines = []
    for entry, method in sorted(
        runs, key=lambda key: ("recurring" in key[0], storage_of(key[0]), list(NAMES).index(key[1]))
    ):
        of = runs[entry, method]
        name = f"{storage_of(entry)} copies{', recurring work only' if 'recurring' in entry else ''}"
        lines.append((name, NAMES[method], str(len(of)), *(_cell(of, measure) for measure in MEASURES)))
    return markdown(heads, lines)


def _cell(of: Sequence[Mapping[str, float | None]], measure: Measure) -> str:
    values = [value for figures in of if (value := figures.get(measure.key)) is not None]
    if not values:
        return UNKNOWN
    low, middle, high = (f"{v:.{measure.digits}f}" for v in (min(values), statistics.median(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def draw(runs: Runs, path: Path) -> None:
    """One panel a measure over the storage: a point a seed, the median of V2 as a line, the published target dashed."""
    style: Any = {"svg.hashsalt": "mast-opt", "svg.fonttype": "path", "font.size": 9}
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, panels = plt.subplots(1, len(DRAWN), figsize=(3.0 * len(DRAWN), 3.1), layout="constrained")
        for panel, measure in zip(panels, [measure for measure in MEASURES if measure.key in DRAWN]):
            _panel(panel, runs, measure)
        handles = {str(line.get_label()): line for panel in panels for line in panel.get_lines()}
        handles = {name: line for name, line in handles.items() if not name.startswith("_")}
        figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=5, frameon=False)
        figure.supxlabel("storage, copies of everything")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _panel(panel: Any, runs: Runs, measure: Measure) -> None:
    medians: list[tuple[float, float]] = []
    for (entry, method), of in runs.items():
        values = [value for figures in of if (value := figures.get(measure.key)) is not None]
        if "recurring" in entry or not values:
            continue
        x = storage_of(entry) + 0.04 * (list(NAMES).index(method) - 2)
        panel.plot([x] * len(values), values, "o", color=COLOURS[method], alpha=0.7, label=NAMES[method])
        if method == "derived":
            medians.append((x, statistics.median(values)))
    panel.plot(*zip(*sorted(medians)), color=COLOURS["derived"], linewidth=1.2, label="_median")
    if measure.target is not None:
        panel.axhline(measure.target, color="#c1121f", linestyle="--", linewidth=1, label="target: at most")
    if measure.log:
        panel.set_yscale("symlog", linthresh=0.05)
    panel.set(title=f"{measure.head} ↓", xticks=[1.1, 1.5, 2.0, 2.5])
    if measure.key == "tier_0_after":
        panel.set_ylim(0.9, max(1.1, panel.get_ylim()[1]))
    else:
        panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)


def main() -> None:
    runs = runs_of(Path(sys.argv[1]))
    print(table(runs))
    draw(runs, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
