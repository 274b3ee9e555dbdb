"""The service: routes, the page, probes, metrics, and errors as problems."""

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Match, Route

from mast_opt.live.loop.job_states import JobState
from mast_opt.live.service.access import Access
from mast_opt.live.service.door import AccessLog, Door, Hosts
from mast_opt.live.service.live import Live
from mast_opt.live.service.openapi import document
from mast_opt.live.service.page import PAGE, POLICY
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.routes import Api
from mast_opt.live.service.solve_routes import SolveApi
from mast_opt.live.service.solves import Solves
from mast_opt.live.service.streams import Streams
from mast_opt.live.service.turn_requests import Unavailable
from mast_opt.live.service.views import quota_objects
from mast_opt.live.service.why import waiting_longest
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.problems.job_placement.units import WHOLE

STARTS = {
    "jobs": "Last jobs that started and of which a start had been said",
    "started_by_then": "Share of them that started by then",
    "within_factor_2": "Share of them whose wait had been predicted within a factor of 2",
    "too_long_h_p10": "Hours by which the wait had been predicted too long, P10",
    "too_long_h_p50": "Hours by which the wait had been predicted too long, median",
    "too_long_h_p90": "Hours by which the wait had been predicted too long, P90",
}
QUOTAS = {
    "gpus": ("mast_opt_quota_gpus", "GPUs of a quota"),
    "used": ("mast_opt_quota_gpus_used", "GPUs that count against a quota"),
    "left": ("mast_opt_quota_gpus_left", "GPUs that may still be used, borrowed ones included"),
    "borrowing_limit": ("mast_opt_quota_borrowing_limit_gpus", "GPUs that may be borrowed"),
    "lending_limit": ("mast_opt_quota_lending_limit_gpus", "GPUs that may be lent"),
}
"""Field of a quota's object → name and meaning of its gauge."""
_STEPS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)


