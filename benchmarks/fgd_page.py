"""Table and picture of FGD's experiment, from the results of suite ``fgd``.

    python -m benchmarks.fgd_page benchmarks/results/fgd.jsonl docs/benchmarks/images/fgd.svg

Prints percent of the GPUs that are allocated at 130%: the live fleet next to the published means, then the published
rules as replayed here.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.fgd import LIVE, MARKS, published
from mast_opt.core.wording import UNKNOWN
from mast_opt.planner.bench.reporting.tables import markdown
from mast_opt.planner.bench.results.store import latest, load

matplotlib.use("svg")
from matplotlib import pyplot as plt

COLOURS = dict(
    zip(
        (*LIVE, "fgd", "gpu-packing", "gpu-clustering", "dot-product", "reserve-and-pack"),
        ("#c1121f", "#f29e94", "#1f77b4", "#2a9d3f", "#ff8c1a", "#8c564b", "#7b4fa8"),
    )
)
PUBLISHED_COLOURS = {"best-fit": "#777777", "fgd": "black"}
"""Policy → colour of its published mean, which is drawn where the experiment ends."""
Curves = Mapping[str, Mapping[str, list[float]]]
"""List → method → percent allocated at each of ``MARKS``, the mean over what was run."""


def curves_of(results: Path) -> Curves:
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for result in latest(load(results)):
        if "data" in result["source"] and "figures" in result:
            name = result["source"]["data"].partition(".")[0].removeprefix("openb_pod_list_")
            found[name][result["contestant"]["name"]].append([result["figures"][f"at_{mark}"] for mark in MARKS])
    return {
        name: {method: [statistics.mean(values) for values in zip(*runs)] for method, runs in of.items()}
        for name, of in sorted(found.items())
    }


def live_table(curves: Curves) -> str:
    """Live fleet next to the published means, with the means over all lists where all have been replayed."""
    columns: list[list[float | None]] = []
    for name, of in curves.items():
        known, ours = published(name), [of[method][-1] if method in of else None for method in LIVE]
        gain = ours[0] - known["fgd"] if ours[0] is not None else None
        columns.append([known["best-fit"], known["fgd"], *ours, gain])
    means = [[value for value in values if value is not None] for values in zip(*columns)]
    lines = list(zip(curves, columns))
    if all(len(values) == len(curves) for values in means):
        lines.append(("mean", [statistics.mean(values) for values in means]))
    heads = ("pod list", "best fit, published", "FGD, published", *LIVE, "fleet − published FGD")
    return markdown(heads, [(name, *map(_two, values[:-1]), _two(values[-1], "+")) for name, values in lines])


def rules_table(curves: Curves) -> str:
    """Solvers of the published rules, the published means of the same policies in brackets."""
    methods = [name for name in COLOURS if name not in LIVE and any(name in of for of in curves.values())]
    lines = []
    for name, of in curves.items():
        known = published(name)
        cells = [
            _two(of[method][-1] if method in of else None) + (f" ({known[method]:.2f})" if method in known else "")
            for method in methods
        ]
        lines.append((name, *cells))
    return markdown(("pod list", *methods), lines)


def _two(value: float | None, sign: str = "") -> str:
    return UNKNOWN if value is None else f"{value:{sign}.2f}"


def draw(curves: Curves, path: Path) -> None:
    """One panel a list: what is allocated over what has been asked for, and the published means at the end."""
    columns = min(5, len(curves))
    lines = -(-len(curves) // columns)
    seen = [value for of in curves.values() for values in of.values() for value in values]
    style: Any = {"svg.hashsalt": "mast-opt", "svg.fonttype": "path", "font.size": 8}
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        size = (2.0 * columns, 2.1 * lines + 0.7)
        figure, panels = plt.subplots(
            lines, columns, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
        )
        for panel in panels.flat[len(curves) :]:
            panel.set_axis_off()
        for panel in panels.flat[max(0, len(curves) - columns) : len(curves)]:
            panel.tick_params(labelbottom=True)
        for panel, (name, of) in zip(panels.flat, curves.items()):
            panel.plot(MARKS, MARKS, color="#bbbbbb", linewidth=0.8, label="all that is asked for")
            for method in (method for method in reversed(COLOURS) if method in of):
                panel.plot(MARKS, of[method], color=COLOURS[method], linewidth=1.2, label=method)
            for policy, colour in PUBLISHED_COLOURS.items():
                end = (MARKS[-1], published(name)[policy])
                label = f"{policy}, published, at {MARKS[-1]}%"
                panel.plot(*end, "D", color=colour, mec="white", markersize=5, clip_on=False, zorder=3, label=label)
            panel.set(
                title=name, xlim=(MARKS[0], MARKS[-1]), xticks=MARKS[::4], ylim=(min(seen) - 0.5, max(seen) + 0.5)
            )
            panel.grid(alpha=0.3)
        handles = {str(line.get_label()): line for panel in panels.flat for line in panel.get_lines()}
        names = [name for name in (*COLOURS, *sorted(handles.keys() - COLOURS.keys())) if name in handles]
        figure.legend([handles[name] for name in names], names, loc="outside upper center", ncols=5, frameon=False)
        figure.supxlabel("GPUs asked for, % of all GPUs", fontsize=9)
        figure.supylabel("GPUs allocated, % of all GPUs", fontsize=9)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    found = curves_of(Path(sys.argv[1]))
    print(live_table(found), rules_table(found), sep="\n\n")
    draw(found, Path(sys.argv[2]))
