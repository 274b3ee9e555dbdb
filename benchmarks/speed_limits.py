"""Limits of speed: five runs of each measure, whose mean may be a fifth above the committed one.

    python -m benchmarks.speed_limits            # exit code 1 if a measure is beyond its limit
    python -m benchmarks.speed_limits --renew    # benchmarks/speed_limits.toml from this machine

A measure is the processor time of work of a fixed size, divided by that of a yardstick which does not use mast-opt, so
that machines of different speed can be compared. Kueue's performance tests have such limits for their durations.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import mast_opt
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import read_trace

ROOT = Path(__file__).parents[1]
LIMITS = Path(__file__).with_suffix(".toml")
RUNS = 5
ALLOWED = 1.2
"""Times the mean of the runs."""
Work = Callable[[], object]


def yardstick() -> None:
    """Sorting in NumPy, and a loop of the interpreter."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        np.sort(rng.random(1_000_000))
    found: dict[int, int] = {}
    for at in range(1_000_000):
        found[at % 1000] = found.get(at % 1000, 0) + at


def solving(kind: str, solver: str, iterations: int, family: str, **sizes: int) -> Work:
    """A heuristic for a number of rounds, on one thread."""
    problem = mast_opt.generate(kind, family, seed=1, **sizes)
    return lambda: mast_opt.solve(problem, solver, iterations=iterations, threads=1, gap=0.0)


def placing(servers: int = 500, jobs: int = 10_000) -> None:
    """Jobs that come to a live fleet, most of which fit until it is full."""
    rng = np.random.default_rng(1)
    fleet = mast_opt.Fleet(
        (mast_opt.Server(f"s{n}", "region", f"c{n % 4}", f"k{n // 16}", "h100", 8, 0, 0) for n in range(servers)),
        tiers=(0,),
    )
    for number, gpus in enumerate(rng.choice([1, 2, 4, 8], size=jobs).tolist()):
        fleet.place_and_commit(mast_opt.Job(f"job-{number}", 0, mgpu=1000 * gpus, cpu_mcores=0, memory_mib=0))


def measures() -> dict[str, Work]:
    """What is timed."""
    trace = read_trace(ROOT / "instances" / "traces" / "philly-small")
    tetris = {"datasets": 350, "workloads": 520, "regions": 8}
    batch = {"regions": 3, "clusters": 2, "servers": 6, "jobs": 60}
    return {
        "tetris, 60 rounds": solving("data-placement", "tetris", 60, "standard", **tetris),
        "exhaustive+repair, 6 rounds": solving("job-placement", "exhaustive+repair", 6, "standard", **batch),
        "ras, 2 rounds": solving("server-assignment", "ras", 2, "standard", servers=20_000, reservations=50),
        "twine, 40 rounds": solving("task-reassignment", "twine", 40, "challenge", processes=1000, machines=50),
        "live fleet, 10,000 jobs": placing,
        "loop, philly-small": lambda: run_trace(trace, "mast", {}),
    }


def timed(work: Work) -> float:
    """Processor seconds of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measured(works: Mapping[str, Work], runs: int = RUNS) -> dict[str, float]:
    """Measure → mean of its runs in yardsticks. One more run comes first and does not count: kernels are compiled."""
    means = {}
    for name, work in works.items():
        work()
        means[name] = statistics.mean(timed(work) / timed(yardstick) for _ in range(runs))
    return means


def beyond(means: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    """A line for each measure that is beyond its limit, has none, or is missing."""
    lines = [f"{name}: {mean:.2f} yardsticks, and no limit" for name, mean in means.items() if name not in limits]
    lines += [
        f"{name}: {means[name]:.2f} yardsticks; at most {limit:.2f} are allowed"
        for name, limit in limits.items()
        if name in means and means[name] > limit
    ]
    return lines + [f"{name}: not measured" for name in limits if name not in means]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true", help="write the limits")
    given = parser.parse_args()
    means = measured(measures())
    if given.renew:
        rows = [f'"{name}" = {ALLOWED * mean:.2f}' for name, mean in means.items()]
        LIMITS.write_text("\n".join(["# Most yardsticks of each measure; see speed_limits.py.", *rows]) + "\n")
        return 0
    limits = tomllib.loads(LIMITS.read_text())
    for name, mean in means.items():
        print(f"{name}: {mean:.2f} of {limits.get(name, float('nan')):.2f}")
    failed = beyond(means, limits)
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
