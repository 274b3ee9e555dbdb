"""Gavel's published curves: mean completion time of single-GPU jobs over the rate at which they come.

    python -m benchmarks.gavel_curves --out benchmarks/data/gavel-curves.jsonl
    python -m benchmarks.gavel_curves --policies fifo --rates 4 --seeds 0 --first 400 --last 500 --jobs 1500

There are 36 GPUs of each of three types. Jobs are those that Gavel's generator draws from the same seed. They go on
coming until the jobs from ``--first`` up to ``--last`` have ended, and the mean is over these, as in Gavel's
experiments. A run whose line is in ``--out`` already is not run again. Figures that were published are of seed 0.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.gavel_habits import completion_times
from benchmarks.gavel_jobs import gavel_jobs
from mast_opt.live.policies.round_params import RoundParams
from mast_opt.live.simulation.traces.trace import read_trace, trace_from_tables

SPEEDS = Path(__file__).parents[1] / "instances" / "traces" / "gavel-single-gpu"
HOUR_MS = 3_600_000
POLICIES: Mapping[str, tuple[str, bool]] = {
    "fifo": ("fifo", False),
    "fifo with speeds": ("fifo", True),
    "max-min": ("max-min", False),
    "max-min with speeds": ("max-min", True),
}
"""Policy → objective, and whether it knows the speeds."""
PUBLISHED: Mapping[str, Mapping[float, float]] = {
    "fifo": {
        0.4: 17.58, 0.8: 17.64, 1.2: 17.70, 1.6: 17.71, 2.0: 18.32, 2.4: 18.63, 2.8: 18.62, 3.2: 22.21,
        3.6: 24.25, 4.0: 25.38, 4.4: 44.28, 4.8: 99.19, 5.2: 151.67,
    },
    "fifo with speeds": {
        0.4: 15.31, 0.8: 15.38, 1.2: 15.42, 1.6: 15.43, 2.0: 15.45, 2.4: 15.52, 2.8: 15.68, 3.2: 15.95,
        3.6: 16.39, 4.0: 17.08, 4.4: 18.19, 4.8: 22.24, 5.2: 56.69, 5.6: 104.12, 6.0: 150.04,
    },
    "max-min": {
        0.4: 23.26, 0.8: 23.33, 1.2: 23.51, 1.6: 23.57, 2.0: 23.47, 2.4: 23.43, 2.8: 23.59, 3.2: 23.59,
        3.6: 23.57, 4.0: 23.49, 4.4: 23.81, 4.8: 35.79, 5.2: 63.78, 5.6: 95.99,
    },
    "max-min with speeds": {
        0.4: 17.58, 0.8: 17.64, 1.2: 17.67, 1.6: 17.48, 2.0: 16.95, 2.4: 16.39, 2.8: 16.04, 3.2: 16.08,
        3.6: 16.38, 4.0: 16.82, 4.4: 17.48, 4.8: 18.97, 5.2: 22.02, 5.6: 28.96, 6.0: 41.23,
    },
}  # fmt: skip
"""Policy → jobs an hour → hours: what cell 10 of Gavel's notebook ``continuous_jobs.ipynb`` prints (commit c4fa400)."""


@dataclass(frozen=True)
class Run:
    """A point of a curve."""

    policy: str
    rate_per_h: float
    seed: int
    first: int
    last: int
    """The jobs measured, by number: from ``first`` up to ``last``, without it."""
    mean_h: float
    """From submission to end."""
    cpu_s: float

    @property
    def key(self) -> tuple[str, float, int, int, int]:
        """What was run."""
        return self.policy, self.rate_per_h, self.seed, self.first, self.last


def run(policy: str, rate_per_h: float, seed: int, measured: range, jobs: int) -> Run:
    """One run.

    Args:
        measured: numbers of the jobs of which the mean is taken.
        jobs: how many are drawn; enough to come until those are done.

    Raises:
        UsageError: there are not enough.
    """
    objective, aware = POLICIES[policy]
    found = gavel_jobs(read_trace(SPEEDS).speeds, rate_per_h=rate_per_h, jobs=jobs, seed=seed)
    trace = trace_from_tables(found.name, found.provenance, found.tables)
    began = time.process_time()
    took_ms = completion_times(
        trace, RoundParams(objective=objective, aware=aware, seed=seed), list(map(str, measured))
    )
    mean_h = fmean(took_ms.values()) / HOUR_MS
    cpu_s = time.process_time() - began
    return Run(policy, rate_per_h, seed, measured.start, measured.stop, round(mean_h, 4), round(cpu_s, 1))


def read(file: Path) -> list[Run]:
    """The runs of a file; none if there is no file."""
    return [Run(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def _asked(given: argparse.Namespace) -> Iterable[tuple[str, float, int]]:
    """Policy, rate and seed of each run: all policies and rates with the first seed first."""
    for seed in given.seeds:
        for policy in given.policies:
            for rate in given.rates or PUBLISHED[policy]:
                yield policy, rate, seed


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--rates", type=float, nargs="+", help="jobs an hour; those published if not given")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--first", type=int, default=4000, help="number of the first job measured")
    parser.add_argument("--last", type=int, default=5000, help="number after the last one")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs drawn, to come until those have ended")
    parser.add_argument("--out", type=Path, help="add each run to this file")
    given = parser.parse_args(arguments)
    measured = range(given.first, given.last)
    known = {made.key for made in read(given.out)} if given.out else set()
    for policy, rate, seed in _asked(given):
        if (policy, rate, seed, measured.start, measured.stop) in known:
            continue
        line = json.dumps(asdict(run(policy, rate, seed, measured, given.jobs)))
        print(line, flush=True)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
