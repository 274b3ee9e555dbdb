"""Time accounting of a solve: where its time goes, and how much of it is left."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

COMPILE = "compile"
"""The phase that the time limit does not cover: loading libraries, compiling kernels."""


class Clock:
    """Adds up seconds by phase under one time limit, which does not cover the phase ``compile``."""

    def __init__(self, time_limit_s: float | None) -> None:
        self._began = time.perf_counter()
        self._compiling_since: float | None = None
        self._limit = math.inf if time_limit_s is None else time_limit_s
        self.spent_s: dict[str, float] = {COMPILE: 0.0, "formulate": 0.0, "solve": 0.0, "verify": 0.0}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A context whose time is added to that phase of the solve."""
        began = time.perf_counter()
        if name == COMPILE:
            self._compiling_since = began
        try:
            yield
        finally:
            self._compiling_since = None
            self.spent_s[name] += time.perf_counter() - began

    @property
    def elapsed_s(self) -> float:
        """Seconds since the clock began, without those of the phase ``compile``."""
        now = time.perf_counter() if self._compiling_since is None else self._compiling_since
        return now - self._began - self.spent_s[COMPILE]

    @property
    def remaining_s(self) -> float:
        """Seconds of the time limit that a solve has left, not below 0."""
        return max(0.0, self._limit - self.elapsed_s)

    def budget_s(self, share: float = 1.0, kept_s: float = 0.0) -> float | None:
        """A share of what is left, less what is kept for later, as a time limit for a solver; None without a limit, and
        never 0."""
        return None if math.isinf(self._limit) else max(0.01, (self.remaining_s - kept_s) * share)
