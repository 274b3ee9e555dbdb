"""Requests to a live loop: events that a client wants in the log, and the answer that the client waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from mast_opt.core.errors import MastOptError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.reports import fits
from mast_opt.live.loop.state import State
from mast_opt.live.store.sql_store import SqlStore

ACCEPTED, EXISTS, UNKNOWN = "accepted", "exists", "unknown"
"""Verdicts on an event of a request."""


@dataclass(frozen=True, slots=True)
class Key:
    """Key that the client gives a request, so that it can be repeated."""

    principal: str
    key: str
    digest: str


Respond = Callable[[Sequence[str]], tuple[int, str]]
"""Status and body of the answer for the verdicts on the events of a request."""


@dataclass(slots=True)
class Request:
    """Events that a client wants in the log."""

    events: tuple[ev.Event, ...]
    respond: Respond
    key: Key | None = None
    done: Future[tuple[int, str]] = field(default_factory=Future)


class Unavailable(MastOptError):
    """Raised while the loop takes nothing in."""

    code = "unavailable"


class KeyReused(MastOptError):
    """Raised for a key that came with another request before."""

    code = "key-reused"


def copier(target: Future[tuple[int, str]]) -> Callable[[Future[tuple[int, str]]], None]:
    """Callback that copies the result of a future to another one."""

    def copy(source: Future[tuple[int, str]]) -> None:
        error = source.exception()
        if error is not None:
            target.set_exception(error)
        else:
            target.set_result(source.result())

    return copy


def answer_all(answered: Sequence[tuple[Request, tuple[int, str]]]) -> None:
    """Answer the clients of requests that still wait."""
    for request, answer in answered:
        if not request.done.done():
            request.done.set_result(answer)


def fail_all(requests: Iterable[Request], error: Exception) -> None:
    """Give the clients that still wait an error."""
    for request in requests:
        if not request.done.done():
            request.done.set_exception(error)


def known_keys(
    store: SqlStore, taken: Sequence[Request]
) -> tuple[list[tuple[Request, tuple[int, str]]], list[Request]]:
    """Split requests into those that were answered before, with their answers, and the others, each key once."""
    answered, fresh, keys = [], [], dict[tuple[str, str], Request]()
    for request in taken:
        key = request.key
        if key is None:
            fresh.append(request)
            continue
        twin = keys.setdefault((key.principal, key.key), request)
        known = store.answer(key.principal, key.key) if twin is request else None
        digest = known.digest if known is not None else twin.key.digest if twin.key is not None else ""
        if digest != key.digest:
            request.done.set_exception(KeyReused(f"the key {key.key} came with another request before"))
        elif known is not None:
            answered.append((request, (known.status, known.body)))
        elif twin is request:
            fresh.append(request)
        else:
            twin.done.add_done_callback(copier(request.done))
    return answered, fresh


def verdicts_on(state: State, store: SqlStore, requests: Sequence[Request]) -> tuple[list[list[str]], list[ev.Event]]:
    """Verdict on every event of the requests, and the events that are taken in."""
    asked = [
        event.job for request in requests for event in request.events
        if isinstance(event, ev.Submitted) and event.job not in state.jobs
    ]  # fmt: skip
    known = store.known_jobs(asked)
    verdicts: list[list[str]] = []
    inbox: list[ev.Event] = []
    awaited = {path for path in state.plans.paths() if state.plans.awaited(path)}
    for request in requests:
        verdicts.append([])
        for event in request.events:
            verdict = ACCEPTED
            if isinstance(event, ev.Submitted):
                verdict = EXISTS if event.job in state.jobs or event.job in known else ACCEPTED
                known.add(event.job)
            elif isinstance(event, ev.Cancelled):
                verdict = ACCEPTED if event.job in state.jobs else UNKNOWN
            elif isinstance(event, ev.SolveAsked):
                verdict = EXISTS if event.path in awaited else ACCEPTED
                awaited.add(event.path)
            elif isinstance(event, (ev.CapacitySet, ev.DatasetCreated)):
                verdict = ACCEPTED if fits(state, event) else UNKNOWN
            verdicts[-1].append(verdict)
            if verdict == ACCEPTED:
                inbox.append(event)
    return verdicts, inbox
