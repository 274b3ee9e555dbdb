"""Every solver on one instance under one time limit: the table of the README.

    python -m benchmarks.solvers instances/data_placement/cloud-regions --time-limit 60

``--rows benchmarks/data/solvers.jsonl --page README.md`` keeps the runs and renews the README's table.

Runs follow one another, each in a process of its own, through the command line that users have. Objective and
bound are what the verifier and the solver report at the end; the gap is (objective − bound) / objective.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.study_pages import with_tables

FIGURES = {"objective": ".4f", "bound": ".4f", "gap": ".1%"}
"""Figure of a run → its form in the table."""


def run(path: str, solver: str, time_limit_s: float) -> dict[str, Any]:
    """What one ``mast-opt solve`` reports."""
    command = [sys.executable, "-m", "mast_opt", "solve", path, "--solver", solver, "--json"]
    command += ["--time-limit", str(time_limit_s)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise SystemExit(f"{solver} printed no JSON (exit {done.returncode}):\n{done.stderr}") from None
    if answer.get("error"):
        raise SystemExit(f"{solver}: {answer['error']}")
    version = (answer.get("versions") or {}).get(solver, "")
    figures = {name: answer.get(name) for name in ("status", *FIGURES)}
    return {"instance": path, "time_limit_s": time_limit_s, "solver": solver, "version": version, **figures}


def table(runs: Iterable[Mapping[str, Any]]) -> str:
    """A row for each run, in Markdown."""
    lines = ["| solver | status | objective | bound | gap |", "|---|---|--:|--:|--:|"]
    for one in runs:
        cells = ["–" if one[name] is None else format(one[name], form) for name, form in FIGURES.items()]
        lines.append(f"| {' | '.join([(one['solver'] + ' ' + one['version']).strip(), one['status'], *cells])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each solver")
    parser.add_argument("--solvers", default="highs,cpsat,scip,cbc,tetris")
    parser.add_argument("--rows", type=Path, help="file for the runs, one JSON object a line")
    parser.add_argument("--page", type=Path, help="page whose table 'solvers' is made from them")
    chosen = parser.parse_args()
    runs = [run(chosen.path, solver, chosen.time_limit) for solver in chosen.solvers.split(",")]
    print(table(runs))
    if chosen.rows:
        chosen.rows.write_text("".join(f"{json.dumps(one)}\n" for one in runs))
    if chosen.page:
        chosen.page.write_text(with_tables(chosen.page.read_text(), {"solvers": lambda: table(runs)}))


if __name__ == "__main__":
    main()
