"""Speed of the store: single appends, grouped appends, and what it takes to come back after a restart.

    python benchmarks/store_speed.py --events 1000000 --folder /tmp/store-speed >> RUNS
    python benchmarks/store_speed.py --events 200000 --url postgresql:///mast

The log is one of equal jobs that come, start and finish on 100 servers, written by the engine (head of line). Each part
is a line of JSON with processor time, and the median of single appends, which wait for the disk, by the clock too. RUNS
is benchmarks/data/service.jsonl.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.head_of_line import HeadOfLine
from mast_opt.cli.commands.serve import COLLECT_AFTER
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.store.postgresql import open_postgresql
from mast_opt.live.store.records import Batch
from mast_opt.live.store.recovery import recovered, snapshot_of
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Server

SERVERS = tuple(Server(f"s{n}", f"region-{n % 4}", f"c{n % 4}", f"r{n}", "H100", 8, 0, 0) for n in range(100))
SPEC = JobSpec(tier=1, mgpu=2000, tenant="team", duration_ms=1000)
GROUP = 1000


def opening() -> State:
    return State(SERVERS, tiers=(0, 1))


def turns(events: int) -> Iterator[tuple[ev.Stored, ...]]:
    """Turns of an engine: 100 jobs come, and finish in the next turn."""
    engine = Engine(opening(), HeadOfLine())
    count, number, running = 0, 0, list[str]()
    while count < events:
        inbox: list[ev.Event] = [*engine.state.opening()] if not count else []
        inbox += [event for name in running for event in (ev.Started(name, 1), ev.Finished(name, 1))]
        running = [f"job-{number + one}" for one in range(100)]
        number += 100
        inbox += [ev.Submitted(name, SPEC) for name in running]
        turn = engine.advance(number, inbox)
        count += len(turn.events)
        yield turn.events


def show(case: str, count: int, since_s: float, **more: float) -> None:
    cpu_s = round(time.process_time() - since_s, 3)
    print(json.dumps({"case": case, "events": count, "cpu_s": cpu_s, **more}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/store-speed"))
    parser.add_argument("--url")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)

    def opened() -> SqlStore:
        return open_postgresql(given.url) if given.url else open_sqlite(given.folder)

    store = opened()
    epoch = store.take_lead("benchmark", 1)
    made = [event for turn in turns(given.events) for event in turn]
    single, since = [], time.process_time()
    for at in range(500):
        begun = time.perf_counter()
        store.append(epoch, Batch(at, made[at : at + 1]))
        single.append(1000 * (time.perf_counter() - begun))
    show("append", len(single), since, median_wall_ms=round(statistics.median(single), 3))
    since = time.process_time()
    for at in range(500, len(made), GROUP):
        store.append(epoch, Batch(at, made[at : at + GROUP]))
    show("append-groups", len(made) - 500, since)
    del made
    gc.set_threshold(*COLLECT_AFTER)  # as the service does
    since = time.process_time()
    show("read", sum(1 for _ in store.read()), since)
    since = time.process_time()
    state = recovered(store, opening).state
    show("restart-log", state.seq, since)
    store.save_snapshot(epoch, snapshot_of(state))
    store.close()
    store = opened()
    since = time.process_time()
    again = recovered(store, opening)
    assert again.state.digest() == state.digest()
    show("restart-snapshot", again.snapshot_seq, since)
    store.close()


if __name__ == "__main__":
    main()
