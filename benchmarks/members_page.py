"""``auto`` against each of its members: the table of docs/how-to/choose-a-solver.md, from the committed results.

    python -m benchmarks.members_page benchmarks/results docs/how-to/choose-a-solver.md

Each figure is of the run with the median objective of all seeds; an allocation has no heuristic and no row.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.portfolio import OWN
from benchmarks.study_pages import with_tables

SUITES = ("small", "size-limited", "quality-over-time")


def read(folder: Path) -> list[dict[str, Any]]:
    """The runs of all suites in which ``auto`` takes part."""
    return [json.loads(line) for name in SUITES for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def table(runs: Iterable[Mapping[str, Any]]) -> str:
    """A row for each instance on which ``auto``, HiGHS and the heuristic were run."""
    found: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for run in runs:
        kind, name = run["source"]["kind"], run["contestant"]["name"]
        if run.get("objective") is not None and name in ("auto", "highs", OWN.get(kind)):
            instance = f"{kind}, {run['instance']}, {run['time_limit_s']:g} s"
            found.setdefault((kind, instance), {}).setdefault(name, []).append(run)
    lines = [
        "| instance | `auto` | plan, bound by | `highs` | heuristic | `auto` to the better |",
        "|---|---|---|---|---|--:|",
    ]
    for (kind, instance), by in sorted(found.items()):
        if by.keys() >= {"auto", "highs", OWN.get(kind)}:
            auto, highs, own = (_median(by[name]) for name in ("auto", "highs", OWN[kind]))
            best = min(highs["objective"], own["objective"])
            more = (auto["objective"] - best) / abs(best)
            who = f"{auto['strategy']['plan_by']}, {auto['strategy']['bound_by']}"
            cells = [instance, _figures(auto), who, _figures(highs), _figures(own), f"{100 * more:+.2f}%"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _median(runs: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return sorted(runs, key=lambda run: (run["objective"], run["seed"]))[(len(runs) - 1) // 2]


def _figures(run: Mapping[str, Any]) -> str:
    """Objective and bound, or a star for a proven optimum."""
    objective, bound = (f"{n:,.0f}" if abs(n) >= 1e4 else f"{n:,.5g}" for n in (run["objective"], run["bound"] or 0))
    return f"{objective}*" if run["status"] == "OPTIMAL" else f"{objective} ({bound})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    runs = read(given.results)
    given.page.write_text(with_tables(given.page.read_text(), {"members": lambda: table(runs)}))


if __name__ == "__main__":
    main()
