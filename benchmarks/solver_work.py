"""Work of exact solvers with and without a setting, counted: nodes, iterations of the simplex method, processor time.

    python benchmarks/solver_work.py scaling
    python benchmarks/solver_work.py interior-point --time-limit 120
    python benchmarks/solver_work.py tolerance --time-limit 15

Each instance is solved with each solver and three seeds, once with the setting and once without, in turn. Counts do not
depend on what else the machine does; times are processor time. The ratio is with / without, as a geometric mean over
the seeds; below 1, the setting pays. A search that its limit cut short is compared by objective and bound instead.
"""

from __future__ import annotations

import argparse
import math
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import mast_opt
from mast_opt.problems.backends import cbc, highs, scip
from mast_opt.problems.mip import Mip, Scaled

ROOT = Path(__file__).parents[1] / "instances"
SMALL: dict[str, tuple[str, str, dict[str, int]]] = {
    "data standard 15x20x4": ("data-placement", "standard", {"datasets": 15, "workloads": 20, "regions": 4}),
    "data weakly 40x40x8": ("data-placement", "weakly-coupled", {"datasets": 40, "workloads": 40, "regions": 8}),
    "data features 6x8x3": ("data-placement", "features", {"datasets": 6, "workloads": 8, "regions": 3}),
    "jobs study 2x2x2": ("job-placement", "study", {"regions": 2, "clusters": 2, "servers": 2, "fill_percent": 90}),
    "jobs features": ("job-placement", "features", {"regions": 2, "clusters": 2, "servers": 2, "jobs": 12}),
    "tasks challenge 30x6": ("task-reassignment", "challenge", {"processes": 30, "machines": 6, "resources": 3}),
    "servers standard 100": ("server-assignment", "standard", {"servers": 100, "reservations": 5, "datacenters": 2}),
    "servers scarce 60": ("server-assignment", "scarce", {"servers": 60, "reservations": 4, "datacenters": 2}),
    "shares packing 16": ("resource-allocation", "packing", {"jobs": 16, "types": 3}),
}
LARGE: dict[str, tuple[str, str, dict[str, int]]] = {
    "data standard 100x150x8": ("data-placement", "standard", {"datasets": 100, "workloads": 150, "regions": 8}),
    "data standard 200x300x10": ("data-placement", "standard", {"datasets": 200, "workloads": 300, "regions": 10}),
    "data weakly 400x400x10": ("data-placement", "weakly-coupled", {"datasets": 400, "workloads": 400, "regions": 10}),
    "jobs study 3x2x6": ("job-placement", "study", {"regions": 3, "clusters": 2, "servers": 6, "fill_percent": 92}),
    "tasks challenge 200x20": ("task-reassignment", "challenge", {"processes": 200, "machines": 20, "resources": 4}),
    "servers standard 2000": ("server-assignment", "standard", {"servers": 2000, "reservations": 30, "datacenters": 3}),
}
COARSE = 1e-7
"""Tolerance of HiGHS to compare ours with."""
COUNTS = ("nodes", "iterations", "cpu_s")
Found = dict[str, float | str | None]


def committed(least: int, most: int) -> dict[str, Path]:
    """Committed instances by name, of between so many bytes in all tables."""
    found = {}
    for header in sorted(ROOT.glob("*_*/*/instance.toml")):
        size = sum(file.stat().st_size for file in header.parent.iterdir() if file.is_file())
        if least <= size < most:
            found[f"{header.parent.parent.name}/{header.parent.name}"] = header.parent
    return found


def as_stated(mip: Mip) -> Scaled:
    """The program without scaling."""
    return Scaled(mip, np.ones(len(mip.row_lower)), np.ones(len(mip.cost)), 1.0)


@contextmanager
def setting(name: str, *, on: bool) -> Iterator[None]:
    """The setting in force, or not, for the solves inside."""
    if name == "interior-point":
        with mock.patch.object(highs, "MANY_COLUMNS", 0 if on else 10**9):
            yield
    elif name == "tolerance":
        with mock.patch.object(highs, "TOLERANCE", highs.TOLERANCE if on else COARSE):
            yield
    elif on:
        yield
    else:
        with (
            mock.patch.object(highs, "scale", as_stated),
            mock.patch.object(scip, "scale", as_stated),
            mock.patch.object(cbc, "scale", as_stated),
        ):
            yield


