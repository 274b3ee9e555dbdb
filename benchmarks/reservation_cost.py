"""Processor time of a turn of ``mast`` with reservations, over that without, in one process.

    python benchmarks/reservation_cost.py --servers 1300 --jobs 1500 --seeds 1 2 [--waiting 10000]

Servers of 8 GPUs in 12 regions are filled with jobs of 1 to 64 GPUs, four tiers and round limits, some more may wait,
and as many GPUs are asked for afterwards as become free. Each seed is run without and with reservations, and the digest
of each log is printed, so that two versions can be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import time

import numpy as np

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server

SIZES = (1, 2, 4, 8, 8, 8, 16, 64)
"""GPUs of jobs, equally often."""
HOUR_MS = 3_600_000
MEAN_MS = 4 * HOUR_MS
ROUND_MS = tuple(hours * HOUR_MS // 4 for hours in (1, 2, 4, 8, 16, 32, 96, 192))


class TimedEngine(Engine):
    """Engine that notes the processor time of each turn after the first."""

    def advance(self, now_ms: int, inbox: list[ev.Event]) -> Turn:  # type: ignore[override]
        began = time.process_time()
        turn = super().advance(now_ms, inbox)
        if now_ms:
            self.__dict__.setdefault("seconds", []).append(time.process_time() - began)
        return turn


def jobs(seed: int, servers: int, more: int, waiting: int = 0) -> list[tuple[int, str, JobSpec]]:
    """(time, name, job): those that fill the servers at 0, and others."""
    rng, mean = np.random.default_rng(seed), float(np.mean(SIZES))
    gpus, at, found = 8 * servers, 0, list[tuple[int, str, JobSpec]]()
    first = int(1.02 * gpus / mean) + waiting
    for number in range(first + more):
        asked, duration_ms = int(rng.choice(SIZES)), int(rng.exponential(MEAN_MS)) + 60_000
        slack, tier = rng.choice([1, 2]), int(rng.integers(4))
        limit_ms = next((one for one in ROUND_MS if one >= duration_ms * slack), ROUND_MS[-1])
        at += max(1, int(MEAN_MS * mean / gpus * rng.exponential())) if number >= first else 0
        spec = JobSpec(
            tier,
            max(1, asked // 8),
            1000 * min(asked, 8),
            duration_ms=min(duration_ms, limit_ms),
            limit_ms=limit_ms,
            preemptible=tier > 0,
        )
        found.append((at, f"j{number}", spec))
    return found


def seconds(seed: int, servers: int, more: int, waiting: int, *, reserve: bool) -> tuple[np.ndarray, str]:
    """Processor time of each turn, and the digest of the log."""
    racks = [(f"r{n % 12}", f"r{n % 12}-c{n // 12 % 4}", n // 480) for n in range(servers)]
    fleet = tuple(
        Server(f"s{n}", region, cluster, f"{cluster}-{rack}", "H100", 8, 0, 0)
        for n, (region, cluster, rack) in enumerate(racks)
    )
    work, digest, state = jobs(seed, servers, more, waiting), hashlib.blake2b(digest_size=6), State(fleet)
    engine = TimedEngine(state, Mast(MastParams(reserve=reserve)))
    host = SimulatedHost({name: Work(spec.duration_ms or 0, 0, 0, limit_ms=spec.limit_ms) for _, name, spec in work})
    coming: list[Happening] = [(0, one) for one in state.opening()]
    coming += [(at, ev.Submitted(name, spec)) for at, name, spec in work]

    def note(turn: Turn) -> None:
        for stored in turn.events:
            digest.update(repr(stored).encode())

    simulate(engine, host, coming, until_ms=work[-1][0], on_turn=note)
    return np.array(engine.__dict__["seconds"]), digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=1300)
    parser.add_argument("--jobs", type=int, default=1500)
    parser.add_argument("--waiting", type=int, default=0, help="jobs that come at the beginning, too many to start")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    for seed in args.seeds:
        (off, off_log), (on, on_log) = (
            seconds(seed, args.servers, args.jobs, args.waiting, reserve=reserve) for reserve in (False, True)
        )
        ratios = [on.mean() / off.mean(), *(np.quantile(on, at) / np.quantile(off, at) for at in (0.5, 0.99))]
        words = ", ".join(f"{what} {ratio:.2f}" for what, ratio in zip(("mean", "median", "P99"), ratios, strict=True))
        print(f"seed {seed}: {words}; median without {1e6 * np.median(off):.0f} µs; logs {off_log} {on_log}")


if __name__ == "__main__":
    main()
