"""What a backend is, and what backends share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from mast_opt.mip import Mip
from mast_opt.result import Event, SolveParams, SolveResult

T = TypeVar("T")


@runtime_checkable
class Backend(Protocol):
    """A MIP solver. Implementations live one to a file and import their library inside ``solve``."""

    name: str
    package: str
    """What ``pip install`` needs, shown when the library is missing."""

    def version(self) -> str:
        """The solver's version. Raises BackendUnavailable if it cannot be used here."""
        ...

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        """Minimise ``mip``.

        Raises:
            BackendUnavailable: the library or its licence is missing.
            SizeLimitExceeded: the licence does not cover a program of this size.
            UnsupportedOption: a field of ``params`` cannot be honoured.
            BackendError: the library failed; carries its own words.
        """
        ...


class Progress:
    """Turns a solver's callbacks into events: only improvements, never a worse incumbent or bound."""

    def __init__(self, on_event: Callable[[Event], None] | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._on_event = on_event
        self._clock = clock
        self._began = clock()
        self.incumbent: float | None = None
        self.bound: float | None = None

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._began

    def update(self, incumbent: float | None = None, bound: float | None = None) -> None:
        """Report what is known now; None means unknown. Emits an event if either improved."""
        better = incumbent is not None and (self.incumbent is None or incumbent < self.incumbent)
        tighter = bound is not None and (self.bound is None or bound > self.bound)
        if better:
            self.incumbent = incumbent
        if tighter:
            self.bound = bound
        if (better or tighter) and self._on_event is not None:
            self._on_event(Event(self.elapsed_s, self.incumbent, self.bound))


def interruptibly(run: Callable[[], T], cancel: threading.Event) -> T:
    """Call ``run`` so that Ctrl-C sets ``cancel`` instead of killing it, then return its result.

    In the main thread ``run`` moves to a worker thread, because a solver that stays inside compiled code
    would keep Python from seeing the signal. Elsewhere it is called directly.
    """
    if threading.current_thread() is not threading.main_thread():
        return run()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(run())
        except BaseException as error:
            failure.append(error)

    worker = threading.Thread(target=work, name="mast-opt-solver", daemon=True)
    worker.start()
    while worker.is_alive():
        try:
            worker.join(0.05)
        except KeyboardInterrupt:
            cancel.set()
    if failure:
        raise failure[0]
    return outcome[0]
