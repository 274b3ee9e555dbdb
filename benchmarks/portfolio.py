"""``auto`` against its members: every kind, equal wall time, as a table in Markdown.

    python benchmarks/portfolio.py --time-limit 10

The exact solver and the heuristic have one thread, ``auto`` has two. Each run is in a process of its own, whose
kernels are compiled before the clock starts. The exact solver and the heuristic run at the same time, as they do in
``auto``, so that the other core is as busy for each. The objective and the bound are those of the solution; ``*``
marks an optimum that is proven.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import mast_opt

OWN = {
    "data-placement": "tetris",
    "job-placement": "exhaustive+repair",
    "server-assignment": "ras",
    "task-reassignment": "twine",
}
CASES: tuple[tuple[str, str, int, dict[str, int]], ...] = (
    ("data-placement", "standard", 1, {"datasets": 12, "workloads": 15, "regions": 3}),
    ("data-placement", "standard", 1, {"datasets": 30, "workloads": 40, "regions": 4}),
    ("data-placement", "standard", 1, {"datasets": 80, "workloads": 120, "regions": 6}),
    ("data-placement", "standard", 1, {"datasets": 100, "workloads": 150, "regions": 8}),
    ("data-placement", "standard", 2, {"datasets": 100, "workloads": 150, "regions": 8}),
    ("data-placement", "standard", 1, {"datasets": 200, "workloads": 300, "regions": 10}),
    ("data-placement", "weakly-coupled", 1, {"datasets": 150, "workloads": 150, "regions": 10}),
    ("data-placement", "links", 1, {"datasets": 60, "workloads": 90, "regions": 6}),
    ("job-placement", "study", 1, {"regions": 2, "clusters": 2, "servers": 4, "fill_percent": 90}),
    ("job-placement", "study", 1, {"regions": 3, "clusters": 2, "servers": 10, "fill_percent": 92}),
    ("job-placement", "standard", 1, {"regions": 4, "clusters": 3, "servers": 12, "jobs": 120}),
    ("server-assignment", "standard", 1, {"servers": 500, "reservations": 10, "datacenters": 2}),
    ("server-assignment", "scarce", 1, {"servers": 2000, "reservations": 20, "datacenters": 3}),
    ("task-reassignment", "challenge", 1, {"processes": 60, "machines": 8, "resources": 3}),
    ("task-reassignment", "challenge", 1, {"processes": 200, "machines": 20, "resources": 4}),
    ("task-reassignment", "containers", 1, {"processes": 1000, "machines": 20, "resources": 3}),
    ("resource-allocation", "standard", 1, {"jobs": 128, "types": 3}),
    ("resource-allocation", "packing", 1, {"jobs": 48, "types": 3}),
)
"""Kind, family, seed, sizes."""


def solved(case: int, solver: str, threads: int, time_limit_s: float) -> dict[str, Any]:
    """What one solver finds on one instance."""
    kind, family, seed, sizes = CASES[case]
    problem = mast_opt.generate(kind, family, seed=seed, **sizes)
    found = mast_opt.solve(problem, solver, threads=threads, time_limit_s=time_limit_s)
    return {
        "objective": found.objective,
        "bound": found.bound,
        "optimal": found.status is mast_opt.Status.OPTIMAL,
        "by": [found.strategy.get("plan_by", ""), found.strategy.get("bound_by", "")],
        "seconds": sum(spent for phase, spent in found.runtime_s.items() if phase != "compile"),
    }


def run(case: int, solvers: Iterable[str], threads: int, time_limit_s: float) -> list[dict[str, Any]]:
    """``solved`` by each solver in a process of its own, all at the same time."""
    begun = []
    for solver in solvers:
        command = [sys.executable, __file__, "--time-limit", str(time_limit_s), "--one", str(case)]
        command += ["--solver", solver, "--threads", str(threads)]
        begun.append((solver, subprocess.Popen(command, stdout=subprocess.PIPE, text=True)))
    answers = []
    for solver, process in begun:
        words, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"{solver} on case {case} ended {process.returncode}")
        answers.append(json.loads(words))
    return answers


def cell(found: dict[str, Any] | None) -> str:
    """Objective and bound."""
    if found is None:
        return "–"
    objective, bound = (
        "–" if found[name] is None else f"{found[name]:.5g}".replace("e+0", "e") for name in ("objective", "bound")
    )
    return f"{objective}*" if found["optimal"] else f"{objective} ({bound})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds for each run")
    parser.add_argument("--cases", help="positions, such as 0,3; all unless given")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--solver", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one is not None:
        print(json.dumps(solved(chosen.one, chosen.solver, chosen.threads, chosen.time_limit)))
        return
    print("| instance | `auto` | plan, bound by | `highs` | heuristic |\n|---|---|---|---|---|", flush=True)
    cases = range(len(CASES)) if chosen.cases is None else [int(text) for text in chosen.cases.split(",")]
    for case in cases:
        kind, family, _, sizes = CASES[case]
        (auto,) = run(case, ["auto"], 2, chosen.time_limit)
        own = OWN.get(kind)
        exact, *ours = run(case, ["highs"] if own is None else ["highs", own], 1, chosen.time_limit)
        what = f"{kind}, {family}, {' × '.join(str(size) for size in sizes.values())}"
        cells = [what, cell(auto), ", ".join(auto["by"]), cell(exact), cell(ours[0] if ours else None)]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
