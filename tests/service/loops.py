"""A loop with a store in a folder and a simulated host, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.testclient import TestClient

from mast_opt.live.hosts.protocol import Host
from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.policy import Policy
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.live import Live, LiveParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.turn_requests import Key, Request
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Server

SERVERS = tuple(
    Server(f"s{number}", region, f"{region}-1", f"{region}-r", "H100", 8, 64_000, 512_000)
    for number, region in enumerate(("east", "east", "west"))
)
SHORT = JobSpec(tier=1, mgpu=8000, duration_ms=0, preemptible=True)
LONG = JobSpec(tier=1, mgpu=8000, duration_ms=3_600_000, preemptible=True)


def loop(
    store: SqlStore,
    host_of: Callable[[Callable[[str], JobSpec]], Host] = SimulatedLiveHost,
    policy: Callable[[], Policy] = Mast,
    **params: float,
) -> Live:
    return Live(store, opening_of(store, SERVERS), policy, host_of, LiveParams(**params))  # type: ignore[arg-type]


@contextmanager
def running(
    folder: Path, store: SqlStore | None = None, policy: Callable[[], Policy] = Mast, **params: float
) -> Iterator[tuple[Live, SqlStore]]:
    store = store or open_sqlite(folder)
    live = loop(store, SimulatedLiveHost, policy, **params)
    live.start()
    try:
        yield live, store
    finally:
        live.close()
        store.close()


def web(app: Starlette) -> TestClient:
    """A client of this machine."""
    return TestClient(app, base_url="http://localhost")


def submit(
    live: Live, *names: str, spec: JobSpec = LONG, key: str = "", digest: str = "", by: str = ""
) -> Future[tuple[int, str]]:
    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        return 201, ",".join(verdicts)

    named = Key("me", key, digest) if key else None
    return live.submit(Request(tuple(ev.Submitted(name, spec) for name in names), respond, named, by))
