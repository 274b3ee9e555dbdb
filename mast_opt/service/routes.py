"""What there is under /v1."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request as Asked
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from mast_opt.loop import events as ev
from mast_opt.service import views
from mast_opt.service.access import Access, Principal
from mast_opt.service.figures import Figures
from mast_opt.service.live import Live
from mast_opt.service.problems import Problem
from mast_opt.service.requests import (
    MOST_BYTES,
    NAME,
    DatasetRequest,
    JobRequest,
    QuotaRequest,
    ServerRequest,
    as_job,
    decoded,
    jobs_in,
    name_in,
    spec_of,
)
from mast_opt.service.turn_requests import ACCEPTED, EXISTS, Key, KeyReused, Request, Respond, Unavailable
from mast_opt.store.errors import StoreError
from mast_opt.store.protocol import Store

MOST_LIMIT = 1000
MOST_KEY = 255
STREAM_PAUSE_S = 15.0
"""After which a stream says that it is alive."""
MOST_STREAMS = 100


class Api:
    """The handlers, over one loop."""

    def __init__(self, live: Live, store: Store, access: Access, figures: Figures) -> None:
        self.live, self.store, self.access, self.figures = live, store, access, figures
        self._streams = 0

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/v1/jobs", self.submit, methods=["POST"]),
            Route("/v1/jobs", self.jobs, methods=["GET"]),
            Route("/v1/jobs/{job:path}/explain", self.explain, methods=["GET"]),
            Route("/v1/jobs/{job:path}", self.job, methods=["GET"]),
            Route("/v1/jobs/{job:path}", self.cancel, methods=["DELETE"]),
            Route("/v1/whatif", self.what_if, methods=["POST"]),
            Route("/v1/fleet", self.fleet, methods=["GET"]),
            Route("/v1/servers/{server:path}", self.server, methods=["PUT"]),
            Route("/v1/quotas/{tenant:path}", self.quota, methods=["PUT"]),
            Route("/v1/datasets/{dataset:path}", self.dataset, methods=["PUT"]),
            Route("/v1/events", self.events, methods=["GET"]),
            Route("/v1/events/stream", self.stream, methods=["GET"]),
        ]

    # --- jobs ---

    async def submit(self, asked: Asked) -> Response:
        """Jobs, one or a list."""
        who = self._who(asked, "submit")
        body = await _body(asked)
        found, many = jobs_in(body)
        if who.tenant:
            for name, spec in found:
                if spec.tenant not in ("", who.tenant):
                    raise Problem(
                        403, "tenant", f"job {name} is of tenant {spec.tenant}; {who.name} is of {who.tenant}"
                    )
            found = [(name, replace(spec, tenant=who.tenant)) for name, spec in found]
        events = tuple(ev.Submitted(name, spec) for name, spec in found)
        names = [name for name, _ in found]
        return await self._submitted(asked, who, body, events, _of_list(names) if many else _of_one(names[0]))

    def jobs(self, asked: Asked) -> Response:
        """Jobs whose end is not known, by the order of submission."""
        self._who(asked, "read")
        wanted, after = asked.query_params.get("state"), asked.query_params.get("after")
        limit = _number(asked, "limit", 100, 1, MOST_LIMIT)
        with self.live.state() as state:
            names = list(state.jobs)
            if after is not None and after not in state.jobs:
                raise Problem(422, "fault", f"after is {after[:60]!r}; expected the name of a job of this list")
            begin = 0 if after is None else names.index(after) + 1
            found = []
            for name in names[begin:]:
                record = state.jobs[name]
                if wanted is None or record.state.value == wanted:
                    found.append(views.job_object(record))
                    if len(found) == limit:
                        break
            total = len(names)
        return _json({"jobs": found, "count": total})

    def job(self, asked: Asked) -> Response:
        """One job; of one that has ended, all of its events."""
        self._who(asked, "read")
        name = name_in(asked.path_params, "job")
        with self.live.state() as state:
            record = state.jobs.get(name)
            found = None if record is None else views.job_object(record)
        if found is None:
            found = views.ended_object(self.store.of_job(name))
        if found is None:
            raise Problem(404, "no-job", f"there is no job {name}")
        return _json(found)

    async def cancel(self, asked: Asked) -> Response:
        """A job is wanted no more."""
        who = self._who(asked, "submit")
        name = name_in(asked.path_params, "job")
        with self.live.state() as state:
            record = state.jobs.get(name)
            tenant = None if record is None else record.spec.tenant
        if tenant is not None and who.tenant and tenant != who.tenant and "operate" not in who.scopes:
            raise Problem(403, "tenant", f"job {name} is not of tenant {who.tenant}")

        def respond(verdicts: Sequence[str]) -> tuple[int, str]:
            if verdicts[0] == ACCEPTED:
                return 202, json.dumps({"job": name, "result": "cancelled"})
            return 404, Problem(404, "no-job", f"there is no job {name}, or it has ended").body()

        return await self._submitted(asked, who, b"", (ev.Cancelled(name),), respond)

    def explain(self, asked: Asked) -> Response:
        """Where a waiting job could start, and what rules every other cluster out."""
        self._who(asked, "read")
        name = name_in(asked.path_params, "job")
        with self.live.state() as state:
            record = state.jobs.get(name)
            if record is None:
                raise Problem(404, "no-job", f"there is no job {name}, or it has ended")
            if not record.waits and not record.held:
                raise Problem(
                    409, "not-waiting", f"job {name} is {record.state.value}; only a waiting one is explained"
                )
            found = views.answer_object(state.fleet, record.job)
        return _json({**found, "why": views.why_waiting(self.store.of_job(name))})

    async def what_if(self, asked: Asked) -> Response:
        """Where a job could start if it came now; nothing changes."""
        self._who(asked, "read")
        one = decoded(await _body(asked), JobRequest)
        job = as_job(f"what if: {one.job}", spec_of(one))

        def look() -> dict[str, Any]:
            with self.live.state() as state:
                return views.answer_object(state.fleet, job)

        return _json({**await asyncio.to_thread(look), "job": one.job})

    # --- fleet ---

    def fleet(self, asked: Asked) -> Response:
        """Servers and what is used of them, quotas, replicas."""
        self._who(asked, "read")
        with self.live.state() as state:
            return _json(views.fleet_object(state))

    async def server(self, asked: Asked) -> Response:
        """A server comes, breaks or comes back."""
        who = self._who(asked, "operate")
        name, body = name_in(asked.path_params, "server"), await _body(asked)
        one = decoded(body, ServerRequest)
        with self.live.state() as state:
            known = state.inventory.server_of.get(name)
        if known is None and (
            one.state == "down" or None in (one.region, one.cluster, one.rack, one.gpu_type, one.gpus)
        ):
            words = "expected state up, region, cluster, rack, gpu_type and gpus"
            raise Problem(422, "fault", f"there is no server {name}; {words}")
        event: ev.Event
        if one.state == "down":
            event = ev.ServerDown(name, one.why)
        elif known is not None:
            place = known.region, known.cluster, known.rack, known.gpu_type
            event = ev.ServerUp(name, *place, known.gpus, known.cpu_mcores, known.memory_mib)
        else:
            text = one.region or "", one.cluster or "", one.rack or "", one.gpu_type or ""
            cpu, memory = round(1000 * one.cpu_cores), round(one.memory_gb * 1e9 / 2**20)
            event = ev.ServerUp(name, *text, one.gpus or 0, cpu, memory)
            self._check_place(event)
        return await self._submitted(asked, who, body, (event,), _done({"server": name, "state": one.state}))

    def _check_place(self, event: ev.ServerUp) -> None:
        """A cluster is of one region, a rack of one cluster."""
        with self.live.state() as state:
            for other in state.inventory.server_of.values():
                if (other.cluster == event.cluster and other.region != event.region) or (
                    other.rack == event.rack and other.cluster != event.cluster
                ):
                    words = f"the cluster or rack of {event.server} is elsewhere already, see server {other.name}"
                    raise Problem(422, "fault", words)

    async def quota(self, asked: Asked) -> Response:
        """GPUs of a tenant."""
        who = self._who(asked, "operate")
        name, body = name_in(asked.path_params, "tenant"), await _body(asked)
        gpus = decoded(body, QuotaRequest).gpus
        event = ev.QuotaSet(name, None if gpus is None else round(1000 * gpus))
        return await self._submitted(asked, who, body, (event,), _done({"tenant": name, "gpus": gpus}))

    async def dataset(self, asked: Asked) -> Response:
        """A dataset, and where it is."""
        who = self._who(asked, "operate")
        name, body = name_in(asked.path_params, "dataset"), await _body(asked)
        one = decoded(body, DatasetRequest)
        regions = tuple(dict.fromkeys(one.regions))
        with self.live.state() as state:
            known = state.datasets.replicas.get(name)
        events: tuple[ev.Event, ...]
        if known is None:
            events = (ev.DatasetCreated(name, round(1e6 * one.size_tb), regions, one.namespace),)
        else:
            come = (ev.CopyEnded(name, region) for region in regions if region not in known)
            go = (ev.ReplicaDropped(name, region) for region in sorted(known - set(regions)))
            events = (*come, *go)
        return await self._submitted(asked, who, body, events, _done({"dataset": name, "regions": list(regions)}))

    # --- log ---

    def events(self, asked: Asked) -> Response:
        """Events after one of that number."""
        self._who(asked, "read")
        limit = _number(asked, "limit", 100, 1, MOST_LIMIT)
        last = self.store.last_seq()
        after = _number(asked, "after", max(0, last - limit), 0, last)
        found = [views.event_object(stored) for stored in self.store.read(after, min(last, after + limit))]
        return _json({"events": found, "last": last})

    async def stream(self, asked: Asked) -> Response:
        """Events as they come (server-sent events); ``Last-Event-ID`` is the number of the last one that was seen."""
        self._who(asked, "read")
        if self._streams >= MOST_STREAMS:
            raise Problem(429, "streams", f"there are {MOST_STREAMS} streams already", headers={"Retry-After": "30"})
        last = self.store.last_seq()
        header = asked.headers.get("last-event-id", "")
        after = min(int(header), last) if header.isdecimal() and len(header) < 18 else last
        return StreamingResponse(
            self._lines(after), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _lines(self, after: int) -> AsyncIterator[str]:
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        end = self.live.on_stored(lambda _: loop.call_soon_threadsafe(news.set))
        self._streams += 1
        try:
            while not self.live.problem:
                news.clear()
                last = await asyncio.to_thread(self.store.last_seq)
                while after < last:
                    upto = min(last, after + MOST_LIMIT)
                    for stored in await asyncio.to_thread(self._some, after, upto):
                        yield f"id: {stored.seq}\ndata: {json.dumps(views.event_object(stored))}\n\n"
                    after = upto
                try:
                    await asyncio.wait_for(news.wait(), STREAM_PAUSE_S)
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            self._streams -= 1
            end()

    def _some(self, after: int, upto: int) -> list[ev.Stored]:
        return list(self.store.read(after, upto))

    # --- common ---

    def _who(self, asked: Asked, scope: str) -> Principal:
        who = self.access.principal(asked.headers.get("authorization"))
        who.check(scope)
        return who

    async def _submitted(
        self, asked: Asked, who: Principal, body: bytes, events: tuple[ev.Event, ...], respond: Respond
    ) -> Response:
        """The answer once the events are in the log."""
        header = asked.headers.get("idempotency-key")
        key = None
        if header is not None:
            if not 0 < len(header) <= MOST_KEY or not NAME.fullmatch(header):
                raise Problem(422, "fault", "Idempotency-Key: expected letters, digits and . _ : / @ -, at most 253")
            digest = hashlib.blake2b(f"{asked.method} {asked.url.path} ".encode() + body, digest_size=16).hexdigest()
            key = Key(who.name, header, digest)
        try:
            status, text = await asyncio.wrap_future(self.live.submit(Request(events, respond, key)))
        except KeyReused as error:
            raise Problem(422, "key-reused", str(error)) from None
        except (Unavailable, StoreError) as error:
            raise Problem(503, "unavailable", str(error), headers={"Retry-After": "1"}) from None
        kind = "application/json" if status < 400 else "application/problem+json"
        return Response(text, status, media_type=kind)


async def _body(asked: Asked) -> bytes:
    """The body. Raises Problem for one that is too large, or said to be no JSON."""
    kind = asked.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "media-type", f"the body is {kind[:60]}; expected application/json")
    length = asked.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise Problem(413, "too-large", f"the body has {int(length):,} bytes; expected at most {MOST_BYTES:,}")
    parts, size = [], 0
    async for part in asked.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise Problem(413, "too-large", f"the body has more than {MOST_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _number(asked: Asked, name: str, default: int, least: int, most: int) -> int:
    text = asked.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal() or not text.isascii() or len(text) > 18 or not least <= int(text) <= most:
        raise Problem(422, "fault", f"{name} is {text[:30]!r}; expected a whole number from {least:,} to {most:,}")
    return int(text)


def _json(found: object, status: int = 200) -> Response:
    return Response(json.dumps(found, allow_nan=False), status, media_type="application/json")


def _done(found: dict[str, Any]) -> Respond:
    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        return 200, json.dumps(found)

    return respond


def _of_one(name: str) -> Respond:
    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        if verdicts[0] == EXISTS:
            return 409, Problem(409, "job-exists", f"there is or was a job {name}").body()
        return 201, json.dumps({"job": name, "result": ACCEPTED})

    return respond


def _of_list(names: Sequence[str]) -> Callable[[Sequence[str]], tuple[int, str]]:
    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        results = [{"job": name, "result": verdict} for name, verdict in zip(names, verdicts)]
        return (201 if set(verdicts) <= {ACCEPTED} else 207), json.dumps({"jobs": results})

    return respond
