"""How fast the live fleet places jobs, how much memory it takes, and how that grows.

    python benchmarks/job_fleet.py [--gpus 100000] [--jobs 3000] [--fill 98] [--grow] >> RUNS

Fills a fleet of 20 regions and 200 clusters, asks it for one job after another and commits what it offers; prints the
median and P99 of ``place`` by what the answer took, alone and with ``commit``, and one numpy pass over the servers'
free GPUs, then the time to rank a million jobs, and to rank and place a queue of 10,000. ``--grow`` does the first part
only, on a tenth of the GPUs, on all and on ten times as many. Times are CPU time of the calling thread. Each part is a
line of JSON; RUNS is benchmarks/data/live-fleet.jsonl.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import defaultdict
from typing import Any

import numpy as np

import mast_opt
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job
from mast_opt.problems.job_placement.problem import JobPlacement, rank

REGIONS, CLUSTERS = 20, 10
GPUS_A_SERVER = 7.5
"""On average in the generated fleets."""
MICRO = 1e6
PASSES = 20
"""Timed together, so that the clock does not count."""


def crowded(gpus: int, jobs: int, fill: int) -> JobPlacement:
    """About so many GPUs, so many percent of them in use, and a queue."""
    servers = max(1, round(gpus / GPUS_A_SERVER / REGIONS / CLUSTERS))
    sizes = {"regions": REGIONS, "clusters": CLUSTERS, "servers": servers, "jobs": jobs, "fill_percent": fill}
    return FAMILIES["standard"].generate(np.random.default_rng(0), **sizes)


def numpy_pass_us(fleet: Fleet) -> float:
    """One pass over the servers' free GPUs, in microseconds, the median of many."""
    free = np.ascontiguousarray(fleet._books.state.room[col.A_FREE, 0])
    times = []
    for _ in range(200):
        began = time.thread_time()
        for _ in range(PASSES):
            (free >= 1000).any()
        times.append((time.thread_time() - began) / PASSES)
    return float(np.median(times)) * MICRO


def place_all(fleet: Fleet, problem: JobPlacement) -> dict[str, Any]:
    """Ask for every job in queue order, commit what is offered; how long the answers took."""
    jobs = [Job.of(problem, j) for j in problem.order.tolist()]
    times: dict[str, list[float]] = defaultdict(list)
    unproven = 0
    for job in jobs:
        began = time.thread_time()
        answer = fleet.place(job)
        spent = time.thread_time() - began
        if isinstance(answer, Bid):
            what = "with victims" if answer.victims else "free"
            unproven += not answer.proven
            began = time.thread_time()
            fleet.commit(answer)
            commit = time.thread_time() - began
            times["commit"].append(commit)
            times[f"{what} + commit"].append(spent + commit)
        else:
            what, commit = "remembered" if answer.remembered else "refused", 0.0
        times[what].append(spent)
        times["all answers"].append(spent)
        times["all + commit"].append(spent + commit)
    once = numpy_pass_us(fleet)
    answers = {}
    for what, those in sorted(times.items()):
        median, p99 = np.percentile(np.array(those) * MICRO, [50, 99]).round(1).tolist()
        answers[what] = {"count": len(those), "median_us": median, "p99_us": p99}
    used, every = fleet.gpus()
    return {"pass_us": round(once, 2), "unproven": unproven, "used": round(used / every, 4), "answers": answers}


def ranking(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    tier, credit, age = (rng.integers(0, most, count) for most in (4, 1000, 10**9))
    began = time.thread_time()
    rank(tier, credit, age)
    return {"jobs": count, "cpu_s": round(time.thread_time() - began, 3)}


def queue(gpus: int, count: int, fill: int) -> dict[str, Any]:
    problem = crowded(gpus, count, fill)
    fleet = Fleet.of(problem)
    jobs = [Job.of(problem, j) for j in range(count)]
    began = time.thread_time()
    placed = 0
    with fleet.round():
        for j in rank(problem.jobs.tier, problem.jobs.credit_milli, problem.jobs.submitted_ms).tolist():
            answer = fleet.place(jobs[j])
            if isinstance(answer, Bid):
                fleet.commit(answer)
                placed += 1
    return {"jobs": count, "placed": placed, "cpu_s": round(time.thread_time() - began, 3)}


def show(case: str, found: dict[str, Any]) -> None:
    print(json.dumps({"case": case, **found}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=3_000)
    parser.add_argument("--fill", type=int, default=98, help="percent of the GPUs in use")
    parser.add_argument("--grow", action="store_true", help="also a tenth and ten times the GPUs")
    asked = parser.parse_args()
    mast_opt.warm_up("job-placement")
    for gpus in [asked.gpus // 10, asked.gpus, asked.gpus * 10] if asked.grow else [asked.gpus]:
        problem = crowded(gpus, asked.jobs, asked.fill)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fleet = Fleet.of(problem)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        held = sum(array.nbytes for array in fleet._books.state) / 2**20
        size = {"gpus": problem.all_mgpu // 1000, "servers": len(problem.servers), "running": len(problem.running)}
        memory = {"ledger_mib": round(held), "opened_mib": round(grown)}
        show("grow" if asked.grow else "fleet", {**size, **memory, **place_all(fleet, problem)})
    if asked.grow:
        return
    show("ranking", ranking(1_000_000))
    show("queue", queue(asked.gpus, 10_000, asked.fill))


if __name__ == "__main__":
    main()
