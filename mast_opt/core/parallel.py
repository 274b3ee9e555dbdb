"""Several calls at a time, in threads: solvers leave Python while they run."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

GivenT = TypeVar("GivenT")
FoundT = TypeVar("FoundT")


def in_parallel(
    call: Callable[[GivenT], FoundT], given: Iterable[GivenT], jobs: int, cancel: threading.Event
) -> list[FoundT]:
    """Results of a call for each, in threads, so many at a time. A failure, or Ctrl-C, sets ``cancel`` instead of
    waiting for the others.
    """
    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = [pool.submit(call, one) for one in given]
            for future in as_completed(futures):
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            cancel.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
