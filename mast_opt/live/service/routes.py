"""Handlers of the routes under /v1."""

import asyncio
import heapq
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from starlette.requests import Request as Asked
from starlette.responses import Response

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import HOLDING, WAITING, JobState
from mast_opt.live.loop.jobs import JobRecord, job_of
from mast_opt.live.loop.state import State
from mast_opt.live.service import requests, views
from mast_opt.live.service.access import Access
from mast_opt.live.service.fleet_requests import dataset_events, drain_events, jobs_on, server_event
from mast_opt.live.service.handlers import Endpoint, Handlers, json_of, number_of
from mast_opt.live.service.live import Live
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.start_times import fits_by_ms, sooner
from mast_opt.live.service.streams import ALIVE, Streams, last_seen, message
from mast_opt.live.service.turn_requests import ACCEPTED, EXISTS, UNKNOWN, Respond
from mast_opt.live.service.usage_so_far import UsageSoFar
from mast_opt.live.service.why import Why, ahead, places, waiting_longest
from mast_opt.live.store.sql_store import SqlStore

AT_ONCE = 250
"""Jobs of a list that are looked at while the loop waits."""
LONG_BYTES = 2**16
"""Length of a body that is not read while others wait."""


class Api(Handlers):
    """The handlers of jobs, fleet and log."""

    def __init__(self, live: Live, store: SqlStore, access: Access, streams: Streams) -> None:
        super().__init__(live, store, access, streams)
        self.usage = UsageSoFar(store)

    # --- jobs ---

    @Endpoint(
        "POST",
        "/v1/jobs",
        "Submit a job, or a list of jobs",
        requests.JobRequest,
        requests.MOST_JOBS,
        (201, 207),
        (409,),
        key=True,
    )
    async def submit(self, asked: Asked) -> Response:
        """Submit jobs, one or a list."""
        who = self.who(asked, "submit")
        body = await self.body(asked)
        found, many = await _jobs_in(body)
        if who.tenant:
            for name, spec in found:
                if spec.tenant not in ("", who.tenant):
                    raise Problem(
                        403, "tenant", f"job {name} is of tenant {spec.tenant}; {who.name} is of {who.tenant}"
                    )
            found = [(name, replace(spec, tenant=who.tenant)) for name, spec in found]
        if self.live.limit_grace_ms:
            grace_ms = self.live.limit_grace_ms
            found = [(name, replace(spec, limit_grace_ms=grace_ms)) for name, spec in found]
        events = tuple(ev.Submitted(name, spec) for name, spec in found)
        names = [name for name, _ in found]
        return await self.submitted(asked, who, body, events, _of_list(names) if many else _of_one(names[0]))

    @Endpoint(
        "GET",
        "/v1/jobs",
        "Jobs whose end is not known, and how many of each state",
        query={"tenant": "state", "search": "state", "after": "job"}
        | {name: name for name in ("state", "limit", "order")},
    )
    def jobs(self, asked: Asked) -> Response:
        """Answer with the jobs whose end is not known, by the order of submission or by their place in the queue: those
        of a state or tenant, and with a text in their name; and how many there are of each state.
        """
        self.who(asked, "read")
        query = asked.query_params
        after, wanted = query.get("after"), query.get("state", "")
        tenant, text = query.get("tenant"), query.get("search", "")
        groups = {"": frozenset(JobState), "waiting": WAITING, "holding": HOLDING}
        states = groups.get(wanted, frozenset(one for one in JobState if one.value == wanted))
        limit = number_of(asked, "limit", 100, 1, requests.MOST_LIMIT)
        order = query.get("order", "submission")
        if order not in ("submission", "place"):
            raise Problem(422, "fault", f"order is {order[:30]!r}; expected submission or place")
        by_place = order == "place"
        with self.live.state() as state:
            if after is not None and after not in state.jobs:
                raise Problem(422, "fault", f"after is {after[:60]!r}; expected the name of a job of this list")
            counts = Counter(map(attrgetter("state"), state.jobs.values()))
            fits = [one for one in state.jobs.values() if one.state in states]
            if tenant is not None or text:
                fits = [one for one in fits if tenant in (None, one.spec.tenant) and text in one.name]
            now_ms, promote_ms, first = state.now_ms, self.live.promote_ms, ahead(state)

            def at(one: JobRecord) -> tuple[int, int, int]:
                if not by_place:
                    return 0, 0, one.number
                return one.queue_tier(now_ms, promote_ms), first.get(one.spec.tenant, 0), one.number

            last = (-1, 0, 0) if after is None else at(state.jobs[after])
            later = fits if after is None else [one for one in fits if at(one) > last]
            found = heapq.nsmallest(limit, later, key=at) if by_place else later[:limit]
        listed = self._listed(found)
        of_state = {one.value: counts[one] for one in JobState}
        return json_of({"jobs": listed, "count": counts.total(), "matching": len(fits), "states": of_state})

    def _listed(self, found: Sequence[JobRecord]) -> list[dict[str, Any]]:
        """Those of these jobs that have not ended, for a client; a turn may come between two parts of a long list."""
        listed = list[dict[str, Any]]()
        with self.live.state() as state:
            names = [record.name for record in found if state.jobs.get(record.name) is record]
            place = places(state, names, self.live.promote_ms)
        for first in range(0, len(found), AT_ONCE):
            with self.live.state() as state:
                some = [one for one in found[first : first + AT_ONCE] if state.jobs.get(one.name) is one]
                why, starts = Why(state), self.live.starts.of_jobs(some, state)
                listed += [
                    views.job_object(one, {**why.of(one), "place": place.get(one.name), **start})
                    for one, start in zip(some, starts)
                ]
        return listed

    @Endpoint(
        "GET", "/v1/jobs/{job:path}/explain", "Where a waiting job could start, and why not elsewhere", errors=(409,)
    )
    def explain(self, asked: Asked) -> Response:
        """Explain where a waiting job could start, and what rules every other cluster out."""
        self.who(asked, "read")
        name = requests.name_in(asked.path_params, "job")
        with self.live.state() as state:
            record = state.jobs.get(name)
            if record is None:
                raise Problem(404, "no-job", f"there is no job {name}, or it has ended")
            if not record.waits and not record.held:
                raise Problem(
                    409, "not-waiting", f"job {name} is {record.state.value}; only a waiting one is explained"
                )
            found = {**views.answer_object(state.fleet, record.job), **self._start(record, state)}
        return json_of({**found, "why": views.why_waiting(self.store.of_job(name))})

    @Endpoint("GET", "/v1/jobs/{job:path}", "A job; of one that has ended, its events")
    def job(self, asked: Asked) -> Response:
        """Answer with one job; of one that has ended, all of its events."""
        self.who(asked, "read")
        name = requests.name_in(asked.path_params, "job")
        with self.live.state() as state:
            record = state.jobs.get(name)
            found = None
            if record is not None:
                said = {**Why(state).of(record), "place": places(state, (name,), self.live.promote_ms).get(name)}
                found = views.job_object(record, {**said, **self._start(record, state)})
        if found is None:
            found = views.ended_object(self.store.of_job(name))
        if found is None:
            raise Problem(404, "no-job", f"there is no job {name}")
        return json_of(found)

    def _start(self, record: JobRecord, state: State) -> dict[str, Any]:
        """Times, for a client, when a job that waits starts, and what would make it sooner."""
        if not record.waits:
            return {}
        fits = {"fits_by_ms": fits_by_ms(record, state), "sooner": sooner(record, state)}
        return {**self.live.starts.of_jobs([record], state)[0], **fits}

    @Endpoint("DELETE", "/v1/jobs/{job:path}", "Cancel a job", done=(202,), key=True)
    async def cancel(self, asked: Asked) -> Response:
        """Cancel a job, which is wanted no more."""
        who = self.who(asked, "submit")
        name = requests.name_in(asked.path_params, "job")

        def prepare(state: State) -> tuple[tuple[ev.Event, ...], Respond]:
            record = state.jobs.get(name)
            if record is None:
                raise Problem(404, "no-job", f"there is no job {name}, or it has ended")
            if who.tenant not in ("", record.spec.tenant) and "operate" not in who.scopes:
                raise Problem(403, "tenant", f"job {name} is not of tenant {who.tenant}")
            return (ev.Cancelled(name),), lambda _: (202, json.dumps({"job": name, "result": "cancelled"}))

        return await self.submitted(asked, who, b"", prepare=prepare)

    @Endpoint("POST", "/v1/whatif", "Where a job could start if it came now; nothing changes", requests.JobRequest)
    async def what_if(self, asked: Asked) -> Response:
        """Explain where a job could start if it came now; nothing changes."""
        self.who(asked, "read")
        one = requests.fields_in(await self.body(asked), requests.JobRequest)
        job = job_of(f"what if: {one['job']}", requests.spec_of(one))

        def look() -> dict[str, Any]:
            with self.live.state() as state:
                return views.answer_object(state.fleet, job)

        return json_of({**await asyncio.to_thread(look), "job": one["job"]})

    # --- fleet ---

    @Endpoint("GET", "/v1/fleet", "Servers and what is used of them, quotas, replicas")
    def fleet(self, asked: Asked) -> Response:
        """Answer with the servers and what is used of them, quotas, replicas."""
        who = self.who(asked, "read")
        with self.live.state() as state:
            return json_of(views.fleet_object(state, who.sees))

    @Endpoint(
        "PUT", "/v1/servers/{server:path}", "A server comes, breaks or comes back", requests.ServerRequest, key=True
    )
    async def server(self, asked: Asked) -> Response:
        """Take in that a server comes, breaks or comes back."""
        who = self.who(asked, "operate")
        name, body = requests.name_in(asked.path_params, "server"), await self.body(asked)
        one = requests.fields_in(body, requests.ServerRequest)

        def prepare(state: State) -> tuple[tuple[ev.Event, ...], Respond]:
            event, jobs = server_event(state, name, one)
            return (event,), _done({"server": name, "state": one["state"], **({"waits_for": jobs} if jobs else {})})

        return await self.submitted(asked, who, body, prepare=prepare)

    @Endpoint(
        "GET", "/v1/overview", "How many jobs wait and hold servers, tenants, and what was in use over the last day"
    )
    def overview(self, asked: Asked) -> Response:
        """Answer with the numbers of jobs that wait and hold servers, tenants, the longest wait of each size of jobs
        and its reason, and what was in use over the last day.
        """
        who = self.who(asked, "read")
        with self.live.state() as state:
            found, why = views.overview_object(state, who.sees), Why(state)
            longest = [
                {"gpus_up_to": size, "job": one.name, "since_ms": one.submitted_ms, "why": why.of(one)["why"]}
                for size, one in waiting_longest(state).items()
            ]
        return json_of({**found, "longest": longest, "open": self.access.open, "use": list(self.live.use)})

    @Endpoint(
        "POST",
        "/v1/drains",
        "Servers take no job more, or take jobs again",
        requests.DrainRequest,
        errors=(404,),
        key=True,
    )
    async def drain(self, asked: Asked) -> Response:
        """Close servers, which take no job more, or open them again."""
        who = self.who(asked, "operate")
        body = await self.body(asked)
        one = requests.fields_in(body, requests.DrainRequest)

        def prepare(state: State) -> tuple[tuple[ev.Event, ...], Respond]:
            events, answer = drain_events(state, one, state.now_ms)
            return events, _done(answer)

        return await self.submitted(asked, who, body, prepare=prepare)

    @Endpoint("GET", "/v1/drains", "Servers that take no job, and what they still hold")
    def drains(self, asked: Asked) -> Response:
        """Answer with the servers that take no job, and what they still hold."""
        self.who(asked, "read")
        with self.live.state() as state:
            found = [
                {"server": name, "stop_ms": stop_ms, "waits_for": jobs_on(state, (name,))}
                for name, stop_ms in state.inventory.closed.items()
            ]
        return json_of({"servers": found})

    @Endpoint("PUT", "/v1/quotas/{tenant:path}", "GPUs of a tenant", requests.QuotaRequest, key=True)
    async def quota(self, asked: Asked) -> Response:
        """Set the quota of a tenant, or of a group of tenants, in GPUs."""
        who = self.who(asked, "operate")
        name, body = requests.name_in(asked.path_params, "tenant"), await self.body(asked)
        one = requests.fields_in(body, requests.QuotaRequest)
        columns = (requests.QUOTA, requests.BORROWING, requests.LENDING)
        mgpu, borrowing, lending = (requests.base_units(column, one[column.name]) for column in columns)
        event = ev.QuotaSet(name, mgpu, one["gpu_type"], borrowing, lending, one["parent"])

        def prepare(state: State) -> tuple[tuple[ev.Event, ...], Respond]:
            try:
                with state.fleet.trial():
                    state.set_quota(event)
            except UsageError as error:
                raise Problem(422, "fault", str(error)) from None
            return (event,), _done({"tenant": name, **one})

        return await self.submitted(asked, who, body, prepare=prepare)

    @Endpoint("GET", "/v1/quotas", "Quotas of tenants and groups, what is used of them and what is left")
    def quotas(self, asked: Asked) -> Response:
        """Quotas of tenants and groups, what is used of them, and what is left, borrowed amounts included; a client of
        one tenant that does not operate sees its own and those of the groups above it.
        """
        who = self.who(asked, "read")
        with self.live.state() as state:
            return json_of({"at_ms": state.now_ms, "quotas": views.quota_objects(state.fleet, who.sees)})

    @Endpoint(
        "GET",
        "/v1/usage",
        "GPU-hours asked, held, idle and lost by tenant and month, and what they cost",
        query={"month": "state", "tenant": "state", "prices": "prices", "skip": "event", "limit": "limit"},
    )
    def used(self, asked: Asked) -> Response:
        """Usage by tenant and month; a client of one tenant that does not operate sees that of its own."""
        who = self.who(asked, "read")
        query = asked.query_params
        limit = number_of(asked, "limit", 100, 1, requests.MOST_LIMIT)
        skip = number_of(asked, "skip", 0, 0, requests.MOST_NUMBER)
        prices = None if (text := query.get("prices")) is None else requests.prices_in(text)
        rows, covers = self.usage.read(prices)
        wanted = [
            row
            for row in rows
            if row.month == query.get("month", row.month)
            and row.tenant == query.get("tenant", row.tenant)
            and who.sees in (None, row.tenant)
        ]
        listed = [views.usage_object(row) for row in wanted[skip : skip + limit]]
        return json_of({**covers, "matching": len(wanted), "usage": listed})

    @Endpoint("PUT", "/v1/regions/{region:path}", "What a region can store", requests.RegionRequest, key=True)
    async def region(self, asked: Asked) -> Response:
        """Set what a region can store."""
        who = self.who(asked, "operate")
        name, body = requests.name_in(asked.path_params, "region"), await self.body(asked)
        storage_tb = requests.fields_in(body, requests.RegionRequest)["storage_tb"]

        def prepare(state: State) -> tuple[tuple[ev.Event, ...], Respond]:
            if name not in state.inventory.supply_mgpu:
                raise Problem(404, "no-region", f"there is no region {name}")
            event = ev.StorageSet(name, requests.STORAGE.in_base_units(storage_tb))
            return (event,), _done({"region": name, "storage_tb": storage_tb})

        return await self.submitted(asked, who, body, prepare=prepare)

    @Endpoint("PUT", "/v1/datasets/{dataset:path}", "A dataset and where it is", requests.DatasetRequest, key=True)
    async def dataset(self, asked: Asked) -> Response:
        """Set a dataset, its size, and where it is."""
        who = self.who(asked, "operate")
        name, body = requests.name_in(asked.path_params, "dataset"), await self.body(asked)
        one = requests.fields_in(body, requests.DatasetRequest)
        answer = _done({"dataset": name, "regions": list(one["regions"])})
        return await self.submitted(asked, who, body, prepare=lambda state: (dataset_events(state, name, one), answer))

    # --- log ---

    @Endpoint("GET", "/v1/events", "Events of the log", query={"after": "event", "limit": "limit"})
    def events(self, asked: Asked) -> Response:
        """Answer with events of the log after one of that number."""
        self.who(asked, "read")
        limit = number_of(asked, "limit", 100, 1, requests.MOST_LIMIT)
        last = self.store.last_seq()
        after = number_of(asked, "after", max(0, last - limit), 0, last)
        found = [views.event_object(stored) for stored in self.store.read(after, min(last, after + limit))]
        return json_of({"events": found, "last": last})

    @Endpoint("GET", "/v1/events/stream", "Events as they come (server-sent events)")
    async def stream(self, asked: Asked) -> Response:
        """Stream events of the log as they come (server-sent events); ``Last-Event-ID`` is the number of the last one
        that was seen.
        """
        who = self.who(asked, "read")
        last = self.store.last_seq()
        return self.streamed(who, self._lines(min(last, last_seen(asked, last))))

    async def _lines(self, after: int) -> AsyncIterator[str]:
        """Lines of a stream of events: those of the log after a number, and new ones as they come."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        end = self.live.on_stored(lambda _: loop.call_soon_threadsafe(news.set))
        try:
            while not self.live.problem:
                news.clear()
                last = await asyncio.to_thread(self.store.last_seq)
                while after < last:
                    upto = min(last, after + requests.MOST_LIMIT)
                    for stored in await asyncio.to_thread(self._some, after, upto):
                        yield message(views.event_object(stored), stored.seq)
                    after = upto
                if not await self.streams.pause(news):
                    yield ALIVE
        finally:
            end()

    def _some(self, after: int, upto: int) -> list[ev.Stored]:
        """Some events of the log for a client, by number."""
        return list(self.store.read(after, upto))


def _done(found: dict[str, Any]) -> Respond:
    """Responder to a change that answers with an object, or with 409 if something else has changed meanwhile."""

    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        if UNKNOWN in verdicts:
            return 409, Problem(409, "changed", "it has changed while this was asked; look, and ask again").body()
        return 200, json.dumps(found)

    return respond


async def _jobs_in(body: bytes) -> tuple[list[tuple[str, JobSpec]], bool]:
    """The jobs of a body, and whether it was a list; others are answered while a long list is read. Raises Problem."""
    return requests.jobs_in(body) if len(body) < LONG_BYTES else await asyncio.to_thread(requests.jobs_in, body)


def _of_one(name: str) -> Respond:
    """Responder to the submission of one job: 201, or 409 where its name is taken."""

    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        if verdicts[0] == EXISTS:
            return 409, Problem(409, "job-exists", f"there is or was a job {name}").body()
        return 201, json.dumps({"job": name, "result": ACCEPTED})

    return respond


def _of_list(names: Sequence[str]) -> Callable[[Sequence[str]], tuple[int, str]]:
    """Responder to the submission of a list of jobs: a result for each."""

    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        results = [{"job": name, "result": verdict} for name, verdict in zip(names, verdicts)]
        return (201 if set(verdicts) <= {ACCEPTED} else 207), json.dumps({"jobs": results})

    return respond
