"""A week of traffic through the loop of the service, on a clock of its own, to see whether memory grows.

    python benchmarks/service_week.py --days 7 --every-s 6

A job every six seconds on average (100,000 in a week) on the servers of ``philly-small``, each with a new name; one in
ten reads a dataset that nobody has read before (``--new-data``). Jobs take six minutes on average.
Every turn is committed to an SQLite log and flushed, and snapshots are taken, as in the service; HTTP is left out. The
clock jumps to what happens next. A line of JSON for each day.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from mast_opt.cli.commands.serve import COLLECT_AFTER
from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.live import Live, LiveParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.turn_requests import Request
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.live.store.sqlite import open_sqlite

FLEET = Path(__file__).parents[1] / "instances" / "traces" / "philly-small"
DAY_S = 86_400
SIZES = (1, 1, 1, 2, 4, 8)


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Week:
    """Traffic, and the loop that it goes through."""

    def __init__(self, folder: Path, every_s: float, new_data: float, seed: int) -> None:
        self.rng, self.every_s, self.new_data = np.random.default_rng(seed), every_s, new_data
        self.now_s, self.jobs = 0.0, 0
        self.store = open_sqlite(folder)
        opening = opening_of(self.store, read_trace(FLEET).servers)
        self.live = Live(
            self.store,
            opening,
            Mast,
            SimulatedLiveHost,
            LiveParams(),
            lambda: round(1000 * self.now_s),
            lambda: self.now_s,
        )
        self.live.begin()

    def submit(self) -> None:
        self.jobs += 1
        events: list[ev.Event] = []
        data: tuple[str, ...] = ("common",)
        if self.jobs == 1 or self.rng.random() < self.new_data:
            data = (f"data-{self.jobs}" if self.jobs > 1 else "common",)
            regions = tuple(self.live._engine.state.inventory.supply_mgpu)
            events.append(ev.DatasetCreated(data[0], 1000, regions))
        spec = JobSpec(
            tier=int(self.rng.integers(4)), mgpu=1000 * int(self.rng.choice(SIZES)), datasets=data,
            duration_ms=int(self.rng.exponential(360_000)), preemptible=True,
        )  # fmt: skip
        events.append(ev.Submitted(f"job-{self.jobs}", spec))
        self.live.submit(Request(tuple(events), lambda verdicts: (201, "")))

    def until(self, end_s: float) -> None:
        """Go on to that time."""
        following = self.now_s + float(self.rng.exponential(self.every_s))
        while self.now_s < end_s:
            self.now_s = min(self.now_s + max(self.live._pause_s(), 0.001), following)
            if self.now_s >= following:
                self.submit()
                following = self.now_s + float(self.rng.exponential(self.every_s))
            assert self.live.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--every-s", type=float, default=6.0)
    parser.add_argument("--new-data", type=float, default=0.1, help="share of jobs that read a new dataset")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    gc.set_threshold(*COLLECT_AFTER)
    cpu = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        week = Week(Path(folder), given.every_s, given.new_data, given.seed)
        for day in range(1, given.days + 1):
            week.until(day * DAY_S)
            state = week.live._engine.state
            found = {"day": day, "jobs": week.jobs, "events": state.seq, "datasets": len(state.datasets.replicas)}
            used = {"resident_mib": round(resident_mib()), "cpu_s": round(time.process_time() - cpu, 1)}
            print(json.dumps({"case": "week", "new_data": given.new_data, **found, **used}), flush=True)
        week.live.close()
        week.store.close()


if __name__ == "__main__":
    main()
