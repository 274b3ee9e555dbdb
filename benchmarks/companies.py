"""Companies of 5 regions, 3 GPU types, 40 datasets and 60 workloads, drawn by seed: the default objective and others.

    python benchmarks/companies.py [--seeds 1 2 3] [--seconds 60] [--compare]

Some regions are overloaded today while others have room. Prints one JSON object for each seed: status and gap of
HiGHS on one thread, GPUs over the supply, TB copied, share of the work that moves, least use of a GPU type, and
processor time, which is limited, so that other work on the machine changes nothing. With ``--compare`` also for the
default of before levels of ``peak``; and where something is over the supply, so that another objective may leave less,
for level 1.0 in every tier and for a weight of 100 of ``overload``.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.plan import gpu_demand

REGIONS = {"virginia": 512, "oregon": 384, "frankfurt": 192, "stockholm": 192, "tokyo": 128}
"""Region → GPUs of its first type."""
TYPES = {"h100": (1.0, 4.2), "a100": (1.0, 2.1), "l40s": (0.3, 0.9)}
"""GPU type → GPUs relative to the region's first type, and USD an hour."""
BOUND = {"frankfurt": ("frankfurt", "stockholm"), "tokyo": ("tokyo",)}
"""Home → residency of a quarter of its data."""
BEFORE = "before"
TABLES = (
    *("regions", "gpu_supply", "datasets", "replicas", "residency"),
    *("workloads", "gpu_demand", "reads", "current_runs"),
)
DATASETS, WORKLOADS, USED, LARGEST = 40, 60, 0.75, 128
"""Numbers of datasets and workloads, GPUs in use today relative to the supply, and most GPUs of one workload."""


def company(seed: int) -> DataPlacement:
    """The company of a seed: work runs where its data is, more than fits in some regions."""
    rng, names = np.random.default_rng(seed), list(REGIONS)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for region, gpus in REGIONS.items():
        ingress = max(10, gpus // 8)
        amounts = {"storage_tb": 4 * gpus, "cpu_cores": 120 * gpus, "ingress_tb_per_day": ingress, "headroom": 0.1}
        tables["regions"].append({"region": region, **amounts})
        for kind, (part, usd) in TYPES.items():
            row = {"region": region, "gpu_type": kind, "gpus": round(gpus * part), "usd_per_gpu_hour": usd}
            tables["gpu_supply"].append(row)
    weight = np.array(list(REGIONS.values())) * rng.uniform(0.7, 1.3, len(names))
    home = rng.choice(len(names), DATASETS, p=weight / weight.sum())
    for i, at in enumerate(home.tolist()):
        bound = BOUND.get(names[at], ()) if rng.random() < 0.25 else ()
        size = round(float(np.clip(rng.lognormal(3, 1), 1, 400)), 1)
        tables["datasets"].append({"dataset": f"data-{i:02}", "size_tb": size})
        tables["replicas"].append({"dataset": f"data-{i:02}", "region": names[at]})
        tables["residency"] += [{"dataset": f"data-{i:02}", "region": region} for region in bound]
    supply = sum(REGIONS.values()) * sum(part for part, _ in TYPES.values())
    asked = rng.pareto(2.5, WORKLOADS) + 0.3
    asked *= USED * supply / asked.sum()
    for w, gpus in enumerate(asked.tolist()):
        first = int(rng.integers(DATASETS))
        near = np.flatnonzero(home == home[first])
        read = {first, *rng.choice(near, min(len(near), int(rng.integers(1, 3))), replace=False).tolist()}
        kinds = rng.choice(list(TYPES), int(rng.integers(1, 3)), replace=False, p=(0.4, 0.4, 0.2)).tolist()
        need = min(max(8, 8 * round(gpus / 8)), LARGEST)
        named = {"workload": f"work-{w:02}"}
        tables["workloads"].append({**named, "tier": int(rng.integers(3)), "cpu_cores": 8 * need})
        tables["gpu_demand"] += [{**named, "gpu_type": kind, "gpus": need * (1 + (kind != kinds[0]))} for kind in kinds]
        for i in sorted(read):
            volume = round(float(rng.lognormal(0, 1)), 2)
            tables["reads"].append({**named, "dataset": f"data-{i:02}", "tb_per_day": volume})
        tables["current_runs"].append({**named, "region": names[home[first]], "gpu_type": kinds[0], "share": 1})
    return mast_opt.from_tables("data-placement", tables, name=f"company-{seed}", rules={"days": 14})


@contextmanager
def interrupted_after(cpu_s: float) -> Iterator[threading.Event]:
    """An event that is set once the process has worked for so long."""
    spent, ended, end_s = threading.Event(), threading.Event(), time.process_time() + cpu_s

    def watch() -> None:
        while time.process_time() < end_s and not ended.wait(0.1):
            pass
        spent.set()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield spent
    finally:
        ended.set()
        watcher.join()


def measured(problem: DataPlacement, cpu_s: float) -> dict[str, Any]:
    """Figures of a solve; the status alone where there is no plan."""
    began = time.process_time()
    with interrupted_after(cpu_s) as spent:
        found = mast_opt.solve(problem, "highs", threads=1, cancel=spent)
    figures: dict[str, Any] = {"status": found.status.value, "cpu_s": round(time.process_time() - began, 1)}
    if found.plan is None or found.verdict is None:
        return figures
    used = gpu_demand(problem, found.plan)[:, :, -1].sum(axis=0) / problem.regions.supply_mgpu.sum(axis=0)
    metrics, terms = found.verdict.metrics, found.verdict.terms
    figures |= {"gap": found.gap, "over_gpus": metrics["overload_gpus"], "copied_tb": metrics["copied_tb"]}
    return figures | {"moved": round(terms["moved_work"], 4), "least_use_of_a_type": round(float(used.min()), 3)}


def others(problem: DataPlacement) -> dict[str, DataPlacement]:
    """The company under other objectives, by name."""
    stated = problem.objective

    def at(level: float, **weights: float) -> DataPlacement:
        levels = dict.fromkeys(problem.tiers, level)
        return replace(problem, objective=replace(stated, weights={**stated.weights, **weights}, peak_levels=levels))

    heavier = replace(stated, weights={**stated.weights, "overload": 100.0})
    before, level_1 = at(0.0, retyped_work=0.0), at(1.0)
    return {BEFORE: before, "level 1": level_1, "overload 100": replace(problem, objective=heavier)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time")
    parser.add_argument("--compare", action="store_true")
    given = parser.parse_args()
    for seed in given.seeds:
        problem = company(seed)
        rows = {"default": measured(problem, given.seconds)}
        for name, other in others(problem).items() if given.compare else ():
            if name == BEFORE or rows["default"].get("over_gpus"):
                rows[name] = measured(other, given.seconds)
        print(json.dumps({"seed": seed, **rows}), flush=True)


if __name__ == "__main__":
    main()
