"""Speed of the loop: CPU seconds of whole runs, and time of single turns with a long queue.

    python -m benchmarks.loop_speed philly gavel turns queue

``philly``: the Philly trace with times of arrival over 5, one queue for all regions. ``gavel``: 5,000 jobs as Gavel's
generator draws them, on 3 × 36 GPUs, under ``fifo`` with speeds. ``turns``: jobs that come to a full fleet with 10,000
waiting. ``queue``: one turn that ranks 10,000 jobs and places what fits, on 104,000 GPUs. Each prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mast_opt.job_placement.live_fleet.types import Server
from mast_opt.loop import events as ev
from mast_opt.loop.engine import Engine
from mast_opt.loop.speeds import Speeds
from mast_opt.loop.state import State
from mast_opt.policies.head_of_line import HeadOfLine
from mast_opt.policies.mast import Mast
from mast_opt.policies.shared_rounds import RoundParams, gavel
from mast_opt.simulation.driver import Happening, simulate
from mast_opt.simulation.host import SimulatedHost, Work
from mast_opt.simulation.traces.trace import read_trace

TRACES = Path(__file__).parents[1] / "instances" / "traces"
TIERS = range(4)


def _fleet(servers: int, regions: int, gpus: int = 8) -> list[Server]:
    return [
        Server(f"s{n}", f"r{n % regions}", f"r{n % regions}-c{n % 3}", f"k{n // 32}", "h100", gpus, 0, 0)
        for n in range(servers)
    ]


def _jobs(rng: np.random.Generator, count: int, tiers: int = 4) -> list[ev.JobSpec]:
    gpus = rng.choice([1, 2, 4, 8, 16, 32], size=count, p=[0.5, 0.15, 0.15, 0.12, 0.05, 0.03]).tolist()
    tier = rng.integers(tiers, size=count).tolist()
    return [
        ev.JobSpec(
            tier=t, tasks=max(1, g // 8), mgpu=min(g, 8) * 1000, preemptible=t > 0, checkpoint_ms=3_600_000,
            duration_ms=10**9,
        )
        for g, t in zip(gpus, tier, strict=True)
    ]  # fmt: skip


def philly() -> dict[str, object]:
    """Philly, arrivals over 5, ``fifo`` over all regions."""
    trace = read_trace(TRACES / "philly")
    jobs = trace.submissions
    work = {name: Work(duration, 0) for name, duration in zip(jobs.labels, jobs.duration_ms.tolist(), strict=True)}
    at = (jobs.submitted_ms // 1000 / 5).astype(np.int64) * 1000
    coming: list[Happening] = [(int(at[j]), ev.Submitted(name, jobs.spec(j))) for j, name in enumerate(jobs.labels)]
    engine = Engine(State(trace.servers, tiers=(0, 1), placement="best-fit"), HeadOfLine())
    began = time.process_time()
    simulate(engine, SimulatedHost(work), coming)
    return {"cpu_s": time.process_time() - began, "events": engine.state.seq}


def generated(count: int, per_hour: float, seed: int) -> tuple[list[Happening], dict[str, ev.JobSpec], Speeds]:
    """Jobs of one GPU with the durations of Gavel's generator, and the speeds of the models of one of its traces."""
    rng = np.random.default_rng(seed)
    speeds = read_trace(TRACES / "gavel-minimize-makespan").speeds
    models = sorted(model for (model, tasks), types in speeds.runs.items() if tasks == 1 and len(types) == 3)
    long = rng.random(count) >= 0.8
    minutes = 10 ** np.where(long, rng.uniform(3, 4, count), rng.uniform(1.5, 3, count))
    at = np.cumsum(rng.exponential(3600 / per_hour, count))
    types = dict.fromkeys(("v100", "p100", "k80"), 1000)
    specs = {
        f"j{n}": ev.JobSpec(
            tier=1, preemptible=True, model=str(rng.choice(models)), gpu_types=types,
            duration_ms=int(minutes[n] * 60_000),
        )
        for n in range(count)
    }  # fmt: skip
    return [(int(at[n] * 1000), ev.Submitted(f"j{n}", specs[f"j{n}"])) for n in range(count)], specs, speeds


def rounds() -> dict[str, object]:
    """5,000 jobs, 3 an hour, on 36 GPUs of each of three types, ``fifo`` with speeds, rounds of 360 s."""
    coming, specs, speeds = generated(5000, 3.0, 0)
    kinds = ("v100", "p100", "k80")
    servers = [Server(f"{kind}-{n}", "r", kind, "k", kind, 1, 0, 0) for kind in kinds for n in range(36)]
    of = {server.name: server.gpu_type for server in servers}
    work = {name: Work(spec.duration_ms or 0, 0) for name, spec in specs.items()}
    engine = Engine(State(servers, tiers=(1,)), gavel(RoundParams(objective="fifo"), speeds))
    turns = 0

    def count(turn: object) -> None:
        nonlocal turns
        turns += 1

    began = time.process_time()
    host = SimulatedHost(work, lambda job, server: speeds.rate(specs[job], of[server]))
    last = simulate(engine, host, coming, on_turn=count)
    return {"cpu_s": time.process_time() - began, "turns": turns, "rounds": last / 360_000, "jobs": len(specs)}


def turns() -> dict[str, object]:
    """Turns a second in which one job comes to a full fleet where 10,000 wait."""
    rng = np.random.default_rng(1)
    engine = Engine(State(_fleet(352, 11), tiers=TIERS), Mast())
    engine.advance(0, engine.state.opening())
    for n, spec in enumerate(_jobs(rng, 11_000)):
        engine.advance(n, [ev.Submitted(f"w{n}", spec)])
    waiting = sum(record.waits for record in engine.state.jobs.values())
    extra = _jobs(rng, 2000)
    took = []
    for n, spec in enumerate(extra):
        began = time.perf_counter()
        engine.advance(20_000 + n, [ev.Submitted(f"x{n}", spec)])
        took.append(time.perf_counter() - began)
    return {"waiting": waiting, "turns_per_s": len(took) / sum(took), "median_us": 1e6 * float(np.median(took))}


def queue() -> dict[str, object]:
    """A decision of the live fleet, and a turn with 10,000 jobs in the queue, on 104,000 GPUs in 12 regions."""
    rng = np.random.default_rng(2)
    state = State(_fleet(13_000, 12), tiers=TIERS)
    engine = Engine(state, Mast())
    engine.advance(0, state.opening())
    specs = _jobs(rng, 10_000)
    engine.advance(1, [ev.Submitted(f"a{n}", spec) for n, spec in enumerate(_jobs(rng, 2_000))])
    began = time.perf_counter()
    engine.advance(2, [ev.Submitted(f"b{n}", spec) for n, spec in enumerate(specs)])
    turn_s = time.perf_counter() - began
    return {"turn_s": turn_s, "decision_us": 1e6 * turn_s / len(specs)}


CASES: dict[str, Callable[[], dict[str, object]]] = {"philly": philly, "gavel": rounds, "turns": turns, "queue": queue}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", choices=list(CASES))
    for case in parser.parse_args().cases:
        found = {name: round(value, 3) if isinstance(value, float) else value for name, value in CASES[case]().items()}
        print(json.dumps({"case": case, **found}), flush=True)


if __name__ == "__main__":
    main()
