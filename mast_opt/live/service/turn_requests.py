"""Requests to a live loop: events that a client wants in the log, and the answer that the client waits for."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from mast_opt.core.errors import MastOptError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.policy import not_for
from mast_opt.live.loop.reports import fits
from mast_opt.live.loop.state import State
from mast_opt.live.service.problems import Problem
from mast_opt.live.store.records import Answer
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
Prepare = Callable[[State], tuple[tuple[ev.Event, ...], Respond]]
"""Events and answer of a request, given the state in its turn. Raises Problem where it is refused."""


@dataclass(slots=True)
class Request:
    """Events that a client wants in the log."""

    events: tuple[ev.Event, ...]
    respond: Respond
    key: Key | None = None
    by: str = ""
    """Client, its address and the name of the request, as the log has them."""
    prepare: Prepare | None = None
    """Replaces ``events`` and ``respond`` where they depend on the state."""
    alone: bool = False
    """Whether it gets a turn of its own: the one with others has failed."""
    done: Future[tuple[int, str]] = field(default_factory=Future)


class Unavailable(MastOptError):
    """Raised while the loop takes nothing in."""

    code = "unavailable"


class KeyReused(MastOptError):
    """Raised for a key that came with another request before."""

    code = "key-reused"


def copier(target: Future[tuple[int, str]]) -> Callable[[Future[tuple[int, str]]], None]:
    """Callback that copies the answer of a request to another future."""

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
    answered, fresh, keys = [], [], dict[tuple[str, str], tuple[Request, str, Answer | None]]()
    for request in taken:
        key = request.key
        if key is None:
            fresh.append(request)
            continue
        if (key.principal, key.key) not in keys:
            known = store.answer(key.principal, key.key)
            keys[key.principal, key.key] = request, key.digest if known is None else known.digest, known
        twin, digest, known = keys[key.principal, key.key]
        if digest != key.digest:
            request.done.set_exception(KeyReused(f"the key {key.key} came with another request before"))
        elif known is not None:
            answered.append((request, (known.status, known.body)))
        elif twin is request:
            fresh.append(request)
        else:
            twin.done.add_done_callback(copier(request.done))
    return answered, fresh


class Intake:
    """Requests of one turn, each decided on as those before it have left the state; so one that does not fit any more
    is refused, and hurts no other.

    Args:
        happened: reports of the host on a server that a request takes out of service or puts into it.
        most: jobs that may not have ended, in all and of one tenant.
        low: whether too little memory is left for more of them.
    """

    def __init__(
        self,
        engine: Engine,
        store: SqlStore,
        requests: Sequence[Request],
        happened: Callable[[ev.Event], Sequence[ev.Event]],
        most: tuple[int, int],
        *,
        low: bool = False,
    ) -> None:
        self._state, self._policy, self._low = engine.state, engine.policy, low
        self._requests, self._happened, self._most = requests, happened, most
        self.answers: list[tuple[Request, int, str]] = []
        self.refused: list[tuple[Request, Exception]] = []
        self.reports: list[ev.Event] = []
        """Reports of the host that the requests have led to."""
        named = (one.job for request in requests for one in request.events if isinstance(one, ev.Submitted))
        self._known = store.known_jobs([name for name in named if name not in self._state.jobs])

    def events(self) -> Iterator[ev.Event | ev.Asked]:
        """Events of the requests that a turn takes in, in order."""
        for request in self._requests:
            events, respond = request.events, request.respond
            if request.prepare is not None:
                try:
                    events, respond = request.prepare(self._state)
                except (Problem, MastOptError) as error:
                    self.refused.append((request, error))
                    continue
            problem = self._problem(events)
            if problem is not None:
                self.refused.append((request, problem))
                continue
            verdicts: list[str] = []
            for event in events:
                verdicts.append(self._verdict(event))
                if verdicts[-1] != ACCEPTED:
                    continue
                yield ev.Asked(event, request.by)
                if isinstance(event, (ev.ServerDown, ev.ServerUp)):
                    reports = self._happened(event)
                    self.reports += reports
                    yield from reports
            self.answers.append((request, *respond(verdicts)))

    def _verdict(self, event: ev.Event) -> str:
        """Verdict on a requested event as the state is now."""
        state = self._state
        if isinstance(event, ev.Submitted):
            return EXISTS if event.job in state.jobs or event.job in self._known else self._remembered(event.job)
        if isinstance(event, ev.SolveAsked):
            return EXISTS if state.plans.awaited(event.path) else ACCEPTED
        if isinstance(event, (ev.Cancelled, ev.CapacitySet, ev.DatasetCreated)):
            return ACCEPTED if fits(state, event) else UNKNOWN
        return ACCEPTED

    def _problem(self, events: Sequence[ev.Event]) -> Problem | None:
        """Reason why the jobs of a request are not taken in; None if they are."""
        submitted = [one for one in events if isinstance(one, ev.Submitted)]
        if not submitted:
            return None
        for one in submitted:
            if words := not_for(self._policy, one.job, one.spec):
                return Problem(422, "parts", words)
        coming = Counter(one.spec.tenant for one in submitted)
        state, retry = self._state, {"Retry-After": "30"}
        if self._low:
            return Problem(503, "memory", "too little memory is left for more jobs", headers=retry)
        if len(state.jobs) + coming.total() > self._most[0]:
            return Problem(
                429, "full", f"{len(state.jobs):,} jobs have not ended; {self._most[0]:,} may", headers=retry
            )
        for tenant, count in coming.items():
            if state.jobs_of.get(tenant, 0) + count > self._most[1]:
                words = f"{state.jobs_of[tenant]:,} jobs of tenant {tenant!r} have not ended; {self._most[1]:,} may"
                return Problem(429, "full", words, headers=retry)
        return None

    def _remembered(self, job: str) -> str:
        """Take in a requested job; it may end within the turn."""
        self._known.add(job)
        return ACCEPTED
