"""Exchange of plans between solvers that work on one instance at the same time."""

import threading
from collections.abc import Callable
from typing import Any

from mast_opt.core.sense import Sense


class PlanExchange:
    """The best plan that one solver offers while it works, for others to take; for use by several threads."""

    def __init__(self, sense: Sense) -> None:
        self._sense = sense
        self._lock = threading.Lock()
        self._objective: float | None = None
        self._make: Callable[[], object] | None = None
        self._taken = False

    def offer(self, objective: float, make: Callable[[], object]) -> None:
        """Keep the function that makes a plan, where its objective is better than that of every earlier offer."""
        with self._lock:
            known = self._objective
            if known is None or self._sense.minimised(objective) < self._sense.minimised(known):
                self._objective, self._make, self._taken = objective, make, False

    def take(self) -> Any | None:  # noqa: ANN401 - each kind has its own plan
        """The best plan that has not been taken yet; None where there is none."""
        with self._lock:
            make, self._taken = None if self._taken else self._make, True
        return None if make is None else make()

    @property
    def best(self) -> tuple[float, Callable[[], Any]] | None:
        """The best offer, taken or not: the objective that its solver states, and what makes the plan."""
        with self._lock:
            return None if self._objective is None or self._make is None else (self._objective, self._make)
