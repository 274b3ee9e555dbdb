"""Exchange of plans between solvers that work on one instance at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mast_opt.core.sense import Sense


class PlanExchange:
    """The best plan that one solver offers, until another takes it; for use by several threads."""

    def __init__(self, sense: Sense) -> None:
        self._sense = sense
        self._lock = threading.Lock()
        self._objective: float | None = None
        self._make: Callable[[], object] | None = None

    def offer(self, objective: float, make: Callable[[], object]) -> None:
        """Keep what makes a plan, where its objective is better than that of every earlier offer."""
        with self._lock:
            known = self._objective
            if known is None or self._sense.minimised(objective) < self._sense.minimised(known):
                self._objective, self._make = objective, make

    def take(self) -> Any | None:  # noqa: ANN401 - each kind has its own plan
        """The best plan that has not been taken yet; None where there is none."""
        with self._lock:
            make, self._make = self._make, None
        return None if make is None else make()
