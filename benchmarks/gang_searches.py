"""How long a search for the victims of a gang holds the live fleet, where thousands of small jobs may be stopped.

    python benchmarks/gang_searches.py [--servers 400] [--searches 60] [--work 50000] >> RUNS

Servers of 8 GPUs are filled with jobs of 0.1 to 0.5 GPU that may be stopped; then gangs are asked for, one after
another, and one small job ends and another one starts between two of them, so that no answer is remembered. A line of
JSON for each gang, with milliseconds of CPU time, the share of bids that are proven, and the GPU-hours lost; RUNS is
benchmarks/data/live-fleet.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from typing import Any

import numpy as np

import mast_opt
from mast_opt import Bid, Fleet, Job, SearchLimits, Server

GPUS, CORES, MIB = 8, 128_000, 1 << 20
GANGS: dict[str, Any] = {
    "4 × 8": {"tasks": 4, "mgpu": 8000},
    "16 × 8": {"tasks": 16, "mgpu": 8000},
    "64 × 1": {"tasks": 64, "mgpu": 1000},
    "8 × 2, one rack": {"tasks": 8, "mgpu": 2000, "within": "rack"},
    "200 × 0.5": {"tasks": 200, "mgpu": 500},
    "16 × 4, 40 cores": {"tasks": 16, "mgpu": 4000, "cpu_mcores": 40_000},
}


def small_job(rng: np.random.Generator, number: int) -> Job:
    mgpu, cores = int(rng.integers(100, 501)), int(rng.integers(500, 4000))
    return Job(
        f"small-{number}", 2, mgpu=mgpu, cpu_mcores=cores, preemptible=True, gpu_hours_at_risk=float(rng.uniform(0, 20))
    )


def full_fleet(rng: np.random.Generator, servers: int) -> Fleet:
    """Small jobs until one fits nowhere."""
    fleet = Fleet(
        [Server(f"s{n}", "r", f"c{n // 100}", f"k{n // 10}", "h100", GPUS, CORES, MIB) for n in range(servers)],
        tiers=(0, 1, 2),
    )
    number = 0
    while isinstance(fleet.place_and_commit(small_job(rng, number)), Bid):
        number += 1
    return fleet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=400)
    parser.add_argument("--searches", type=int, default=60)
    parser.add_argument("--work", type=int, default=SearchLimits().work, help="of SearchLimits")
    given = parser.parse_args()
    mast_opt.warm_up("job-placement")
    rng = np.random.default_rng(0)
    fleet = full_fleet(rng, given.servers)
    fleet.set_search_limits(SearchLimits(work=given.work))
    running = list(fleet.running())
    size = {"work": given.work, "servers": given.servers, "running": len(running)}
    spent, proven, lost = defaultdict(list), defaultdict(list), defaultdict(list)
    for number in range(given.searches):
        what = list(GANGS)[number % len(GANGS)]
        began = time.thread_time()
        answer = fleet.place(Job("gang", 0, **GANGS[what]))
        spent[what].append(1000 * (time.thread_time() - began))
        assert isinstance(answer, Bid), answer
        proven[what].append(answer.proven)
        lost[what].append(answer.gpu_hours_lost)
        fleet.release(running.pop(int(rng.integers(len(running)))))
        later = small_job(rng, 10**6 + number)
        if isinstance(fleet.place_and_commit(later), Bid):
            running.append(later.name)
    for what, times in spent.items():
        found = {"searches": len(times), "median_ms": round(float(np.median(times)), 2)}
        found |= {"proven": float(np.mean(proven[what])), "gpu_hours_lost": round(float(np.mean(lost[what])), 3)}
        print(json.dumps({"case": "gangs", **size, "gang": what, **found}), flush=True)


if __name__ == "__main__":
    main()