def counts(run: Any) -> dict[str, float]:
    """Nodes and iterations of one run of a backend."""
    if isinstance(run, highs._Run):
        info = run._solver.getInfo()
        return {"nodes": max(info.mip_node_count, 0), "iterations": max(info.simplex_iteration_count, 0)}
    if isinstance(run, scip._Run):
        return {"nodes": run._model.getNTotalNodes(), "iterations": run._model.getNLPIterations()}
    words = " ".join(run._log.tail)
    found = [re.search(rf"{what}: *(\d+)", words) for what in ("Enumerated nodes", "Total iterations")]
    nodes, iterations = (0.0 if match is None else float(match[1]) for match in found)
    return {"nodes": nodes, "iterations": iterations}


def cpu_s() -> float:
    """Processor time of this process and of the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def solved(problem: Any, solver: str, seed: int, time_limit_s: float) -> Found:
    """One solve: what came out, and the work of all its runs."""
    work = dict.fromkeys(("nodes", "iterations"), 0.0)
    module: Any = {"highs": highs, "scip": scip, "cbc": cbc}[solver]
    outcome: Callable[[Any], Any] = module._Run.outcome

    def counted(run: Any) -> Any:
        try:
            return outcome(run)
        finally:
            for name, value in counts(run).items():
                work[name] += value

    before = cpu_s()
    with mock.patch.object(module._Run, "outcome", counted):
        try:
            found = mast_opt.solve(problem, solver, seed=seed, threads=1, time_limit_s=time_limit_s)
        except mast_opt.MastOptError as error:
            return {"status": type(error).__name__, "objective": None, "bound": None, **work, "cpu_s": cpu_s() - before}
    known: Found = {"status": found.status.value, "objective": found.objective, "bound": found.bound}
    return {**known, **work, "cpu_s": cpu_s() - before}


def mean_ratio(pairs: list[tuple[Found, Found]], what: str) -> float:
    """Geometric mean of with / without, each raised by 1 (a tenth of a second for times)."""
    least = 0.1 if what == "cpu_s" else 1.0
    logs = [math.log((float(on[what] or 0) + least) / (float(off[what] or 0) + least)) for on, off in pairs]
    return math.exp(sum(logs) / len(logs))


def row(name: str, solver: str, pairs: list[tuple[Found, Found]]) -> str:
    """One line of the table in Markdown."""

    def said(found: Found) -> str:
        numbers = "/".join("–" if found[key] is None else f"{found[key]:.5g}" for key in ("objective", "bound"))
        return f"{str(found['status']).lower()} {numbers}"

    cells = [name, solver, *(f"{mean_ratio(pairs, what):.2f}" for what in COUNTS)]
    cells += [f"{sum(float(found['cpu_s'] or 0) for found in side):.1f}" for side in zip(*pairs, strict=True)]
    return "| " + " | ".join([*cells, said(pairs[0][0]), said(pairs[0][1])]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setting", choices=("scaling", "interior-point", "tolerance"))
    parser.add_argument("--solvers", help="comma-separated; HiGHS alone has an interior point and this tolerance")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds for each solve")
    parser.add_argument("--only", default="", help="instances whose name has this word")
    chosen = parser.parse_args()
    many = chosen.setting == "interior-point"
    solvers = (chosen.solvers or ("highs,scip,cbc" if chosen.setting == "scaling" else "highs")).split(",")
    instances: dict[str, Callable[[], Any]] = {}
    for name, path in committed(*((50_000, 10**9) if many else (0, 50_000))).items():
        instances[name] = partial(mast_opt.read, path)
    for name, (kind, family, sizes) in (LARGE if many else SMALL).items():
        instances[name] = partial(mast_opt.generate, kind, family, seed=1, **sizes)
    print("| instance | solver | nodes | iterations | time | s with | s without | with | without |")
    print("|---|---|---|---|---|---|---|---|---|")
    for solver in solvers:
        solved(mast_opt.read(ROOT / "task_reassignment" / "crowded-machine"), solver, 0, 10.0)  # what is loaded once
    total: dict[str, list[tuple[Found, Found]]] = {solver: [] for solver in solvers}
    for name, problem_of in instances.items():
        if chosen.only not in name:
            continue
        problem = problem_of()
        for solver in solvers:
            pairs = []
            for seed in range(chosen.seeds):
                sides = []
                for on in (True, False):
                    with setting(chosen.setting, on=on):
                        sides.append(solved(problem, solver, seed, chosen.time_limit))
                pairs.append((sides[0], sides[1]))
            total[solver] += pairs
            print(row(name, solver, pairs), flush=True)
    for solver, pairs in total.items():
        print(row("all", solver, pairs), flush=True)


if __name__ == "__main__":
    main()
