"""A row for each release and problem: how close our solvers come to the best known plans, and how soon.

    mast-opt bench quality-over-time --out benchmarks/results
    python -m benchmarks.releases 0.1.0 2026-11-29       # adds the release's rows to benchmarks/data/releases.jsonl
    python -m benchmarks.measured_pages

The instances and limits are those of the suite. The best known value of an instance is the best of all its results.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mast_opt.planner.bench.results import metrics
from mast_opt.planner.bench.results.store import Result, latest, load

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "quality-over-time.jsonl"
ROWS = ROOT / "data" / "releases.jsonl"
SOLVERS = ("tetris", "exhaustive+repair", "ras", "twine")
NEAR = 0.01
"""Gap to the best known value whose first moment is looked for."""


def primal_gap(value: float | None, best: float) -> float:
    """|value − best| / max(|value|, |best|); 1 without a plan, 0 where both are 0."""
    if value is None or value * best < 0:
        return 1.0
    return abs(value - best) / max(abs(value), abs(best), 1e-9)


def primal_integral(result: Result, best: float) -> float:
    """Mean of the primal gap over the time limit of a run, from 0 to 1.

    After Berthold, Measuring the impact of primal heuristics, Operations Research Letters 41, 2013, divided by the
    limit. From the end of a run on, the objective that the verifier confirms counts.
    """
    limit_s = float(result["time_limit_s"])
    steps = [(min(float(event[0]), limit_s), event[1]) for event in result.get("events", ()) if event[1] is not None]
    steps.append((min(metrics.time_s(result), limit_s), metrics.objective(result)))
    total, since_s, gap = 0.0, 0.0, 1.0
    for at_s, value in sorted(steps, key=lambda step: step[0]):
        total += gap * (at_s - since_s)
        since_s, gap = at_s, primal_gap(value, best)
    return (total + gap * (limit_s - since_s)) / limit_s


def figures(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A row for each of our solvers, over instances and seeds.

    ``near_s`` is the mean of the seconds until a plan is within ``NEAR`` of the best known value, where a run that
    never gets there counts its limit.
    """
    best, rows = metrics.best_values(results, {}), []
    for solver in SOLVERS:
        mine = [result for result in results if metrics.contestant(result) == solver]
        if not mine:
            continue
        values = [best[metrics.instance(result)] for result in mine]
        near = [
            metrics.time_to(result, metrics.target_of(value, NEAR, metrics.sense(result)))
            for result, value in zip(mine, values, strict=True)
        ]
        row = {"problem": mine[0]["source"]["kind"], "solver": solver, "runs": len(mine)}
        row["gap"] = statistics.mean(
            primal_gap(metrics.objective(result), value) for result, value in zip(mine, values, strict=True)
        )
        row["primal_integral"] = statistics.mean(
            primal_integral(result, value) for result, value in zip(mine, values, strict=True)
        )
        row["near"] = sum(at_s is not None for at_s in near)
        row["near_s"] = statistics.mean(
            float(result["time_limit_s"]) if at_s is None else at_s for result, at_s in zip(mine, near, strict=True)
        )
        row["proven"] = statistics.mean(min(1.0, gap) if (gap := metrics.gap(one)) is not None else 1.0 for one in mine)
        rows.append(row)
    return rows


def lines(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The rows of the page, problem by problem, the newest release first."""
    problems = dict.fromkeys(row["problem"] for row in rows)
    return [
        (
            f"{row['problem']}, `{row['solver']}`",
            f"{row['release']} ({row['date']})",
            f"{row['gap']:.2%}",
            f"{row['proven']:.1%}",
            f"{row['primal_integral']:.3f}",
            f"{row['near']} of {row['runs']}",
            f"{row['near_s']:.1f}",
        )
        for problem in problems
        for row in reversed(rows)
        if row["problem"] == problem
    ]


def main() -> None:
    """Replace the rows of a release by those of the committed results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release")
    parser.add_argument("date", help="of the results, such as 2026-11-29")
    given = parser.parse_args()
    kept = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    new = [{"release": given.release, "date": given.date} | row for row in figures(latest(load(RESULTS)))]
    rows = [row for row in kept if row["release"] != given.release] + new
    ROWS.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
