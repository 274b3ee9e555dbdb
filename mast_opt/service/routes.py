"""What there is under /v1."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request as Asked
from starlette.responses import Response
from starlette.routing import Route

from mast_opt.loop import events as ev
from mast_opt.service import views
from mast_opt.service.handlers import Handlers, body_of, json_of, number_of
from mast_opt.service.problems import Problem
from mast_opt.service.requests import (
    MOST_LIMIT,
    DatasetRequest,
    JobRequest,
    QuotaRequest,
    RegionRequest,
    ServerRequest,
    as_job,
    decoded,
    jobs_in,
    name_in,
    spec_of,
)
from mast_opt.service.streams import ALIVE, last_seen, message
from mast_opt.service.turn_requests import ACCEPTED, EXISTS, Respond


class Api(Handlers):
    """The handlers of jobs, fleet and log."""

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
            Route("/v1/regions/{region:path}", self.region, methods=["PUT"]),
            Route("/v1/datasets/{dataset:path}", self.dataset, methods=["PUT"]),
            Route("/v1/events", self.events, methods=["GET"]),
            Route("/v1/events/stream", self.stream, methods=["GET"]),
        ]

    # --- jobs ---

    async def submit(self, asked: Asked) -> Response:
        """Jobs, one or a list."""
        who = self.who(asked, "submit")
        body = await body_of(asked)
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
        return await self.submitted(asked, who, body, events, _of_list(names) if many else _of_one(names[0]))

    def jobs(self, asked: Asked) -> Response:
        """Jobs whose end is not known, by the order of submission."""
        self.who(asked, "read")
        wanted, after = asked.query_params.get("state"), asked.query_params.get("after")
        limit = number_of(asked, "limit", 100, 1, MOST_LIMIT)
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
        return json_of({"jobs": found, "count": total})

    def job(self, asked: Asked) -> Response:
        """One job; of one that has ended, all of its events."""
        self.who(asked, "read")
        name = name_in(asked.path_params, "job")
        with self.live.state() as state:
            record = state.jobs.get(name)
            found = None if record is None else views.job_object(record)
        if found is None:
            found = views.ended_object(self.store.of_job(name))
        if found is None:
            raise Problem(404, "no-job", f"there is no job {name}")
        return json_of(found)

    async def cancel(self, asked: Asked) -> Response:
        """A job is wanted no more."""
        who = self.who(asked, "submit")
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

        return await self.submitted(asked, who, b"", (ev.Cancelled(name),), respond)

    def explain(self, asked: Asked) -> Response:
        """Where a waiting job could start, and what rules every other cluster out."""
        self.who(asked, "read")
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
        return json_of({**found, "why": views.why_waiting(self.store.of_job(name))})

    async def what_if(self, asked: Asked) -> Response:
        """Where a job could start if it came now; nothing changes."""
        self.who(asked, "read")
        one = decoded(await body_of(asked), JobRequest)
        job = as_job(f"what if: {one.job}", spec_of(one))

        def look() -> dict[str, Any]:
            with self.live.state() as state:
                return views.answer_object(state.fleet, job)

        return json_of({**await asyncio.to_thread(look), "job": one.job})

    # --- fleet ---

    def fleet(self, asked: Asked) -> Response:
        """Servers and what is used of them, quotas, replicas."""
        self.who(asked, "read")
        with self.live.state() as state:
            return json_of(views.fleet_object(state))

    async def server(self, asked: Asked) -> Response:
        """A server comes, breaks or comes back."""
        who = self.who(asked, "operate")
        name, body = name_in(asked.path_params, "server"), await body_of(asked)
        one = decoded(body, ServerRequest)
        with self.live.state() as state:
            known, moves_to = state.inventory.server_of.get(name), state.inventory.moving.get(name)
        if known is None and (
            one.state == "down" or None in (one.region, one.cluster, one.rack, one.gpu_type, one.gpus)
        ):
            words = "expected state up, region, cluster, rack, gpu_type and gpus"
            raise Problem(422, "fault", f"there is no server {name}; {words}")
        event: ev.Event
        if one.state == "down":
            event = ev.ServerDown(name, one.why)
        elif known is not None and moves_to is not None:
            if one.cluster != moves_to:
                raise Problem(409, "moves", f"server {name} moves to cluster {moves_to}; say so when it is there")
            event = ev.ServerMoved(name, known.region, moves_to)
        elif known is not None:
            place = known.region, known.cluster, known.rack, known.gpu_type
            event = ev.ServerUp(name, *place, known.gpus, known.cpu_mcores, known.memory_mib)
        else:
            text = one.region or "", one.cluster or "", one.rack or "", one.gpu_type or ""
            cpu, memory = round(1000 * one.cpu_cores), round(one.memory_gb * 1e9 / 2**20)
            event = ev.ServerUp(name, *text, one.gpus or 0, cpu, memory)
            self._check_place(event)
        return await self.submitted(asked, who, body, (event,), _done({"server": name, "state": one.state}))

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
        who = self.who(asked, "operate")
        name, body = name_in(asked.path_params, "tenant"), await body_of(asked)
        gpus = decoded(body, QuotaRequest).gpus
        event = ev.QuotaSet(name, None if gpus is None else round(1000 * gpus))
        return await self.submitted(asked, who, body, (event,), _done({"tenant": name, "gpus": gpus}))

    async def region(self, asked: Asked) -> Response:
        """What a region can store."""
        who = self.who(asked, "operate")
        name, body = name_in(asked.path_params, "region"), await body_of(asked)
        one = decoded(body, RegionRequest)
        with self.live.state() as state:
            if name not in state.inventory.supply_mgpu:
                raise Problem(404, "no-region", f"there is no region {name}")
        event = ev.StorageSet(name, round(1e6 * one.storage_tb))
        return await self.submitted(asked, who, body, (event,), _done({"region": name, "storage_tb": one.storage_tb}))

    async def dataset(self, asked: Asked) -> Response:
        """A dataset, and where it is."""
        who = self.who(asked, "operate")
        name, body = name_in(asked.path_params, "dataset"), await body_of(asked)
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
        return await self.submitted(asked, who, body, events, _done({"dataset": name, "regions": list(regions)}))

    # --- log ---

    def events(self, asked: Asked) -> Response:
        """Events after one of that number."""
        self.who(asked, "read")
        limit = number_of(asked, "limit", 100, 1, MOST_LIMIT)
        last = self.store.last_seq()
        after = number_of(asked, "after", max(0, last - limit), 0, last)
        found = [views.event_object(stored) for stored in self.store.read(after, min(last, after + limit))]
        return json_of({"events": found, "last": last})

    async def stream(self, asked: Asked) -> Response:
        """Events as they come (server-sent events); ``Last-Event-ID`` is the number of the last one that was seen."""
        self.who(asked, "read")
        last = self.store.last_seq()
        return self.streams.answer(self._lines(min(last, last_seen(asked, last))))

    async def _lines(self, after: int) -> AsyncIterator[str]:
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        end = self.live.on_stored(lambda _: loop.call_soon_threadsafe(news.set))
        try:
            while not self.live.problem:
                news.clear()
                last = await asyncio.to_thread(self.store.last_seq)
                while after < last:
                    upto = min(last, after + MOST_LIMIT)
                    for stored in await asyncio.to_thread(self._some, after, upto):
                        yield message(views.event_object(stored), stored.seq)
                    after = upto
                if not await self.streams.pause(news):
                    yield ALIVE
        finally:
            end()

    def _some(self, after: int, upto: int) -> list[ev.Stored]:
        return list(self.store.read(after, upto))


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
