"""What the gaps of suite ``tetris`` consist of, from its results.

    python benchmarks/tetris_gaps.py benchmarks/results/tetris.jsonl

For each size of family ``standard`` and each time limit: the median gap as reported; over what can be decided,
(objective − bound)/(objective − what no plan can avoid); and, where an exact solver has proven the optimum, how far the
bound is below it and the objective above it (median, mean and worst).
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mast_opt
from mast_opt.problems.data_placement import DataPlacement


def unavoidable(problem: DataPlacement) -> float:
    """Demand over level and supply of each GPU type and tier, and the fewest copies: what every plan costs.

    Work that accepts several types goes where a GPU adds least. For problems whose work must all run, unsplit.
    """
    p, weights = problem, problem.objective.weights
    types, tiers = len(p.gpu_types), len(p.tiers)
    supply = p.regions.supply_mgpu.sum(axis=0).astype(np.float64)
    options = np.bincount(p.options.workload, minlength=len(p.workloads))[p.options.workload]
    tier = p.workloads.tier[p.options.workload]
    bound = (options == 1) & (p.options.gpu_type < types)
    demand = np.zeros((types, tiers))
    np.add.at(demand, (p.options.gpu_type[bound], tier[bound]), p.options.mgpu[bound])
    fewest = np.full(len(p.workloads), np.iinfo(np.int64).max)
    np.minimum.at(fewest, p.options.workload, p.options.mgpu)
    total = np.cumsum(np.bincount(p.workloads.tier, weights=fewest, minlength=tiers))
    demand = np.cumsum(demand, axis=1)

    def over(room: NDArray[np.float64]) -> NDArray[np.float64]:
        beyond = total - np.maximum(demand, room).sum(axis=0)
        kept = np.maximum(demand - room, 0.0) / supply[:, None]
        least: NDArray[np.float64] = kept.sum(axis=0) + np.maximum(beyond, 0.0) / supply.max()
        return least

    everything = np.repeat(supply[:, None], tiers, axis=1)
    gpus = over(everything * p.peak_level) * weights["peak"] + over(everything) * weights["overload"]
    copies = float((p.datasets.size_mb * p.datasets.copies_min).sum() / p.datasets.size_mb.sum())
    return float((gpus * p.tier_weight).sum()) + weights["storage"] * copies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    options = parser.parse_args()
    runs = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    runs = [run for run in runs if run["source"].get("family") == "standard" and run.get("objective") is not None]
    optimum = {run["instance"]: run["objective"] for run in runs if run["status"] == "OPTIMAL"}
    floors: dict[str, float] = {}
    groups: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        if run["contestant"]["name"] == "tetris":
            source = run["source"]
            if run["instance"] not in floors:
                problem = mast_opt.generate(source["kind"], source["family"], seed=source["seed"], **source["sizes"])
                floors[run["instance"]] = unavoidable(problem)
            groups[run["instance"].rsplit("-", 1)[0], run["time_limit_s"]].append(run)
    print("| size | seconds | seeds | gap | over what can be decided | bound below optimum | plan above optimum |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for (size, limit_s), group in sorted(
        groups.items(), key=lambda item: (item[1][0]["source"]["sizes"]["datasets"], item[0][1])
    ):
        gap = statistics.median(run["gap"] for run in group)
        decided = statistics.median(
            (run["objective"] - run["bound"]) / (run["objective"] - floors[run["instance"]]) for run in group
        )
        proven = [run for run in group if run["instance"] in optimum]
        words = ["", ""]
        if proven:
            below = [1 - run["bound"] / optimum[run["instance"]] for run in proven]
            above = [max(0.0, run["objective"] / optimum[run["instance"]] - 1) for run in proven]
            exact = sum(value < 2e-4 for value in above)
            words[0] = f"{statistics.median(below):.1%} ({min(below):.1%} to {max(below):.1%})"
            words[1] = f"mean {statistics.fmean(above):.2%}, worst {max(above):.2%}; at it in {exact} of {len(proven)}"
        print(f"| {size} | {limit_s:g} | {len(group)} | {gap:.1%} | {decided:.1%} | {words[0]} | {words[1]} |")


if __name__ == "__main__":
    main()
