"""Solves of an analysis, several at a time: in threads, in processes of their own, or on a Ray cluster."""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mast_opt.core.errors import UsageError
from mast_opt.core.executor import EXECUTORS, RAY, THREADS, Call, Executor, WorkerLost, check_address, executor
from mast_opt.core.parallel import in_parallel
from mast_opt.planner.analysis.common import solve_from
from mast_opt.planner.solving import Solution
from mast_opt.problems.kind.carry_over import carried_over
from mast_opt.problems.kind.origin import made_for
from mast_opt.problems.registry import kind_of

GivenT = TypeVar("GivenT")
FoundT = TypeVar("FoundT")


@dataclass(frozen=True, eq=False)
class Workers:
    """Executor and cancellation that the calls of an analysis share."""

    executor: Executor
    cancel: threading.Event

    def run(self, call: Call[GivenT, FoundT], given: GivenT) -> FoundT:
        """Run a part of an analysis, a function of a module, in a worker; it is run here if the worker is lost."""
        try:
            return self.executor.run(call, given, self.cancel.is_set)
        except WorkerLost:
            return call(given, self.cancel)

    def each(self, call: Callable[[GivenT], FoundT], given: Iterable[GivenT]) -> list[FoundT]:
        """An analysis' ``call`` of each, in threads here that wait for the workers."""
        return in_parallel(call, given, self.executor.size, self.cancel)

    def shares(self, count: int, whole: float = 1.0) -> Iterator[float]:
        """The part of the remaining time for each of so many calls of an analysis, in the order in which they begin."""
        return (whole * min(1.0, self.executor.size / left) for left in itertools.count(count, -1) if left)

    def solve(self, solver: str, instance: Any, start: Any, limits: Mapping[str, Any]) -> Solution[Any]:  # noqa: ANN401
        """A solve in a worker that begins with a plan.

        Args:
            limits: further arguments of ``mast_opt.solve``, without ``cancel``.
        """
        begin = None if start is None else carried_over(kind_of(instance), instance, start)[0]
        found = self.run(_solve, (solver, instance, begin, limits))
        return found if found.plan is None else replace(found, plan=made_for(instance, found.plan, found.overrides))


def _solve(given: tuple[str, Any, Any, Mapping[str, Any]], cancel: threading.Event) -> Solution[Any]:
    """A solve of an analysis by a worker; given are the solver, the instance, the plan to begin with, and keywords."""
    solver, instance, start, limits = given
    return solve_from(kind_of(instance), solver, {**limits, "cancel": cancel}, instance, start)


@contextmanager
def solving(jobs: int, workers: str, ray: str | None, cancel: threading.Event) -> Iterator[Workers]:
    """The workers of an analysis.

    Args:
        jobs: calls at a time; with Ray, as many as the cluster has processors.
        workers: ``threads``, ``processes`` or ``ray``.
        ray: address of the Ray cluster; not None implies ``ray``.
        cancel: set it to stop every call.

    Raises:
        UsageError: no such workers, or an address for others than Ray's.
        BackendUnavailable: there is no Ray, or no cluster at the address.
    """
    if workers not in EXECUTORS:
        raise UsageError(f"workers is {workers!r}; expected one of: {', '.join(EXECUTORS)}")
    if ray is not None and workers not in (RAY, THREADS):
        raise UsageError(f"the address {ray!r} is for Ray, and workers is {workers!r}; leave one of them out")
    if ray is not None:
        check_address(ray)
    with executor(workers if ray is None else RAY, jobs, cancel, ray or "auto") as made:
        yield Workers(made, cancel)
