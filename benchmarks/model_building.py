"""What it costs to build a data-placement program and hand it to HiGHS: ours, a bare passModel, and PuLP.

    python benchmarks/model_building.py [--datasets 50000] [--regions 20] [--workloads 75000] [--pulp-datasets 2000]

The instance is of family ``standard``, seed 0. Three ways to the same program in a HiGHS object, none of them solved:

    ours    ``formulation.base(problem)``, scaling, and the hand-over of backend ``highs``
    bare    one ``highspy`` ``passModel`` of the arrays that ours hands over, which exist already
    PuLP    the same columns, rows and numbers as PuLP objects (``add_variable``, ``LpAffineExpression``, comparisons),
            then PuLP's own ``HiGHS`` interface up to before it solves. PuLP reads finished numbers off our arrays, so
            the cost of computing them is not counted against it. A row with two limits is two constraints

One process measures all. After a warm-up on a small instance (which loads the compiled kernels), ours and bare take
turns, and medians are shown; PuLP is measured once on a smaller instance of the same shape, next to ours and bare on
that one, because it takes about 0.5 kB an entry (``--pulp-datasets`` equal to ``--datasets`` measures it in full).
CPU time is that of the process; memory is the highest resident size above that before (Linux only). Where the first
touch of memory is slow, set MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=1000000000000: the process then keeps its
memory between turns, and the column for memory says nothing.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pulp

from mast_opt.problems.backends.highs import pass_program
from mast_opt.problems.data_placement.formulation import formulation
from mast_opt.problems.data_placement.generate import standard
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.mip import Mip, Scaled, scale

REPEATS = 5
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Cost:
    wall_s: float
    cpu_s: float
    memory_mb: float

    @classmethod
    def of(cls, work: Callable[[], object]) -> Cost:
        """What ``work`` costs; its result is dropped afterwards."""
        gc.collect()
        _forget_peak()
        memory, cpu, wall = _status_mb("VmRSS"), time.process_time(), time.perf_counter()
        result = work()
        wall, cpu, memory = time.perf_counter() - wall, time.process_time() - cpu, _status_mb("VmHWM") - memory
        del result
        return cls(wall, cpu, memory)

    @classmethod
    def median(cls, costs: list[Cost]) -> Cost:
        fields = ("wall_s", "cpu_s", "memory_mb")
        return cls(*(statistics.median(getattr(cost, field) for cost in costs) for field in fields))


def _status_mb(field: str) -> float:
    if not STATUS.exists():
        return float("nan")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def _forget_peak() -> None:
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def ratio(cost: float, base: float) -> float:
    return cost / base if base > 0 else float("nan")


def quiet_highs() -> Any:
    solver = highspy.Highs()
    solver.setOptionValue("log_to_console", False)
    return solver


def accepted(status: Any, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise RuntimeError(f"HiGHS could not {what}")


def ours(problem: DataPlacement) -> tuple[Any, Scaled]:
    scaled = scale(formulation.base(problem).mip)
    solver = quiet_highs()
    pass_program(highspy, solver, scaled, accepted)
    return solver, scaled


def bare(mip: Mip) -> Any:
    solver = quiet_highs()
    pass_program(highspy, solver, Scaled(mip, mip.row_lower, mip.cost, 1.0), accepted)
    return solver


def through_pulp(mip: Mip) -> Any:
    problem = pulp.LpProblem("data_placement", pulp.LpMinimize)
    finite = [np.where(np.isfinite(bound), bound, np.nan) for bound in (mip.col_lower, mip.col_upper)]
    bounds = [[None if number != number else number for number in bound.tolist()] for bound in finite]
    columns = [
        problem.add_variable(f"x{j}", low, high, pulp.LpInteger if whole else pulp.LpContinuous)
        for j, (low, high, whole) in enumerate(zip(*bounds, mip.integral.tolist(), strict=True))
    ]
    problem.setObjective(pulp.LpAffineExpression(zip(columns, mip.cost.tolist(), strict=True), mip.offset))
    start, index, value = mip.row_start.tolist(), mip.index.tolist(), mip.value.tolist()
    for r, (low, high) in enumerate(zip(mip.row_lower.tolist(), mip.row_upper.tolist(), strict=True)):
        entries = slice(start[r], start[r + 1])
        row = pulp.LpAffineExpression(
            [(columns[j], number) for j, number in zip(index[entries], value[entries], strict=True)]
        )
        if low == high:
            problem.addConstraint(row == low)
            continue
        if low > -np.inf:
            problem.addConstraint(row >= low)
        if high < np.inf:
            problem.addConstraint(row <= high)
    interface = pulp.HiGHS(msg=False)
    interface.createAndConfigureSolver(problem)
    interface.buildSolverModel(problem)
    if problem.solverModel.getNumCol() != mip.shape[1]:
        raise RuntimeError("PuLP handed over a different number of columns")
    return problem


def measure(datasets: int, workloads: int, regions: int, with_pulp: bool) -> None:
    problem = standard(np.random.default_rng(0), datasets=datasets, workloads=workloads, regions=regions)
    _, scaled = ours(problem)
    mip = scaled.mip
    rows, columns = mip.shape
    print(f"\n{problem.name}: {rows:,} rows, {columns:,} columns, {len(mip.value):,} entries")
    turns = [(Cost.of(lambda: ours(problem)), Cost.of(lambda: bare(mip))) for _ in range(REPEATS)]
    costs = {"ours": Cost.median([our for our, _ in turns]), "bare passModel": Cost.median([one for _, one in turns])}
    if with_pulp:
        costs["PuLP"] = Cost.of(lambda: through_pulp(mip))
    base = costs["bare passModel"]
    print(f"{'':15} {'wall s':>9} {'CPU s':>9} {'memory MB':>10} {'wall/bare':>10} {'CPU/bare':>9} {'memory/bare':>12}")
    for name, cost in costs.items():
        print(
            f"{name:15} {cost.wall_s:9.3f} {cost.cpu_s:9.3f} {cost.memory_mb:10,.0f} {cost.wall_s / base.wall_s:10.2f} "
            f"{cost.cpu_s / base.cpu_s:9.2f} {ratio(cost.memory_mb, base.memory_mb):12.2f}"
        )
    ratios = sorted(our.wall_s / one.wall_s for our, one in turns)
    print(f"ours / bare, wall, each turn: {', '.join(f'{each:.2f}' for each in ratios)}")
    if with_pulp:
        our, theirs = costs["ours"], costs["PuLP"]
        print(f"PuLP / ours: wall {theirs.wall_s / our.wall_s:.0f}, CPU {theirs.cpu_s / our.cpu_s:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=50_000)
    parser.add_argument("--regions", type=int, default=20)
    parser.add_argument("--workloads", type=int, help="1.5 times the datasets unless given")
    parser.add_argument("--pulp-datasets", type=int, default=2_000, help="size of the instance that PuLP is given")
    args = parser.parse_args()
    workloads = args.workloads or args.datasets * 3 // 2
    small = min(args.pulp_datasets, args.datasets)
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()},")
    print(f"NumPy {np.__version__}, highspy {quiet_highs().version()}, PuLP {pulp.__version__}; medians of {REPEATS}")
    ours(standard(np.random.default_rng(0), datasets=20, workloads=30, regions=3))
    if small < args.datasets:
        measure(small, max(workloads * small // args.datasets, 1), args.regions, with_pulp=True)
    measure(args.datasets, workloads, args.regions, with_pulp=small == args.datasets)


if __name__ == "__main__":
    main()
