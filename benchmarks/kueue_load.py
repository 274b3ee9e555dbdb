"""The load of Kueue's scheduler performance test under ``mast``: processor time, and how long each class waits.

    python -m benchmarks.kueue_load baseline large-scale >> benchmarks/data/loop-at-size.jsonl
    python -m benchmarks.measured_pages

The load is that of ``test/performance/scheduler/configs`` in kubernetes-sigs/kueue (commit ff69552e): in every queue,
each class is a stream of its own with a constant interval. A cohort is a region with one pool, and CPUs are GPUs. Work
that is stopped has lost all that it did, as there. Kueue's own figures measure its API server and are not comparable;
its order of classes is, and what its rules say of waits.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from typing import NamedTuple, TypedDict

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server


class Stream(NamedTuple):
    """A class of workloads, of which every queue gets so many, one after each interval."""

    tier: int
    cpu: int
    run_ms: int
    every_ms: int
    each: int


class Load(NamedTuple):
    """Cohorts that share nothing, with queues that may use all of their cohort's CPUs."""

    cohorts: int
    queues: int
    cpu: int
    """Of each queue."""
    streams: Mapping[str, Stream]


LOADS = {
    "baseline": Load(
        5,
        6,
        20,
        {
            "large": Stream(0, 20, 1000, 1200, 50),
            "medium": Stream(1, 5, 500, 500, 100),
            "small": Stream(2, 1, 200, 100, 350),
        },
    ),
    "large-scale": Load(
        10,
        100,
        20,
        {
            "large": Stream(0, 20, 700, 700, 4),
            "medium": Stream(1, 5, 350, 300, 11),
            "small": Stream(2, 1, 150, 60, 35),
        },
    ),
}
GPUS = 50
"""GPUs that one CPU stands for, so that a cohort is a pool (``MOST_GPUS``): its CPUs have no numbers."""
NEVER_MS = 3_600_000
"""Time between checkpoints, longer than any workload runs."""


def coming(load: Load) -> list[Happening]:
    """Every workload of a load when it comes; its name begins with its class."""
    found = [
        ((number + 1) * one.every_ms, queue, kind, cohort, number)
        for cohort in range(load.cohorts)
        for kind, one in load.streams.items()
        for queue in range(load.queues)
        for number in range(one.each)
    ]
    specs = {
        (kind, cohort): JobSpec(
            tier=one.tier,
            mgpu=one.cpu * GPUS * 1000,
            preemptible=True,
            checkpoint_ms=NEVER_MS,
            restart_ms=0,
            duration_ms=one.run_ms,
            home_region=f"cohort-{cohort}",
        )
        for cohort in range(load.cohorts)
        for kind, one in load.streams.items()
    }
    return [
        (at_ms, ev.Submitted(f"{kind}-{cohort}-{queue}-{number}", specs[kind, cohort]))
        for at_ms, queue, kind, cohort, number in sorted(found)
    ]


class Figures(TypedDict):
    """A load that has been run."""

    cpu_s: float
    jobs: int
    events: int
    end_ms: int
    waits_s: dict[str, list[float]]
    """Class → mean wait until the first start, and until the last one."""
    stops: dict[str, int]
    """Class → how often work was stopped."""


def run(load: Load) -> Figures:
    """A load under ``mast``."""
    pools = [
        Server(f"pool-{n}", f"cohort-{n}", f"cohort-{n}", "k", "cpu", load.queues * load.cpu * GPUS, 0, 0)
        for n in range(load.cohorts)
    ]
    what = coming(load)
    came = {event.job: at_ms for at_ms, event in what if isinstance(event, ev.Submitted)}
    of = {name: load.streams[name.split("-")[0]] for name in came}
    host = SimulatedHost({name: Work(one.run_ms, NEVER_MS) for name, one in of.items()})
    tiers = sorted({one.tier for one in load.streams.values()})
    engine = Engine(State(pools, tiers=tiers, placement="best-fit"), Mast(MastParams(scope="region")))
    first, last, stops = dict[str, int](), dict[str, int](), dict.fromkeys(load.streams, 0)

    def note(turn: Turn) -> None:
        for stored in turn.events:
            if isinstance(stored.event, ev.Started):
                first.setdefault(stored.event.job, stored.at_ms)
                last[stored.event.job] = stored.at_ms
            elif isinstance(stored.event, ev.StopAsked):
                stops[stored.event.job.split("-")[0]] += 1

    began = time.process_time()
    end_ms = simulate(engine, host, what, on_turn=note)
    cpu_s = time.process_time() - began
    waits = {
        kind: [sum(when[name] - came[name] for name in names) / len(names) / 1000 for when in (first, last)]
        for kind in load.streams
        for names in [[name for name in came if name.startswith(kind)]]
    }
    return Figures(cpu_s=cpu_s, jobs=len(came), events=engine.state.seq, end_ms=end_ms, waits_s=waits, stops=stops)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("load", nargs="+", choices=list(LOADS))
    parser.add_argument("--cohorts", type=int, help="of the load; all unless given")
    given = parser.parse_args()
    for name in given.load:
        load = LOADS[name]._replace(**({} if given.cohorts is None else {"cohorts": given.cohorts}))
        print(json.dumps({"case": f"kueue {name}", "cohorts": load.cohorts, **run(load)}), flush=True)


if __name__ == "__main__":
    main()