class Figures:
    """Metrics of the service: counters, and the present state of its loop.

    Args:
        live: the loop.
        access: counts the requests of each client.
    """

    def __init__(self, live: Live, access: Access) -> None:
        self._live, self._access, self.read = live, access, access.end
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "mast_opt_requests", "Requests that were answered", ["method", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "mast_opt_request_seconds", "Time until the answer", ["method"], registry=self._registry, buckets=_STEPS
        )
        self._registry.register(self)

    def answered(self, method: str, status: int, seconds: float) -> None:
        """Count an HTTP answer and its time."""
        method = method if method in ("GET", "POST", "PUT", "DELETE", "HEAD") else "other"
        self.requests.labels(method, str(status)).inc()
        self.seconds.labels(method).observe(seconds)

    def describe(self) -> tuple[GaugeMetricFamily, ...]:
        """Describe no gauges: the loop may not have begun."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Gauges of the loop's present state."""
        jobs = GaugeMetricFamily("mast_opt_jobs", "Jobs whose end is not known", labels=["state"])
        supply = GaugeMetricFamily("mast_opt_gpus", "GPUs of servers in service", labels=["region"])
        used = GaugeMetricFamily("mast_opt_gpus_used", "GPUs of jobs that start and run", labels=["region"])
        with self._live.state() as state:
            counts = dict.fromkeys(JobState, 0)
            for record in state.jobs.values():
                counts[record.state] += 1
            longest_ms = {size: state.now_ms - one.submitted_ms for size, one in waiting_longest(state).items()}
            supplied, taken = dict(state.inventory.supply_mgpu), dict(state.inventory.used_mgpu)
            seq, quotas = state.seq, quota_objects(state.fleet)
        for kind, count in counts.items():
            jobs.add_metric([kind.value], count)
        for region, mgpu in supplied.items():
            supply.add_metric([region], mgpu / WHOLE)
            used.add_metric([region], taken.get(region, 0) / WHOLE)
        waits = GaugeMetricFamily(
            "mast_opt_longest_wait_seconds",
            "Longest wait of jobs of up to so many GPUs",
            labels=["gpus"],
        )
        for size, wait_ms in longest_ms.items():
            waits.add_metric([str(size)], wait_ms / 1000)
        turns = sorted(self._live.turn_s)
        yield from _starts(self._live.starts.errors.figures())
        yield from (jobs, supply, used, waits, *_quotas(quotas))
        yield GaugeMetricFamily("mast_opt_events", "Number of the last event", seq)
        yield GaugeMetricFamily("mast_opt_epoch", "Epoch of this leader", self._live.epoch)
        yield GaugeMetricFamily("mast_opt_ready", "Whether requests are taken in", float(not self._live.problem))
        yield GaugeMetricFamily("mast_opt_open", "Whether no token is needed", float(self._access.open))
        if turns:
            slow = turns[min(len(turns) - 1, 99 * len(turns) // 100)]
            yield GaugeMetricFamily("mast_opt_turn_p99_seconds", "P99 of the last turns, with their log", slow)

    def text(self) -> bytes:
        """All metrics of the service, as Prometheus reads them."""
        return generate_latest(self._registry)


def _quotas(quotas: Iterable[Mapping[str, Any]]) -> Iterator[GaugeMetricFamily]:
    """Gauges of the tree of quotas; a limit that there is not has no sample."""
    for field, (name, words) in QUOTAS.items():
        gauge = GaugeMetricFamily(name, words, labels=["tenant", "gpu_type", "parent"])
        for one in quotas:
            if one[field] is not None:
                gauge.add_metric([one["tenant"], one["gpu_type"], one["parent"]], one[field])
        yield gauge


def _starts(errors: Mapping[str, Mapping[str, float]]) -> Iterator[GaugeMetricFamily]:
    """Gauges of how far starts were from what was promised and predicted, by the last jobs of each kind."""
    for name, words in STARTS.items():
        one = GaugeMetricFamily(f"mast_opt_starts_{name}", words, labels=["said"])
        for kind, figures in errors.items():
            one.add_metric([kind], figures[name])
        yield one


def build(
    live: Live,
    store: SqlStore,
    access: Access,
    solves: Solves | None = None,
    streams: Streams | None = None,
    hosts: Hosts | None = None,
    log: AccessLog | None = None,
    *,
    behind_proxy: bool = False,
) -> Starlette:
    """The application over a loop that has begun, or is about to.

    Args:
        solves: without them nothing is solved.
        streams: all that there are, for who ends them.
        hosts: names of the service; those of this machine for itself unless given.
        log, behind_proxy: as in ``Door``.
    """
    figures, streams = Figures(live, access), streams or Streams()
    api = Api(live, store, access, streams)
    solve_api = SolveApi(live, store, access, streams, solves or Solves(live, store, None))
    described = json.dumps(document(version("mast-opt")))

    async def page(_: Request) -> Response:
        return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"})

    async def ready(_: Request) -> Response:
        if live.problem:
            raise Problem(503, "unavailable", live.problem, headers={"Retry-After": "1"})
        return PlainTextResponse("ready\n")

    async def alive(_: Request) -> Response:  # in no thread: those may all be waiting for the loop
        return PlainTextResponse("alive\n")

    def metrics(asked: Request) -> Response:
        api.who(asked, "read")
        return Response(figures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    routes = [
        *api.routes(),
        *solve_api.routes(),
        Route("/", page),
        Route("/livez", alive),
        Route("/readyz", ready),
        Route("/metrics", metrics),
        Route("/openapi.json", lambda _: Response(described, media_type="application/json")),
    ]
    handlers = {
        Problem: _problem,
        MemoryError: _unavailable,
        OSError: _unavailable,
        HTTPException: _other,
        Unavailable: _unavailable,
        StoreError: _unavailable,
        Exception: _internal,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.add_middleware(Door, watch=figures, hosts=hosts or Hosts(), log=log, behind_proxy=behind_proxy)
    return app


async def _problem(_: Request, error: Exception) -> Response:
    """Response to a request that a handler has refused with a Problem."""
    assert isinstance(error, Problem)
    return error.response()


async def _unavailable(_: Request, error: Exception) -> Response:
    """Response 503 to a request that cannot be answered now."""
    words = str(error) or "out of memory"
    return Problem(503, "unavailable", words, headers={"Retry-After": "1"}).response()


async def _other(asked: Request, error: Exception) -> Response:
    """Response to a request for a wrong path or method, as a problem."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        matching = [one for one in asked.app.routes if one.matches(asked.scope)[0] is not Match.NONE]
        same = (one for one in matching if one.path == matching[0].path)
        headers["Allow"] = ", ".join(sorted({method for one in same for method in one.methods}))
    return Problem(error.status_code, "http", str(error.detail), headers=headers).response()


async def _internal(_: Request, error: Exception) -> Response:
    """Response 500 to a request on which the service has failed."""
    return Problem(500, "internal", "the service has failed; its log of errors says why").response()
