"""Table and picture of FGD's experiment, from the results of suite ``fgd``.

    python -m benchmarks.fgd_page benchmarks/results/fgd.jsonl docs/benchmarks/images/fgd.svg

Prints percent of the GPUs that are allocated at 130%: published means, then what was replayed here.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import matplotlib

from benchmarks.fgd import LIVE, MARKS, published
from mast_opt.bench.reporting.markdown import DASH, markdown
from mast_opt.bench.results.store import latest, load

matplotlib.use("svg")
from matplotlib import pyplot as plt

COLOURS = dict(
    zip(
        (*LIVE, "fgd", "gpu-packing", "gpu-clustering", "dot-product", "reserve-and-pack"),
        ("#c1121f", "#f29e94", "#1f77b4", "#2a9d3f", "#ff8c1a", "#8c564b", "#7b4fa8"),
    )
)
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


def table(curves: Curves) -> str:
    known = {name: published(name) for name in curves}
    policies = next(iter(known.values())).keys()
    methods = [name for name in COLOURS if any(name in of for of in curves.values())]
    lines = []
    for name, of in curves.items():
        ours = [f"{of[method][-1]:.2f}" if method in of else DASH for method in methods]
        gain = f"{of['fleet'][-1] - known[name]['fgd']:+.2f}" if "fleet" in of else DASH
        lines.append((name, *(f"{known[name][policy]:.2f}" for policy in policies), *ours, gain))
    heads = [f"{policy}, published" for policy in policies]
    return markdown(("pod list", *heads, *methods, "fleet − published FGD"), lines)


def draw(curves: Curves, path: Path) -> None:
    plt.rcParams.update({"svg.hashsalt": "mast-opt", "svg.fonttype": "none", "font.size": 8})
    columns = min(4, len(curves))
    lines = -(-len(curves) // columns)
    size = (2.6 * columns, 2.1 * lines)
    figure, panels = plt.subplots(lines, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    figure.set_layout_engine("constrained")
    for panel in panels.flat[len(curves) :]:
        panel.set_axis_off()
    for panel, (name, of) in zip(panels.flat, curves.items()):
        for method, values in of.items():
            panel.plot(MARKS, values, color=COLOURS[method], label=method, linewidth=1.2)
        panel.set_title(name, fontsize=8)
        panel.grid(alpha=0.3)
    handles = {line.get_label(): line for panel in panels.flat for line in panel.get_lines()}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    figure.supxlabel("% of the GPUs asked for")
    figure.supylabel("% allocated")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    found = curves_of(Path(sys.argv[1]))
    print(table(found))
    draw(found, Path(sys.argv[2]))
