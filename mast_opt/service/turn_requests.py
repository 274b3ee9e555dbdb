"""Requests to a live loop: events that a client wants in the log, and the answer that the client waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from mast_opt.core.errors import MastOptError
from mast_opt.loop import events as ev

ACCEPTED, EXISTS, UNKNOWN = "accepted", "exists", "unknown"
"""Verdicts on an event of a request."""


@dataclass(frozen=True, slots=True)
class Key:
    """The client's own name for a request, so that it can be repeated."""

    principal: str
    key: str
    digest: str


Respond = Callable[[Sequence[str]], tuple[int, str]]
"""Verdicts on the events of a request → status and body of the answer."""


@dataclass(slots=True)
class Request:
    """Events that a client wants in the log."""

    events: tuple[ev.Event, ...]
    respond: Respond
    key: Key | None = None
    done: Future[tuple[int, str]] = field(default_factory=Future)


class Unavailable(MastOptError):
    """The loop does not take anything in now."""

    code = "unavailable"


class KeyReused(MastOptError):
    """The same key came with another request before."""

    code = "key-reused"


def copier(target: Future[tuple[int, str]]) -> Callable[[Future[tuple[int, str]]], None]:
    """A callback that gives the result of a future to another one."""

    def copy(source: Future[tuple[int, str]]) -> None:
        error = source.exception()
        if error is not None:
            target.set_exception(error)
        else:
            target.set_result(source.result())

    return copy


def answer_all(answered: Sequence[tuple[Request, tuple[int, str]]]) -> None:
    """Answer the clients that still wait."""
    for request, answer in answered:
        if not request.done.done():
            request.done.set_result(answer)


def fail_all(requests: Iterable[Request], error: Exception) -> None:
    """Give the clients that still wait an error."""
    for request in requests:
        if not request.done.done():
            request.done.set_exception(error)
