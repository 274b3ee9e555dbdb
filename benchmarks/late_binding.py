"""Late against early binding on the Philly trace: every virtual cluster a region, no data, no preemption.

    python -m benchmarks.late_binding PHILLY_CSV VIRTUAL_CLUSTERS_CSV --speed 5 --policies home random free share fifo

``PHILLY_CSV`` has the columns timestamp, duration, num_gpus, cluster; ``VIRTUAL_CLUSTERS_CSV`` vc and node num. Times
of arrival are divided by ``--speed``. A job of more than 8 GPUs takes whole servers, or halves of them where its GPUs
are no multiple of 8.
"""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.state import State
from mast_opt.live.policies.early_binding import RULES, EarlyBinding, EarlyBindingParams
from mast_opt.live.policies.head_of_line import HeadOfLine
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server

FIRST, LAST = datetime(2017, 10, 1), datetime(2017, 11, 30, 23, 59)
GPUS = 8
"""Of a server."""


def spec(gpus: int, home: str, duration_ms: int) -> ev.JobSpec:
    """The gang that asks for so many GPUs."""
    tasks, each = (1, gpus) if gpus <= GPUS else (gpus // GPUS, GPUS) if gpus % GPUS == 0 else (gpus // 4, 4)
    within, prefer = ("server", "server") if tasks == 1 else ("cluster", "cluster")
    return ev.JobSpec(1, tasks, each * 1000, within=within, prefer=prefer, duration_ms=duration_ms, home_region=home)


def run(policy: str, jobs: pl.DataFrame, nodes: dict[str, int], speed: float, seed: int, age_s: int) -> None:
    """One replay; prints its figures."""
    servers = [
        Server(f"{name}-{at}", name, f"{name}-c", f"{name}-r{at // 2}", "P100", GPUS, 0, 0)
        for name, count in nodes.items()
        for at in range(count)
    ]
    make = HeadOfLine if policy == "fifo" else partial(EarlyBinding, EarlyBindingParams(policy, age_s * 1000, seed))
    engine = Engine(State(servers, tiers=(0, 1), placement="best-fit"), make())
    trace: list[Happening] = []
    work: dict[str, Work] = {}
    for number, (after_s, duration_s, gpus, home) in enumerate(jobs.iter_rows()):
        name, duration_ms = str(number), int(duration_s) * 1000
        trace.append((int(after_s / speed) * 1000, ev.Submitted(name, spec(int(gpus), home, duration_ms))))
        work[name] = Work(duration_ms, 0)
    waiting: dict[str, int] = {}
    waits = []

    def count(turn: Turn) -> None:
        for stored in turn.events:
            if isinstance(stored.event, ev.Submitted):
                waiting[stored.event.job] = stored.at_ms
            elif isinstance(stored.event, ev.Started):
                waits.append((stored.at_ms - waiting.pop(stored.event.job)) / 1000)

    began = time.process_time()
    simulate(engine, SimulatedHost(work), trace, on_turn=count)
    took = time.process_time() - began
    mean, (middle, late) = np.mean(waits), np.percentile(waits, [50, 95])
    print(f"{policy:8} mean queue {mean:10.1f} s, P50 {middle:8.0f}, P95 {late:8.0f}; {took:5.1f} s CPU", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("philly", type=Path)
    parser.add_argument("clusters", type=Path)
    parser.add_argument("--speed", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1, help="of the rule 'random'")
    parser.add_argument("--age-s", type=int, default=0, help="how old the loads are that the rules see")
    parser.add_argument("--policies", nargs="+", choices=[*RULES, "fifo"], default=[*RULES, "fifo"])
    given = parser.parse_args()
    table = pl.read_csv(given.clusters)
    nodes = dict(zip(table["vc"].to_list(), table["node num"].to_list(), strict=True))
    jobs = (
        pl.read_csv(given.philly, try_parse_dates=True)
        .filter(pl.col("timestamp").is_between(FIRST, LAST) & pl.col("cluster").is_in(list(nodes)))
        .sort("timestamp", maintain_order=True)
        .select((pl.col("timestamp") - FIRST).dt.total_seconds(), "duration", "num_gpus", "cluster")
    )
    for policy in given.policies:
        run(policy, jobs, nodes, given.speed, given.seed, given.age_s)


if __name__ == "__main__":
    main()
