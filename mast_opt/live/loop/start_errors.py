"""Errors of what was said about the starts of jobs: promises, and times that were predicted."""

from __future__ import annotations

from collections import deque

from mast_opt.live.loop import events as ev

KINDS = (PROMISED, USUALLY_BY, EXPECTED) = ("promised", "usually_by", "expected")
KEPT = 10_000
"""Errors of each kind that are kept, the last ones."""
MINUTE_MS, HOUR_MS = 60_000, 3_600_000


class StartErrors:
    """Compares the first time of each kind that was said of a job with the time when it was placed."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, tuple[int, int]]] = {}
        """Job → kind → (when it was said, the time that was said)."""
        self._found: dict[str, deque[tuple[int, int]]] = {kind: deque(maxlen=KEPT) for kind in KINDS}
        """Kind → (wait that was predicted, wait that it was), ms."""

    def say(self, kind: str, job: str, now_ms: int, start_ms: int | None) -> None:
        """Note that a waiting job was said to start then; None says nothing."""
        if start_ms is not None:
            self._said.setdefault(job, {}).setdefault(kind, (now_ms, start_ms))

    def take(self, at_ms: int, event: ev.Event) -> None:
        """Take in the next event of a log."""
        if isinstance(event, ev.Promised):
            self.say(PROMISED, event.job, at_ms, event.by_ms)
        elif isinstance(event, (ev.Placed, ev.Cancelled)):
            for kind, (said_ms, start_ms) in self._said.pop(event.job, {}).items():
                if isinstance(event, ev.Placed):
                    self._found[kind].append((start_ms - said_ms, at_ms - said_ms))

    def figures(self) -> dict[str, dict[str, float]]:
        """Figures of each kind that has any: jobs, shares of them that started by then and whose wait was predicted
        within a factor of 2 (a minute apart at least), and percentiles of the hours by which it was too long."""
        found: dict[str, dict[str, float]] = {}
        for kind, pairs in self._found.items():
            if pairs:
                hours = sorted((said - real) / HOUR_MS for said, real in pairs)
                close = [said + MINUTE_MS <= 2 * (real + MINUTE_MS) <= 4 * (said + MINUTE_MS) for said, real in pairs]
                found[kind] = {
                    "jobs": len(pairs),
                    "started_by_then": sum(said >= real for said, real in pairs) / len(pairs),
                    "within_factor_2": sum(close) / len(pairs),
                    **{f"too_long_h_p{p}": hours[min(len(hours) - 1, len(hours) * p // 100)] for p in (10, 50, 90)},
                }
        return found
