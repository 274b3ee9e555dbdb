"""Rate limit of a search's expensive steps: what takes long on a large instance is done rarely."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

PARTS = 20.0
"""It takes at most one part in this many of the time."""


class Throttle:
    """Says when something is due again, by how long it took the last time."""

    def __init__(self) -> None:
        self._again_s = 0.0

    @property
    def due(self) -> bool:
        """Whether it may be done now."""
        return time.perf_counter() >= self._again_s

    @contextmanager
    def doing(self) -> Iterator[None]:
        """Measure the block, and let a multiple of its time pass before the next."""
        began = time.perf_counter()
        yield
        ended = time.perf_counter()
        self._again_s = ended + PARTS * (ended - began)
