"""Every solver on one instance under one time limit, as a table in Markdown.

    python benchmarks/solvers.py instances/data_placement/cloud-regions --time-limit 60

Runs follow one another, each in a process of its own, through the command line that users have. Objective and
bound are what the verifier and the solver report at the end; the gap is (objective − bound) / objective.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys


def run(path: str, solver: str, time_limit_s: float) -> dict[str, object]:
    """The JSON object of one ``mast-opt solve``."""
    command = [sys.executable, "-m", "mast_opt", "solve", path, "--solver", solver, "--json"]
    command += ["--time-limit", str(time_limit_s)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        answer: dict[str, object] = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise SystemExit(f"{solver} printed no JSON (exit {done.returncode}):\n{done.stderr}") from None
    return answer


def row(solver: str, answer: dict[str, object]) -> str:
    """One line of the table."""

    def number(key: str, form: str) -> str:
        value = answer.get(key)
        return "–" if value is None else format(value, form)

    if answer.get("error"):
        return f"| {solver} | {answer['error']} | – | – | – |"
    versions = answer.get("versions") or {}
    assert isinstance(versions, dict)
    name = f"{solver} {versions.get(solver, '')}".strip()
    cells = [name, str(answer.get("status")), number("objective", ".4f"), number("bound", ".4f"), number("gap", ".1%")]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each solver")
    parser.add_argument("--solvers", default="highs,cpsat,scip,cbc,tetris")
    chosen = parser.parse_args()
    print(f"{chosen.path}, {chosen.time_limit:g} s, {os.cpu_count()} processors, {platform.machine()}", end="")
    print(f", Python {platform.python_version()}")
    print("\n| solver | status | objective | bound | gap |\n|---|---|---|---|---|")
    for solver in chosen.solvers.split(","):
        print(row(solver, run(chosen.path, solver, chosen.time_limit)), flush=True)


if __name__ == "__main__":
    main()
