"""One thread that writes: appends that come while it commits are committed together next."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.records import Batch

MOST_TOGETHER = 4096
"""Batches of one commit."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Batch with the epoch of its writer and the future of its waiter."""

    epoch: int
    batch: Batch
    done: Future[int]


class GroupWriter:
    """Hands batches to ``commit``, several at a time, in the order in which they came.

    Args:
        commit: writes all of them and fills in their futures. What it raises goes to every one that is not filled in.
    """

    def __init__(self, commit: Callable[[Sequence[Waiting]], None]) -> None:
        self._commit = commit
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._closed = threading.Lock()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="mast-opt store", daemon=True)
        self._thread.start()

    def put(self, epoch: int, batch: Batch) -> Future[int]:
        """A future of the number of the last event, filled in once the batch is durable."""
        waiting = Waiting(epoch, batch, Future())
        with self._closed:
            if not self._open:
                raise StoreError("the store is closed")
            self._queue.put(waiting)
        return waiting.done

    def close(self) -> None:
        """Write the batches that have come, and end the writing thread."""
        with self._closed:
            if not self._open:
                return
            self._open = False
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        """Body of the thread that writes groups of batches to the store until it is closed."""
        ends = False
        while not ends:
            found = self._queue.get()
            group: list[Waiting] = []
            while True:
                if found is None:
                    ends = True
                    break
                group.append(found)
                if len(group) == MOST_TOGETHER or self._queue.empty():
                    break
                found = self._queue.get()
            if group:
                self._write(group)

    def _write(self, group: Sequence[Waiting]) -> None:
        """Commit a group of batches to the store; a failure goes to all of its futures."""
        try:
            self._commit(group)
        except BaseException as error:
            for waiting in group:
                if not waiting.done.done():
                    waiting.done.set_exception(error)
