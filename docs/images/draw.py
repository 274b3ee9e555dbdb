"""Draws solve.svg, the picture in README.md: what ``mast-opt solve`` prints for the real instance.

.venv/bin/python docs/images/draw.py
"""

from __future__ import annotations

import argparse
import io
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

import mast_opt
from mast_opt.planner.report.terminal.solution import show_solution

HERE = Path(__file__).resolve().parent
INSTANCE = HERE.parents[1] / "instances" / "data_placement" / "cloud-regions"
COLUMNS = 88
ROWS = 6
"""Of each long table, to keep the picture short."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", default="tetris")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--instance", type=Path, default=INSTANCE)
    given = parser.parse_args()
    began = time.perf_counter()
    problem = mast_opt.read(given.instance)
    solution = mast_opt.solve(problem, given.solver, time_limit_s=given.time_limit)
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, markup=False, emoji=False, highlight=False
    )
    show_solution(console, problem, solution, time.perf_counter() - began, ROWS)
    target = HERE / "solve.svg"
    target.write_text(console.export_svg(title=f"mast-opt solve {given.instance.name}", theme=DIMMED_MONOKAI))
    print(f"{target}: {solution.status.value}, objective {solution.objective}, bound {solution.bound}")


if __name__ == "__main__":
    main()
