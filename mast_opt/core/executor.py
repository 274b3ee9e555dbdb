"""Calls made elsewhere: in this thread, in processes of this machine, or on a Ray cluster.

``Executor.run`` waits for its answer, so calls at the same time are made from as many threads (``in_parallel``). Ray is
an extra and imported only here.
"""

import logging
import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

from mast_opt.core.errors import BackendUnavailable, UsageError

GivenT = TypeVar("GivenT")
FoundT = TypeVar("FoundT")
GivenInT = TypeVar("GivenInT", contravariant=True)
FoundOutT = TypeVar("FoundOutT", covariant=True)

THREADS, PROCESSES, RAY = "threads", "processes", "ray"
EXECUTORS = (THREADS, PROCESSES, RAY)

POLL_S = 0.05
"""Seconds between two checks of whether a running call should stop."""
PATIENCE_S = 10.0
"""Seconds that a process has to end its call after it is asked to stop; then the process exits."""
RAY_PATIENCE_S = 10.0
"""Seconds that a Ray task has to end its call after it is asked to stop."""

_ADDRESS = re.compile(r"auto|(ray://)?[^\s/:]+:[0-9]{1,5}")

_cancel = threading.Event()
"""Event of a worker process, set when its call should stop."""


class WorkerLost(Exception):
    """Raised when the worker of a call ended before the call did; whether the call was the cause is not known."""


class Call(Protocol[GivenInT, FoundOutT]):
    """A function at the top level of a module; only its name is sent."""

    def __call__(self, given: GivenInT, cancel: threading.Event, /) -> FoundOutT:
        """Return the result of a call; return soon after ``cancel`` is set."""


class Executor(Protocol):
    """Interface of an executor: a place where calls are made."""

    size: int
    """Number of calls at a time."""

    def run(self, call: Call[GivenT, FoundT], given: GivenT, stopped: Callable[[], bool]) -> FoundT:
        """Make a call in the executor, and return its result.

        Args:
            call: a function of a module.
            given: a picklable argument; the result must be picklable too.
            stopped: should the call end? Asked again and again.

        Raises:
            WorkerLost: there is no answer; the call may be made again.
        """


@contextmanager
def executor(name: str, size: int, cancel: threading.Event, address: str = "auto") -> Iterator[Executor]:
    """Executor of that name; calls that still run at the end of the block are stopped.

    Args:
        name: one of ``EXECUTORS``.
        size: number of calls at a time; with Ray, as far as the cluster has processors.
        cancel: what calls in threads are given.
        address: of the Ray cluster.

    Raises:
        BackendUnavailable: Ray is not installed, or there is no cluster at the address.
    """
    if name == PROCESSES:
        processes = _Processes(size)
        try:
            yield processes
        finally:
            processes.close()
    else:
        yield _Ray(address) if name == RAY else _Threads(size, cancel)


def check_address(ray: str) -> None:
    """Raise UsageError if the text is not an address of a Ray cluster."""
    if not _ADDRESS.fullmatch(ray):
        raise UsageError(f"ray is {ray!r}; expected auto, HOST:PORT or ray://HOST:PORT")


def connected_ray(address: str) -> Any:  # noqa: ANN401 - a module without types
    """The module ``ray``, connected to a cluster: its present cluster, or else the one at the address.

    Args:
        address: as Ray knows it: ``auto`` for the cluster that this machine belongs to, ``HOST:PORT``, ``ray://…``.

    Raises:
        BackendUnavailable: Ray is not installed, or there is no cluster at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise BackendUnavailable("Ray is not installed; install it with: pip install 'mast-opt[ray]'") from error
    try:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise BackendUnavailable(f"no Ray cluster answers at {address!r} ({error}); start one first") from error
    return ray


class _Threads:
    def __init__(self, size: int, cancel: threading.Event) -> None:
        self.size, self._cancel = size, cancel

    def run(self, call: Call[GivenT, FoundT], given: GivenT, stopped: Callable[[], bool]) -> FoundT:
        """Run a call in this thread."""
        return call(given, self._cancel)


class _Processes:
    """Pool of processes that begin from nothing, since threads do not survive a fork.

    Each holds the reading end of a pipe of which only this process has the other: it ends when ``stop`` closes it,
    and when this process ends in whatever way.
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
        """Run a call in a worker process."""
        if stopped():
            raise WorkerLost("stopped before it began")
        pool = self._pool
        try:
            with _without_interrupts():
                future = pool.submit(_in_worker, call, given)
            while not wait_for([future], POLL_S).done:
                if stopped():
                    self.stop()
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

    def stop(self) -> None:
        """Tell every process to stop what it does."""
        with self._lock:
            self._writer.close()

    def close(self) -> None:
        """End the worker processes."""
        self.stop()
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


class _Ray:
    def __init__(self, address: str) -> None:
        self._ray = connected_ray(address)
        self.size = max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, call: Call[GivenT, FoundT], given: GivenT, stopped: Callable[[], bool]) -> FoundT:
        """Run a call as a task of Ray."""
        ray = self._ray
        if stopped():
            raise WorkerLost("stopped before it began")
        try:
            task = ray.remote(_in_task).options(num_cpus=1, max_retries=0).remote(call, given)
            left_s = RAY_PATIENCE_S
            while not ray.wait([task], timeout=POLL_S)[0]:
                if not stopped():
                    continue
                if left_s == RAY_PATIENCE_S:
                    ray.cancel(task, force=False)
                left_s -= POLL_S
                if left_s <= 0:
                    ray.cancel(task, force=True)
                    raise WorkerLost("stopped")
            found: FoundT = ray.get(task)
        except ray.exceptions.RayError as error:
            raise WorkerLost(str(error).strip().splitlines()[-1]) from error
        return found


def _in_task(call: Call[GivenT, FoundT], given: GivenT) -> FoundT:
    """Run the call in a thread of its own: cancelling a task interrupts its main thread, which says so to the call."""
    cancel, found = threading.Event(), Future[FoundT]()

    def made() -> None:
        try:
            found.set_result(call(given, cancel))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=made, daemon=True).start()
    while True:
        try:
            return found.result()
        except KeyboardInterrupt:
            cancel.set()
