"""Calls made in processes of their own, which leave the interpreter of this one free.

``WorkerProcesses.run`` waits for its answer, so calls at the same time are made from as many threads (``in_parallel``).
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Protocol, Self, TypeVar

GivenT = TypeVar("GivenT")
FoundT = TypeVar("FoundT")
GivenInT = TypeVar("GivenInT", contravariant=True)
FoundOutT = TypeVar("FoundOutT", covariant=True)

POLL_S = 0.05
"""Seconds between two checks of whether a running call should stop."""
PATIENCE_S = 10.0
"""Seconds that a process has to end its call after it is asked to stop; then the process exits."""

_cancel = threading.Event()
"""Event of a worker process, set when its call should stop."""


class WorkerLost(Exception):
    """Raised when the worker of a call ended before the call did; whether the call was the cause is not known."""


class Call(Protocol[GivenInT, FoundOutT]):
    """A function at the top level of a module; only its name is sent."""

    def __call__(self, given: GivenInT, cancel: threading.Event, /) -> FoundOutT:
        """Return the result of a call; return soon after ``cancel`` is set."""


class WorkerProcesses:
    """Pool of processes that begin from nothing, since threads do not survive a fork.

    Each holds the reading end of a pipe of which only this process has the other: it ends when ``stop`` closes it,
    and when this process ends in whatever way. Calls that still run at the end of a ``with`` block are stopped.
    """

    def __init__(self, size: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self.size, self._lock = size, threading.Lock()
        self._reader, self._writer = self._context.Pipe(duplex=False)
        self._pool = self._begun()

    def _begun(self) -> ProcessPoolExecutor:
        """A pool of processes that is ready for calls."""
        return ProcessPoolExecutor(self.size, self._context, _begin_worker, (self._reader, PATIENCE_S))

    def run(self, call: Call[GivenT, FoundT], given: GivenT, stopped: Callable[[], bool]) -> FoundT:
        """Make a call in a worker process, and return its result.

        Args:
            call: a function of a module.
            given: a picklable argument; the result must be picklable too.
            stopped: should the call end? Asked again and again.

        Raises:
            WorkerLost: there is no answer; the call may be made again.
        """
        if stopped():
            raise WorkerLost("stopped before it began")
        pool = self._pool
        try:
            with _without_interrupts():
                future = pool.submit(_in_worker, call, given)
            while not wait_for([future], POLL_S).done:
                if stopped():
                    self._stop()
            found: FoundT = future.result()
        except BrokenExecutor as error:
            self._replace(pool)
            raise WorkerLost(str(error)) from error
        return found

    def _replace(self, pool: ProcessPoolExecutor) -> None:
        """Replace a pool: all of its processes are lost once one of them is."""
        with self._lock:
            if self._pool is pool and not self._writer.closed:
                pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._begun()

    def _stop(self) -> None:
        """Tell every process to stop what it does."""
        with self._lock:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop()
        self._pool.shutdown(cancel_futures=True)
        self._reader.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that begin within the block do not see Ctrl-C before ``_begin_worker`` has said what it does there."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(reader: Connection, patience_s: float) -> None:
    """Ignore Ctrl-C, which is for the parent: it closes the pipe. A handler and not SIG_IGN, which solvers would
    inherit."""
    signal.signal(signal.SIGINT, lambda *_: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with, args=(reader, patience_s), daemon=True).start()


def _end_with(reader: Connection, patience_s: float) -> None:
    reader.poll(None)
    _cancel.set()
    time.sleep(patience_s)
    os._exit(1)


def _in_worker(call: Call[GivenT, FoundT], given: GivenT) -> FoundT:
    """Run a call in a worker process, with the event that cancels it."""
    return call(given, _cancel)
