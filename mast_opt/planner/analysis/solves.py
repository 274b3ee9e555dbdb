"""Solves of an analysis, several at a time, in threads: solvers leave Python while they run."""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from mast_opt.core.parallel import in_parallel
from mast_opt.planner.analysis.common import solve_from
from mast_opt.planner.solving import Solution
from mast_opt.problems.kind.carry_over import carried_over
from mast_opt.problems.registry import kind_of

GivenT = TypeVar("GivenT")
FoundT = TypeVar("FoundT")


@dataclass(frozen=True, eq=False)
class Workers:
    """Number of calls at a time, and the cancellation that the calls of an analysis share."""

    jobs: int
    cancel: threading.Event

    def each(self, call: Callable[[GivenT], FoundT], given: Iterable[GivenT]) -> list[FoundT]:
        """An analysis' ``call`` of each."""
        return in_parallel(call, given, self.jobs, self.cancel)

    def shares(self, count: int, whole: float = 1.0) -> Iterator[float]:
        """The part of the remaining time for each of so many calls of an analysis, in the order in which they begin."""
        return (whole * min(1.0, self.jobs / left) for left in itertools.count(count, -1) if left)

    def solve(self, solver: str, instance: Any, start: Any, limits: Mapping[str, Any]) -> Solution[Any]:  # noqa: ANN401
        """A solve that begins with a plan.

        Args:
            limits: further arguments of ``mast_opt.solve``, without ``cancel``.
        """
        kind = kind_of(instance)
        begin = None if start is None else carried_over(kind, instance, start)[0]
        return solve_from(kind, solver, {**limits, "cancel": self.cancel}, instance, begin)


@contextmanager
def solving(jobs: int, cancel: threading.Event) -> Iterator[Workers]:
    """The workers of an analysis.

    Args:
        jobs: calls at a time.
        cancel: set it to stop every call.
    """
    yield Workers(jobs, cancel)
