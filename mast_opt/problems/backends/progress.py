"""Watch over a running solver: progress, cancellation, the clock, failures of callbacks."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Event, Limit, SolveParams

INTERVAL_S = 0.05
LENIENCE_S, LENIENCE = 0.25, 0.02
"""Seconds, and share of the limit, by which a solver may overrun its time limit before it is interrupted."""


def overdue(elapsed_s: float, limit_s: float | None) -> bool:
    """Whether a solver overruns its time limit by more than is tolerated."""
    return limit_s is not None and elapsed_s > limit_s + max(LENIENCE_S, LENIENCE * limit_s)


class Progress:
    """The clock of a solve and its events: only improvements, never a worse incumbent or bound."""

    def __init__(
        self,
        on_event: Callable[[Event], None] | None,
        clock: Callable[[], float] = time.perf_counter,
        on_solution: Callable[[float, FloatArray], None] | None = None,
    ) -> None:
        self._on_event = on_event
        self._on_solution = on_solution
        self._clock = clock
        self._began = clock()
        self._lock = threading.RLock()
        self._over = False
        self.incumbent: float | None = None
        self.bound: float | None = None
        self.x: FloatArray | None = None
        """The incumbent's columns; None where there is none, or where only the solver knows them yet."""
        self.answering = False
        """True if the solver has been asked to write its answer, and is able to."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the backend's solve began."""
        return self._clock() - self._began

    def remaining_s(self, time_limit_s: float | None) -> float | None:
        """The rest of a backend's time limit: 0 when it has passed, None when there is none."""
        return None if time_limit_s is None else max(0.0, time_limit_s - self.elapsed_s)

    def update(
        self, incumbent: float | None = None, bound: float | None = None, *, x: FloatArray | None = None
    ) -> None:
        """Report what the backend knows now; None means unknown. Emits an event if either improved."""
        with self._lock:
            if self._over:
                return
            news = False
            if incumbent is not None and (self.incumbent is None or incumbent < self.incumbent):
                self.incumbent, self.x, news = float(incumbent), x, True
                if x is not None and self._on_solution is not None:
                    self._on_solution(self.incumbent, x)
            if bound is not None and (self.bound is None or bound > self.bound):
                self.bound, news = float(bound), True
            if news and self._on_event is not None:
                self._on_event(Event(self.elapsed_s, self.incumbent, self.bound))

    def close(self) -> None:
        """Ignore whatever a solver reports from now on."""
        with self._lock:
            self._over = True


class Relay:
    """Says when a solver should stop, and keeps the exceptions of callbacks from passing through compiled code."""

    def __init__(self, params: SolveParams, progress: Progress) -> None:
        self._params = params
        self._progress = progress
        self._failure: BaseException | None = None

    @property
    def stop(self) -> bool:
        """Whether the solver should stop: cancelled, a callback failed, or it overruns its time limit."""
        return self._failure is not None or self._params.cancel.is_set() or self._overdue

    @property
    def limit(self) -> Limit:
        """The limit to which an interruption of the backend is attributed."""
        return Limit.TIME if self._overdue and not self._params.cancel.is_set() else Limit.INTERRUPT

    def call(self, action: Callable[[], None]) -> None:
        """Do something on the solver's behalf; a failure is kept for ``reraise``."""
        if self._failure is None:
            try:
                action()
            except BaseException as failure:
                self._failure = failure

    def reraise(self) -> None:
        """The first failure of ``call``, raised now that the solver has returned; nothing without one."""
        if self._failure is not None:
            raise self._failure

    @property
    def _overdue(self) -> bool:
        """Whether the solver overruns its time limit by more than is tolerated."""
        return overdue(self._progress.elapsed_s, self._params.time_limit_s)


@contextmanager
def watching(relay: Relay, interrupt: Callable[[], object]) -> Iterator[None]:
    """Call ``interrupt`` from another thread, repeatedly, once ``relay`` says stop while the block runs."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(INTERVAL_S):
            if relay.stop:
                interrupt()

    watcher = threading.Thread(target=watch, name="mast-opt-watcher", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
