"""What changing sizes buys: the trace ``mixed`` under policies that resize, with jobs of fixed and of elastic size.

    python -m benchmarks.elastic_sizes --seeds 1 2 3 --loads 0.5 0.9 --policies sia pollux

An elastic job may have from the fewest to the most tasks for which Gavel's table has speeds of its model. Every log has
to pass the independent checker.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.mixed_trace import mixed_tables
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace, trace_from_tables

GAVEL = Path(__file__).parents[1] / "instances" / "traces" / "gavel-minimize-makespan"


def elastic(trace: JobTrace) -> JobTrace:
    """The trace with ranges of sizes."""
    sizes: dict[str, list[int]] = {}
    for model, tasks in trace.speeds.runs:
        sizes.setdefault(model, []).append(tasks)
    least, most = (np.array([end(sizes[model]) for model in trace.submissions.model], np.int64) for end in (min, max))
    return replace(trace, submissions=replace(trace.submissions, min_tasks=least, max_tasks=most))


def completion_h_of_tier(trace: JobTrace, log: Sequence[ev.Stored]) -> dict[int, float]:
    """Tier → mean hours from the submission of its jobs to their end."""
    jobs, end_ms = trace.submissions, {one.event.job: one.at_ms for one in log if isinstance(one.event, ev.Finished)}
    taken = (np.array([end_ms[name] for name in jobs.labels]) - jobs.submitted_ms) / 3_600_000
    return {int(tier): float(taken[jobs.tier == tier].mean()) for tier in np.unique(jobs.tier)}


def row(trace: JobTrace, policy: str) -> dict[str, float | int | dict[int, float] | None]:
    """Figures of a run, whose log is checked."""
    began = time.process_time()
    run = run_trace(trace, policy)
    cpu_s = time.process_time() - began
    log = list(run.events())
    held = {name: set(regions) for name, regions in trace.replicas.items()}
    assert check_log(log, replicas=held, all_end=True, durations=True, speeds=trace.speeds.alone) == ()
    last_ms = int(trace.submissions.submitted_ms[-1])
    found, until_last = metrics(run.rows), metrics(run.rows, until_ms=last_ms)
    return {
        "wait_h": (found.queue_s.mean or 0) / 3600,
        "completion_h": (found.jct_s.mean or 0) / 3600,
        "completion_h_of_tier": completion_h_of_tier(trace, log),
        "p99_h": (found.jct_s.p99 or 0) / 3600,
        "makespan_h": (found.makespan_s or 0) / 3600,
        "allocation": until_last.allocation,
        "stops": found.preemptions,
        "resizes": sum(isinstance(one.event, ev.Resized) for one in log),
        "cpu_s": cpu_s,
    }


def main() -> None:
    """Print a row of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--loads", type=float, nargs="+", default=[0.5, 0.9])
    parser.add_argument("--policies", nargs="+", default=["sia", "pollux", "singularity"])
    parser.add_argument("--jobs", type=int, default=200)
    given = parser.parse_args()
    speeds = read_trace(GAVEL).speeds
    for load, seed, policy in ((a, b, c) for a in given.loads for b in given.seeds for c in given.policies):
        found = mixed_tables(speeds, seed=seed, jobs=given.jobs, regions=2, load=load)
        fixed = trace_from_tables(found.name, found.provenance, found.tables)
        for size, trace in (("fixed", fixed), ("elastic", elastic(fixed))):
            stated = {"policy": policy, "load": load, "seed": seed, "sizes": size}
            print(json.dumps(stated | row(trace, policy)), flush=True)


if __name__ == "__main__":
    main()
