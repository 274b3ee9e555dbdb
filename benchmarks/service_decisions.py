"""Decisions inside the service on 104,000 GPUs: how long one takes, and how long it is from a submission to the command
that starts the job, with 100 submissions a second.

    python benchmarks/service_decisions.py --seconds 30 --lists 6 >> RUNS

13,000 servers of 8 GPUs in 12 regions, the simulated host, an SQLite store, in this process without HTTP. Jobs have 1
to 64 GPUs, a minute on average, four tiers. Before, lists of 1,000 such jobs fill the fleet. Prints a line of JSON:
decisions by processor time, the wait for the command by the clock. RUNS is benchmarks/data/service.jsonl.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.cli.commands.serve import COLLECT_AFTER
from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.commands import Command, Start
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.live import Live
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.turn_requests import Request
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Server

RATE = 100
SIZES = (1, 2, 4, 8, 8, 8, 16, 64)
"""GPUs of jobs, equally often."""
SERVERS = tuple(
    Server(f"s{n}", f"r{n % 12}", f"r{n % 12}-c{n // 12 % 4}", f"r{n % 12}-c{n // 12 % 4}-{n // 480}", "H100", 8, 0, 0)
    for n in range(13_000)
)


class TimedHost(SimulatedLiveHost):
    """Notes when each job was first started."""

    started: dict[str, float]

    def carry_out(self, now_ms: int, command: Command) -> None:
        if isinstance(command, Start):
            self.started.setdefault(command.job, time.perf_counter())
        super().carry_out(now_ms, command)


def job(name: str, rng: np.random.Generator) -> ev.Submitted:
    gpus, duration_ms = int(rng.choice(SIZES)), int(rng.exponential(60_000))
    tasks, mgpu = max(1, gpus // 8), 1000 * min(gpus, 8)
    tier = int(rng.integers(4))
    return ev.Submitted(name, JobSpec(tier, tasks, mgpu, duration_ms=duration_ms, preemptible=tier > 0))


def request(*events: ev.Event) -> Request:
    return Request(events, lambda verdicts: (201, ""))


def percent(values: list[float], at: int) -> float:
    return sorted(values)[at * (len(values) - 1) // 100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--lists", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    gc.set_threshold(*COLLECT_AFTER)
    took: list[float] = []
    place: Any = Actions.place

    def timed(*args: Any, **more: Any) -> Any:
        begun = time.thread_time()
        found = place(*args, **more)
        took.append(time.thread_time() - begun)
        return found

    Actions.place = timed  # type: ignore[method-assign]
    rng = np.random.default_rng(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        store = open_sqlite(Path(folder))
        live = Live(store, opening_of(store, SERVERS), Mast, TimedHost)
        assert isinstance(live.host, TimedHost)
        started = live.host.started = {}
        live.start()
        for number in range(given.lists):
            live.submit(request(*(job(f"fill-{number}-{one}", rng) for one in range(1000)))).result()
        gc.freeze()
        took.clear()
        begun, sent = time.perf_counter(), dict[str, float]()
        while time.perf_counter() - begun < given.seconds:
            at = begun + len(sent) / RATE
            time.sleep(max(0.0, at - time.perf_counter()))
            one = job(f"job-{len(sent)}", rng)
            sent[one.job] = at
            live.submit(request(one))
        time.sleep(3)
        with live.state() as state:
            used = sum(state.inventory.used_mgpu.values()) / sum(state.inventory.supply_mgpu.values())
        live.close()
        store.close()
    waits = [1000 * (started[name] - at) for name, at in sent.items() if name in started]
    micro = [1e6 * seconds for seconds in took]
    print(
        json.dumps(
            {
                "case": "decisions", "rate": RATE, "jobs": len(sent), "started": len(waits), "used": round(used, 3),
                "decisions": len(micro), "median_us": round(statistics.median(micro), 1),
                "p99_us": round(percent(micro, 99), 1), "start_median_wall_ms": round(statistics.median(waits), 2),
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
