"""How long a request holds the loop where many jobs wait, what a waiting job takes of memory, and restarts with them.

    python -m benchmarks.service_pauses --jobs 100000 --folder /tmp/service-pauses
    python -m benchmarks.service_pauses --jobs 100000 --own-durations
    python -m benchmarks.service_pauses --jobs 100000 --ended 900000

The service is in this process, with an SQLite store, the simulated host and no other client; times are processor time,
the longest of five. A line of JSON for each. A turn is timed in the loop's thread; what a request holds, others wait
for.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starlette.testclient import TestClient

from mast_opt.cli.commands.serve import COLLECT_AFTER
from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.live import Live
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.turn_requests import Request
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.live.store.recovery import recovered, snapshot_of
from mast_opt.live.store.sqlite import open_sqlite

FLEET = Path(__file__).parents[1] / "instances" / "traces" / "philly-small"
LIST, TIMES = 2000, 5
PATHS = (
    "/v1/jobs?limit=1000",
    "/v1/overview",
    "/v1/fleet",
    "/v1/jobs?search=no-such",
    "/v1/jobs?state=waiting&order=place&limit=1000",
    "/v1/jobs/train-0",
    "/metrics",
)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def cpu_s(do: Callable[[], object]) -> float:
    begun = time.process_time()
    do()
    return time.process_time() - begun


def show(what: str, times: int, do: Callable[[], object]) -> None:
    spent = max(cpu_s(do) for _ in range(times))
    print(json.dumps({"case": "pause", "what": what, "cpu_ms": round(1000 * spent, 1)}), flush=True)


def time_turns(live: Live) -> list[float]:
    """Processor time of the turns from now on, which are added as they end."""
    turn, found = live._turn, list[float]()

    def timed(taken: Sequence[Request]) -> None:
        begun = time.thread_time()
        turn(taken)
        found.append(time.thread_time() - begun)

    live._turn = timed  # type: ignore[method-assign]
    return found


def time_holds(live: Live) -> list[float]:
    """Processor time for which requests from now on look at the state, which a turn and others wait for."""
    state, found = live.state, list[float]()

    @contextmanager
    def timed() -> Iterator[State]:
        with state() as seen:
            begun = time.thread_time()
            yield seen
            found.append(time.thread_time() - begun)

    live.state = timed  # type: ignore[method-assign]
    return found


def show_turns(what: str, turns: list[float]) -> None:
    longest_ms = round(1000 * max(turns), 1)
    print(json.dumps({"case": "turns", "what": what, "turns": len(turns), "longest_cpu_ms": longest_ms}), flush=True)
    turns.clear()


def end(client: TestClient, live: Live, jobs: int) -> None:
    """Jobs that have come and gone: their names are known."""
    for first in range(0, jobs, LIST):
        body = [{"job": f"ended-{first + at}", "gpus": 0.01, "duration_s": 0} for at in range(min(LIST, jobs - first))]
        assert client.post("/v1/jobs", json=body).status_code == 201
        while live._engine.state.jobs:
            time.sleep(0.01)


def submit(client: TestClient, jobs: int, *, own_durations: bool) -> None:
    for first in range(0, jobs, LIST):
        body: list[dict[str, Any]] = [
            {"job": f"train-{number}", "gpus": 8, "tier": 1 + number % 3, "tenant": f"team-{number % 7}"}
            | {"duration_s": 360_000 + (0.377 * number if own_durations else 0), "preemptible": False}
            for number in range(jobs - first - min(LIST, jobs - first), jobs - first)
        ]
        assert client.post("/v1/jobs", json=body).status_code == 201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--ended", type=int, default=0, help="jobs that have come and gone before")
    parser.add_argument("--own-durations", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/service-pauses"))
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    gc.set_threshold(*COLLECT_AFTER)  # as the service does
    store, ended = open_sqlite(given.folder), SimpleNamespace(returncode=0, poll=lambda: 0, kill=int, wait=int)
    opening = opening_of(store, read_trace(FLEET).servers)
    live = Live(store, opening, Mast, SimulatedLiveHost, saves=lambda epoch: ended)  # type: ignore[arg-type,return-value]
    live.start()
    client = TestClient(build(live, store, Access(None, rate=1e9)), base_url="http://localhost")
    turns = time_turns(live)
    if given.ended:
        end(client, live, given.ended)
        show_turns("jobs come and go", turns)
    before = resident_bytes()
    submit(client, given.jobs, own_durations=given.own_durations)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what requests took is given back
    waiting = sum(one.waits for one in live._engine.state.jobs.values())
    print(json.dumps({"case": "memory", "waiting": waiting, "job_bytes": (resident_bytes() - before) // waiting}))
    show_turns("lists of jobs that wait", turns)
    for number in range(TIMES):
        one = {"job": f"one-{number}", "gpus": 8, "tier": 1, "duration_s": 9}
        show("POST one job", 1, lambda one=one: client.post("/v1/jobs", json=one))  # type: ignore[misc]
        body = [{**one, "job": f"list-{number}-{at}"} for at in range(1000)]
        show("POST a list of 1,000", 1, lambda body=body: client.post("/v1/jobs", json=body))  # type: ignore[misc]
        show("DELETE a job", 1, lambda number=number: client.delete(f"/v1/jobs/one-{number}"))  # type: ignore[misc]
    for path in PATHS:
        holds = time_holds(live)
        show(f"GET {path}", TIMES, lambda path=path: client.get(path))  # type: ignore[misc]
        print(json.dumps({"case": "hold", "what": f"GET {path}", "longest_cpu_ms": round(1000 * max(holds), 1)}))
    show("a look at what the host runs", TIMES, live._look)
    drain = {"of": "cluster", "name": "2869ce", "state": "closed"}
    show("a drain", 2, lambda: client.post("/v1/drains", json=drain))
    show("a quota", 2, lambda: client.put("/v1/quotas/team-1", json={"gpus": 4}))
    show_turns("all of these", turns)
    live.close()
    found = recovered(store, opening)
    epoch = store.take_lead("benchmark", 0)
    store.save_snapshot(epoch, snapshot_of(found.state))
    snapshot_s = cpu_s(lambda: recovered(store, opening))
    store._db.execute("DELETE FROM snapshots")
    log_s = cpu_s(lambda: recovered(store, opening))
    print(json.dumps({"case": "restart", "snapshot_s": round(snapshot_s, 2), "log_s": round(log_s, 2)}))
    store.close()


if __name__ == "__main__":
    main()
