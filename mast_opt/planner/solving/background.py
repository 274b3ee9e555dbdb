"""Solves in the background: events as an iterator, results for threads and for asyncio."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future
from typing import Any, Generic, ParamSpec

from mast_opt.core.solve_result import Event
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.wording import of_term, percent, plain, seconds
from mast_opt.planner.solving.dispatch import solve
from mast_opt.planner.solving.solution import Solution
from mast_opt.problems.kind.problem import PlanT

GivenT = ParamSpec("GivenT")


class SolveRun(Summarised, Generic[PlanT]):
    """A solve that runs in a thread of its own; ``mast_opt.start`` makes it.

    Example::

        run = mast_opt.start(problem, "tetris", time_limit_s=60)
        for event in run:
            print(event.elapsed_s, event.incumbent, event.bound)
        solution = run.result()

    Iterating gives every event from the first one on and ends with the solve; any number of iterators may run at once.
    In asyncio, ``async for event in run`` and ``solution = await run`` do the same. As a context manager it cancels a
    solve that still runs at the end of the block, and waits for it. The process does not end before the solve.
    """

    def __init__(self, target: Callable[[Callable[[Event], None]], Solution[PlanT]], cancel: threading.Event) -> None:
        self._future: Future[Solution[PlanT]] = Future()
        self._cancel = cancel
        self._events: list[Event] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, args=(target,), name="mast-opt-solve")
        self._thread.start()

    def _run(self, target: Callable[[Callable[[Event], None]], Solution[PlanT]]) -> None:
        """Body of the thread of a solve in the background: solve, and keep the solution or the error."""
        try:
            solution = target(self._record)
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(solution)
        with self._changed:
            self._changed.notify_all()

    def _record(self, event: Event) -> None:
        """Keep an event for those who iterate over the run."""
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()

    def _event(self, position: int) -> Event | None:
        """The event at a position, once it is there; None where the solve ends before."""
        with self._changed:
            self._changed.wait_for(lambda: position < len(self._events) or self._future.done())
            return self._events[position] if position < len(self._events) else None

    def __iter__(self) -> Iterator[Event]:
        position = 0
        while (event := self._event(position)) is not None:
            yield event
            position += 1

    async def __aiter__(self) -> AsyncIterator[Event]:
        position = 0
        while (event := await asyncio.to_thread(self._event, position)) is not None:
            yield event
            position += 1

    @property
    def done(self) -> bool:
        """Whether the solve has ended, with a result or an error."""
        return self._future.done()

    def _summary(self) -> Summary:
        """Summary of the solve in the background so far."""
        with self._changed:
            last = self._events[-1] if self._events else Event(0.0, None, None)
        facts = (
            ("done", str(self.done)),
            ("elapsed", seconds(last.elapsed_s)),
            ("incumbent", of_term(last.incumbent, last.stage)),
            ("bound", plain(last.bound)),
            ("gap", percent(last.gap)),
        )
        return Summary("SolveRun", facts)

    def cancel(self) -> None:
        """Stop the solve soon; its result is the incumbent. Without effect on a solve that has ended."""
        self._cancel.set()

    def result(self, timeout_s: float | None = None) -> Solution[PlanT]:
        """The solution, once the solve has ended.

        Args:
            timeout_s: seconds to wait at most; the solve goes on after that.

        Raises:
            TimeoutError: it has not ended by then.
            MastOptError: whatever ``mast_opt.solve`` raised.
        """
        return self._future.result(timeout_s)

    def __await__(self) -> Generator[Any, None, Solution[PlanT]]:
        return self._awaited().__await__()

    async def _awaited(self) -> Solution[PlanT]:
        """Solution of a solve in the background, awaited; a cancelled await stops the solve."""
        try:
            return await asyncio.shield(asyncio.wrap_future(self._future))
        except asyncio.CancelledError:
            self.cancel()
            raise

    def __enter__(self) -> "SolveRun[PlanT]":
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        self._thread.join()


def _starting(function: Callable[GivenT, Solution[PlanT]]) -> Callable[GivenT, SolveRun[PlanT]]:
    """The function that starts a solving one in the background, with the same arguments."""

    def start(*args: GivenT.args, **kwargs: GivenT.kwargs) -> SolveRun[PlanT]:
        """Begin to solve a problem in a thread of its own.

        Takes the arguments of ``mast_opt.solve`` and returns at once. Errors are raised by ``SolveRun.result`` and by
        ``await``. An ``on_event`` that is given is called from the solving thread, before the iterators see the event.
        """
        given: dict[str, Any] = dict(kwargs)
        on_event: Callable[[Event], None] | None = given.pop("on_event", None)
        cancel = given.pop("cancel", None) or threading.Event()

        def run(record: Callable[[Event], None]) -> Solution[PlanT]:
            def both(event: Event) -> None:
                if on_event is not None:
                    on_event(event)
                record(event)

            call: Callable[..., Solution[PlanT]] = function
            return call(*args, on_event=both, cancel=cancel, **given)

        return SolveRun(run, cancel)

    return start


start = _starting(solve)
