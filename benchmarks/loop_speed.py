"""Speed of the loop: CPU seconds of whole runs, and time of single turns with a long queue.

    python -m benchmarks.loop_speed philly gavel turns queue preempting priorities kernels weeks >> RUNS
    python -m benchmarks.loop_speed memory >> RUNS          # in a process of its own, whose peak counts
    python -m benchmarks.measured_pages

``philly``: the Philly trace with times of arrival over 5, one queue for all regions. ``gavel``: 5,000 jobs as Gavel's
generator draws them, on 3 × 36 GPUs, under ``fifo`` with speeds. ``turns``: jobs that come to a full fleet with 10,000
waiting. ``queue``: one turn that ranks 10,000 jobs and places what fits, on 104,000 GPUs. ``preempting``: important
jobs that come to a full fleet, each at the expense of others. ``priorities``: quotas and queue order of 1,000,000
workloads. ``kernels``: order-only policies, 1,370,000 jobs on 56,000 GPUs, and a tenth of both. ``memory``: 200,000
jobs, one after another, on 100,000 GPUs. ``weeks``: 7 days on 2,000 GPUs. Each prints one line of JSON; RUNS is
benchmarks/data/loop.jsonl.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.head_of_line import HeadOfLine
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.core.ranks import Ranks
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Start
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.round_params import RoundParams
from mast_opt.live.policies.shared_rounds import gavel
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.kernel import POLICIES, replay
from mast_opt.live.simulation.replay_state import QueueJobs
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.problems.job_placement.live_fleet.types import Server
from mast_opt.problems.job_placement.problem import rank
from mast_opt.problems.job_placement.quota_standing import standing_of

TRACES = Path(__file__).parents[1] / "instances" / "traces"
TIERS = range(4)


def _fleet(servers: int, regions: int, gpus: int = 8) -> list[Server]:
    return [
        Server(f"s{n}", f"r{n % regions}", f"r{n % regions}-c{n % 3}", f"k{n // 32}", "h100", gpus, 0, 0)
        for n in range(servers)
    ]


def _jobs(rng: np.random.Generator, count: int, tiers: int = 4) -> list[JobSpec]:
    gpus = rng.choice([1, 2, 4, 8, 16, 32], size=count, p=[0.5, 0.15, 0.15, 0.12, 0.05, 0.03]).tolist()
    tier = rng.integers(tiers, size=count).tolist()
    return [
        JobSpec(
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
    return {"cpu_s": time.process_time() - began, "jobs": len(jobs), "events": engine.state.seq}


def generated(count: int, per_hour: float, seed: int) -> tuple[list[Happening], dict[str, JobSpec], Speeds]:
    """Jobs of one GPU with the durations of Gavel's generator, and the speeds of the models of one of its traces."""
    rng = np.random.default_rng(seed)
    speeds = read_trace(TRACES / "gavel-minimize-makespan").speeds
    models = sorted(model for (model, tasks), types in speeds.runs.items() if tasks == 1 and len(types) == 3)
    long = rng.random(count) >= 0.8
    minutes = 10 ** np.where(long, rng.uniform(3, 4, count), rng.uniform(1.5, 3, count))
    at = np.cumsum(rng.exponential(3600 / per_hour, count))
    types = dict.fromkeys(("v100", "p100", "k80"), 1000)
    specs = {
        f"j{n}": JobSpec(
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
    host = SimulatedHost(work, lambda job, server, other, tasks: speeds.rate(specs[job], of[server], specs.get(other)))
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
        began = time.process_time()
        engine.advance(20_000 + n, [ev.Submitted(f"x{n}", spec)])
        took.append(time.process_time() - began)
    return {"waiting": waiting, "turns_per_s": len(took) / sum(took), "median_us": 1e6 * float(np.median(took))}


def queue() -> dict[str, object]:
    """A decision of the live fleet, and a turn with 10,000 jobs in the queue, on 104,000 GPUs in 12 regions."""
    rng = np.random.default_rng(2)
    state = State(_fleet(13_000, 12), tiers=TIERS)
    engine = Engine(state, Mast())
    engine.advance(0, state.opening())
    specs = _jobs(rng, 10_000)
    engine.advance(1, [ev.Submitted(f"a{n}", spec) for n, spec in enumerate(_jobs(rng, 2_000))])
    inbox = [ev.Submitted(f"b{n}", spec) for n, spec in enumerate(specs)]
    began = time.process_time()
    turn = engine.advance(2, inbox)
    turn_s = time.process_time() - began
    placed = sum(isinstance(stored.event, ev.Placed) for stored in turn.events)
    return {"cpu_s": turn_s, "placed": placed, "job_us": 1e6 * turn_s / len(specs)}


def preempting() -> dict[str, object]:
    """Turns in which a job of the most important tier comes to a full fleet of 2,816 GPUs with 10,000 waiting."""
    rng = np.random.default_rng(1)
    engine = Engine(State(_fleet(352, 11), tiers=TIERS), Mast())
    engine.advance(0, engine.state.opening())
    for n, spec in enumerate(replace(spec, tier=3, preemptible=True) for spec in _jobs(rng, 11_000)):
        turn = engine.advance(n, [ev.Submitted(f"w{n}", spec)])
        engine.advance(n, [ev.Started(one.job, one.attempt) for one in turn.commands if isinstance(one, Start)])
    waiting = sum(record.waits for record in engine.state.jobs.values())
    took, victims = [], 0
    for n in range(100):
        began = time.process_time()
        turn = engine.advance(10**7 + n, [ev.Submitted(f"x{n}", JobSpec(mgpu=8000, duration_ms=10**9))])
        took.append(time.process_time() - began)
        victims += sum(isinstance(stored.event, ev.StopAsked) for stored in turn.events)
    return {"waiting": waiting, "victims": victims, "median_ms": 1e3 * float(np.median(took))}


def priorities() -> dict[str, object]:
    """Queue order of 1,000,000 workloads of 500 tenants, most of which have quotas, on three types."""
    rng = np.random.default_rng(3)
    count, tenants, types = 1_000_000, 500, 3
    tier, tenant = rng.integers(5, size=count), rng.integers(tenants, size=count)
    accepts = rng.random((count, types)) < 0.6
    accepts[np.arange(count), rng.integers(types, size=count)] = True
    asked = np.where(accepts, 1000 * 2 ** rng.integers(0, 6, size=count)[:, None], 0)
    total = np.where(rng.random(tenants) < 0.7, rng.integers(10**5, 10**7, size=tenants), -1)
    typed = np.where(rng.random((tenants, types)) < 0.3, rng.integers(10**5, 10**7, size=(tenants, types)), -1)
    used = rng.integers(10**5, size=(tenants, types))
    quotas = Quotas(
        {
            f"t{t}": {
                None if k == types else str(k): Quota(mgpu)
                for k, mgpu in enumerate([*typed[t].tolist(), int(total[t])])
                if mgpu >= 0
            }
            for t in range(tenants)
        }
    )
    running = [(f"t{t}", 0, True) for t in range(tenants)]
    credit, submitted = rng.integers(-1000, 1000, size=tenants)[tenant], rng.integers(10**9, size=count)
    job, kind = np.nonzero(accepts)
    options, first_part = (job.astype(np.int64), kind.astype(np.int64)), np.arange(count)
    began = time.process_time()
    order = rank(tier, credit, submitted)
    jobs, kinds = [(f"t{t}", p) for t, p in zip(tenant.tolist(), tier.tolist())], [str(k) for k in range(types)]
    found = standing_of(
        quotas, Ranks(5, quotas=True), running, used, jobs, order, first_part, options, asked[options], kinds
    )
    rank(found.job_level, credit, submitted)
    return {"cpu_s": time.process_time() - began, "over": int((found.job_level != tier).sum())}


def kernels() -> dict[str, object]:
    """Order-only policies: jobs with sizes and durations as in Philly, load 0.9."""
    all_but_last = {policy: _replayed(policy, 1_370_000, 7_000) for policy in POLICIES if policy != "las"}
    return {**all_but_last, "tenth": {policy: _replayed(policy, 137_000, 700) for policy in POLICIES}}


def _replayed(policy: str, count: int, servers: int) -> dict[str, object]:
    rng = np.random.default_rng(4)
    gpus = rng.choice([1, 2, 4, 8, 16, 32], size=count, p=[0.5, 0.15, 0.15, 0.12, 0.05, 0.03])
    duration = np.maximum(1000, rng.lognormal(14.0, 2.0, count)).astype(np.int64)
    every = float((gpus * duration).mean()) / (0.9 * servers * 8)
    submitted = np.cumsum(rng.exponential(every, count)).astype(np.int64)
    zeros = np.zeros(count, np.int64)
    few = QueueJobs(submitted[:9], duration[:9], gpus[:9], zeros[:9], submitted[:9])
    jobs = QueueJobs(submitted, duration, gpus, zeros, submitted)
    replay(few, servers, 8, policy)
    began = time.process_time()
    events = len(replay(jobs, servers, 8, policy).kind)
    return {"cpu_s": round(time.process_time() - began, 3), "events": events}


def memory() -> dict[str, object]:
    """Peak memory of a process in which 200,000 jobs come and end on 12,500 servers of 8 GPUs."""
    rng = np.random.default_rng(5)
    engine = Engine(State(_fleet(12_500, 12), tiers=TIERS), Mast())
    engine.advance(0, engine.state.opening())
    specs, count, ended = _jobs(rng, 4096), 200_000, 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, inbox = time.process_time(), list[ev.Event]()
    for n in range(count // 20):
        arrivals = [ev.Submitted(f"j{n}-{k}", specs[(20 * n + k) % len(specs)]) for k in range(20)]
        turn = engine.advance(1000 * n, [*inbox, *arrivals])
        starts = [one for one in turn.commands if isinstance(one, Start)]
        inbox = [event for one in starts for event in (ev.Started(one.job, 1), ev.Finished(one.job, 1))]
        ended += len(starts)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu_s = time.process_time() - began
    return {"jobs": ended, "peak_mb": after / 1024, "peak_before_mb": before / 1024, "job_us": 1e6 * cpu_s / count}


def weeks() -> dict[str, object]:
    """7 days on 250 servers of 8 GPUs: 8,000 jobs of four tiers that ask for 1.3 times what there is."""
    rng = np.random.default_rng(6)
    count, servers = 8_000, _fleet(250, 12)
    duration = np.minimum(rng.lognormal(14.5, 1.5, count), 5 * 86_400_000).astype(np.int64) + 1000
    specs = {f"j{n}": replace(spec, duration_ms=int(duration[n])) for n, spec in enumerate(_jobs(rng, count))}
    asked = sum(spec.tasks * spec.mgpu * (spec.duration_ms or 0) for spec in specs.values()) / 1000
    span = 7 * 86_400_000
    scale = 1.3 * 2000 * span / asked
    specs = {name: replace(spec, duration_ms=int(scale * (spec.duration_ms or 0)) + 1) for name, spec in specs.items()}
    work = {name: Work(spec.duration_ms or 0, 3_600_000, 60_000) for name, spec in specs.items()}
    at = np.sort(rng.integers(span, size=count)).tolist()
    coming: list[Happening] = [(when, ev.Submitted(name, spec)) for when, (name, spec) in zip(at, specs.items())]
    engine = Engine(State(servers, tiers=TIERS), Mast())
    began = time.process_time()
    simulate(engine, SimulatedHost(work, servers=servers), coming, until_ms=span)
    return {"cpu_s": time.process_time() - began, "jobs": count, "events": engine.state.seq}


CASES: dict[str, Callable[[], dict[str, object]]] = {
    "philly": philly,
    "gavel": rounds,
    "turns": turns,
    "queue": queue,
    "preempting": preempting,
    "priorities": priorities,
    "kernels": kernels,
    "memory": memory,
    "weeks": weeks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", choices=list(CASES))
    for case in parser.parse_args().cases:
        found = {name: round(value, 3) if isinstance(value, float) else value for name, value in CASES[case]().items()}
        print(json.dumps({"case": case, **found}), flush=True)


if __name__ == "__main__":
    main()
