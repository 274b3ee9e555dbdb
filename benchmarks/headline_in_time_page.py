"""Tables and picture of the headline in time, from the files of ``benchmarks.headline_in_time``.

    python -m benchmarks.headline_in_time_page headline-in-time docs/benchmarks/images/headline-in-time.svg

Prints one row a variant: the median over seeds, least to most. Differences are paired by seed with ``after``, with the
95% interval of their mean by bootstrap where there are three seeds or more.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from mast_opt.simulation.experiments import AFTER, VARIANTS, WORST_BEFORE

HOUR_S = 3600
Figure = Callable[[dict[str, Any]], float]
FIGURES: dict[str, Figure] = {
    "tier-0 ratio": lambda m: m["worst_ratio"]["0"]["mean"],
    "allocation": lambda m: m["allocation"],
    "waited for data, %": lambda m: 100 * m["not_collocated"],
    "more storage, %": lambda m: 100 * (m["storage_overhead"] or 0.0),
    "wait of tier 0, h": lambda m: m["queue_s_by_tier"]["0"] / HOUR_S,
    "wait of tier 4, h": lambda m: m["queue_s_by_tier"]["4"] / HOUR_S,
    "preemptions": lambda m: m["preemptions"],
    "starved": lambda m: m["starved"],
}
DRAWS = 10_000


def read(folder: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """Variant → seed → metrics."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for file in sorted(folder.glob("*.json")):
        stated = json.loads(file.read_text())
        found.setdefault(stated["variant"], {})[stated["organisation"]["seed"]] = stated["metrics"]
    return {name: found[name] for name in VARIANTS if name in found}


def spread(values: list[float]) -> str:
    """Median, and least to most."""
    text = f"{np.median(values):.3g}"
    return text if len(values) < 2 else f"{text} ({min(values):.3g} to {max(values):.3g})"


def interval(differences: list[float]) -> str:
    """Mean of paired differences, with its interval."""
    mean = f"{np.mean(differences):+.2f}"
    if len(differences) < 3:
        return f"{mean} ({len(differences)} pairs)"
    rng = np.random.default_rng(1)
    means = rng.choice(np.array(differences), (DRAWS, len(differences))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return f"{mean} ({low:+.2f} to {high:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    found = read(given.folder)
    print(f"| variant | seeds | {' | '.join(FIGURES)} | ratio against `{AFTER.name}` |")
    print(f"|---|--:|{'--:|' * (len(FIGURES) + 1)}")
    for name, runs in found.items():
        cells = [spread([figure(m) for m in runs.values()]) for figure in FIGURES.values()]
        ratio, base = FIGURES["tier-0 ratio"], found.get(AFTER.name, {})
        pairs = [ratio(runs[seed]) - ratio(base[seed]) for seed in runs if seed in base]
        against = "" if name == AFTER.name or not pairs else interval(pairs)
        print(f"| `{name}` | {len(runs)} | {' | '.join(cells)} | {against} |")
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "mast-opt"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 0.3 * len(found) + 1.2), sharey=True)
    for axis, label in zip(axes, ("tier-0 ratio", "allocation", "wait of tier 0, h"), strict=True):
        for row, runs in enumerate(found.values()):
            values = [FIGURES[label](m) for m in runs.values()]
            axis.plot(values, [row] * len(values), "o", alpha=0.5, color="C0")
            axis.plot([np.median(values)], [row], "|", markersize=14, color="C1")
        axis.set_xlabel(label)
        axis.grid(axis="x", alpha=0.3)
    axes[0].axvline(1.0, color="grey", linewidth=0.8)
    axes[0].axvline(WORST_BEFORE, color="grey", linewidth=0.8, linestyle=":")
    axes[0].set_yticks(range(len(found)), list(found))
    axes[0].invert_yaxis()
    figure.tight_layout()
    given.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(given.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
