"""What ``twine`` reaches on the machine reassignment challenge, and how fast.

    python benchmarks/task_reassignment_study.py DATA [--instances a1_1 b_3] [--seconds 300] [--seeds 0 1 2]
        [--rounds N]

DATA holds the challenge's files in A/, B/, X/ (``model_a1_1.txt``, also gzipped, and ``assignment_a1_1.txt``) and
best_known.csv with the columns instance, best_reported, s41_300s. Every run is one line of runs.jsonl under --out; runs
that are there already are not made again. With --rounds instead of --seconds, figures do not depend on how busy the
machine is. Then table.md (medians and the worst over seeds next to the best reported costs) and cost-over-time.svg are
written from all lines.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.core.solve_result import Event
from mast_opt.problems import backends
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, StoppingCriteria
from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.tables import roadef
from mast_opt.problems.task_reassignment.twine.params import TwineParams
from mast_opt.problems.task_reassignment.twine.solver import twine
from mast_opt.problems.task_reassignment.verification.verifier import verify

POINTS = 80
"""Of a curve."""

Run = dict[str, Any]


def read(data: Path, name: str) -> TaskReassignment:
    folder = data / name[0].upper()
    plain = folder / f"model_{name}.txt"
    return roadef.read(plain if plain.exists() else plain.with_suffix(".txt.gz"), folder / f"assignment_{name}.txt")


def available(data: Path) -> list[str]:
    """Instances of which both files are there."""
    models = {path.name.split(".")[0].removeprefix("model_") for path in data.glob("*/model_*.txt*")}
    return sorted(name for name in models if (data / name[0].upper() / f"assignment_{name}.txt").exists())


def run(problem: TaskReassignment, seconds: float | None, rounds: int | None, threads: int, seed: int) -> Run:
    """One search without a gap to stop at; its plan verified."""
    curve: list[tuple[float, float]] = []

    def keep(event: Event) -> None:
        if event.incumbent is not None:
            curve.append((event.elapsed_s, event.incumbent))

    began, used = time.perf_counter(), time.process_time()
    tools = SearchContext(
        np.random.default_rng(seed),
        SearchMonitor(StoppingCriteria(seconds, 0.0, rounds), keep),
        threads,
        lambda name: backends.get(name).solve,
    )
    found = twine(problem, tools, None, TwineParams())
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - used
    if found.plan is None:
        raise SystemExit(f"{problem.name}: no plan; the challenge's assignments of today are feasible, is this one?")
    verdict = verify(problem, found.plan)
    if not verdict.ok:
        raise SystemExit(f"{problem.name}: the plan breaks {verdict.violations[0]}")
    kept = curve[:: max(1, len(curve) // POINTS)] + curve[-1:]
    moved = int(verdict.metrics["moved_processes"])
    measured = {"wall_s": round(wall_s, 2), "cpu_s": round(cpu_s, 2), "curve": kept}
    return {"cost": verdict.objective, "bound": found.bound, "moved": moved, **measured}


def missing(wanted: list[Run], path: Path) -> list[Run]:
    """Those that have no line yet."""
    done = [{key: line.get(key) for key in wanted[0]} for line in lines(path)]
    return [one for one in wanted if one not in done]


def lines(path: Path) -> list[Run]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def table(runs: list[Run], best: dict[str, dict[str, str]]) -> str:
    """Medians and the worst over seeds, instance by instance."""
    heads = "instance,seconds × threads,processor s,runs,median cost,best reported,median gap,worst gap,S41 300 s,"
    heads += "bound,gap to bound,moved"
    text = ["| " + heads.replace(",", " | ") + " |", "| ---" + " | ---:" * heads.count(",") + " |"]
    grouped: dict[tuple[str, float, int], list[Run]] = defaultdict(list)
    for one in runs:
        if one["seconds"] is not None:
            grouped[one["instance"], one["seconds"], one["threads"]].append(one)
    for (name, seconds, threads), group in sorted(grouped.items()):
        cost = statistics.median(one["cost"] for one in group)
        worst = max(one["cost"] for one in group)
        known = float(best[name]["best_reported"])
        reached = f"{100 * (float(best[name]['s41_300s']) / known - 1):.3f}%" if best[name]["s41_300s"] else ""
        bound = max(one["bound"] for one in group)
        used = statistics.median(one["cpu_s"] for one in group)
        moved = statistics.median(one["moved"] for one in group)
        gaps = f"{100 * (cost / known - 1):.4f}% | {100 * (worst / known - 1):.4f}%"
        figures = f"{cost:,.0f} | {known:,.0f} | {gaps} | {reached}"
        proven = f"{bound:,.0f} | {100 * (1 - bound / cost):.3f}%"
        text.append(
            f"| {name} | {seconds:g} × {threads} | {used:.0f} | {len(group)} | {figures} | {proven} | {moved:,.0f} |"
        )
    return "\n".join(text) + "\n"


def draw(runs: list[Run], best: dict[str, dict[str, str]], path: Path) -> None:
    """Gap to the best reported cost over time, both logarithmic, a small picture for each instance."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    whole = [one for one in runs if one["seconds"] is not None]
    if not whole:
        return
    names = sorted({one["instance"] for one in whole})
    longest = max(one["seconds"] for one in whole)
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    style: Any = {"svg.hashsalt": "mast-opt", "font.size": 7, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        figure, grid = plt.subplots(rows, columns, figsize=(8, 1.6 * rows), squeeze=False, layout="constrained")
        for axes in grid.flat[len(names) :]:
            axes.set_visible(False)
        for axes, name in zip(grid.flat, names, strict=False):
            known = float(best[name]["best_reported"])
            for one in whole:
                if one["instance"] == name:
                    at, cost = np.array(one["curve"]).T
                    gap = np.maximum(100 * (cost / known - 1), 1e-4)
                    axes.step(np.maximum(at, 0.1), gap, where="post", color="#2a6f97", linewidth=0.9)
            axes.set(xscale="log", yscale="log", title=name, xlim=(0.1, longest))
        figure.supxlabel("seconds")
        figure.supylabel("% above the best reported cost")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--instances", nargs="*", help="all that are there unless given")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rounds", type=int, help="in the place of seconds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--out", type=Path, default=Path("out/task-reassignment"))
    chosen = parser.parse_args()
    with (chosen.data / "best_known.csv").open(encoding="utf-8", newline="") as file:
        best = {row["instance"]: row for row in csv.DictReader(file)}
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / "runs.jsonl"
    seconds = None if chosen.rounds else chosen.seconds
    limits = {"seconds": seconds, "rounds": chosen.rounds, "threads": chosen.threads}
    wanted = [
        {"instance": name, "seed": seed, **limits}
        for seed in chosen.seeds
        for name in chosen.instances or available(chosen.data)
    ]
    warm = read(chosen.data, wanted[0]["instance"])
    run(warm, None, 1, chosen.threads, 0)
    for one in missing(wanted, path):
        problem = read(chosen.data, one["instance"])
        result = run(problem, seconds, chosen.rounds, one["threads"], one["seed"])
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**one, **result}) + "\n")
        print(one["instance"], one["seed"], f"{result['cost']:,.0f}", flush=True)
    runs = lines(path)
    (chosen.out / "table.md").write_text(table(runs, best), encoding="utf-8")
    draw(runs, best, chosen.out / "cost-over-time.svg")


if __name__ == "__main__":
    main()
