"""Solves in the background: the events, the result and the errors of ``solve``, for threads and asyncio."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.problems.search.interface import SearchMonitor, StoppingCriteria
from mast_opt.problems.server_assignment.ras.ras_search import RasStrategy


def problem() -> mast_opt.DataPlacement:
    found: mast_opt.DataPlacement = mast_opt.read("instances/data_placement/two-regions")
    return found


def hard() -> mast_opt.DataPlacement:
    """An instance that HiGHS does not close within minutes."""
    made: mast_opt.DataPlacement = mast_opt.generate("data-placement", datasets=60, workloads=90, regions=8)
    return made


def test_the_result_is_that_of_solve() -> None:
    run = mast_opt.start(problem(), "highs")
    solution = run.result(timeout_s=60)
    assert run.done
    assert solution.objective == mast_opt.solve(problem(), "highs").objective


def test_every_iterator_sees_every_event_in_order() -> None:
    heard: list[mast_opt.Event] = []
    run = mast_opt.start(problem(), "highs", on_event=heard.append)
    first, second = list(run), list(run)
    assert tuple(first) == tuple(second) == tuple(heard) == run.result().events
    assert first


def test_errors_are_raised_by_the_result() -> None:
    run = mast_opt.start(problem(), "hihgs")
    with pytest.raises(UsageError, match="hihgs"):
        run.result()
    assert list(run) == []


def test_a_cancelled_run_keeps_its_incumbent() -> None:
    with mast_opt.start(hard(), "highs", gap=0.0) as run:
        for event in run:
            if event.incumbent is not None:
                run.cancel()
        solution = run.result()
    assert solution.limit is mast_opt.Limit.INTERRUPT
    assert solution.plan is not None


def test_the_end_of_the_block_ends_the_solve() -> None:
    cancel = threading.Event()
    with mast_opt.start(hard(), "highs", gap=0.0, cancel=cancel) as run, pytest.raises(TimeoutError):
        run.result(timeout_s=0.01)
    assert cancel.is_set()
    assert run.done


def test_asyncio_awaits_and_iterates() -> None:
    async def both() -> tuple[list[mast_opt.Event], mast_opt.Solution[Any]]:
        run = mast_opt.start(problem(), "highs")
        events = [event async for event in run]
        return events, await run

    events, solution = asyncio.run(both())
    assert tuple(events) == solution.events
    assert solution.status is mast_opt.Status.OPTIMAL


def test_a_cancelled_task_cancels_the_solve() -> None:
    async def cancelled() -> mast_opt.SolveRun[Any]:
        run = mast_opt.start(hard(), "highs", gap=0.0)

        async def wait() -> None:
            await run

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return run

    assert asyncio.run(cancelled()).result().limit is mast_opt.Limit.INTERRUPT


def test_the_logger_says_when_a_solve_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "mast_opt"):
        solution = mast_opt.solve(problem(), "highs")
    levels = [record.levelname for record in caplog.records]
    assert levels == ["INFO", *["DEBUG"] * len(solution.events), "INFO"]
    assert "ended OPTIMAL" in caplog.messages[-1]


def test_the_logger_has_begin_and_end_of_auto_around_those_of_its_members(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mast_opt"):
        solution = mast_opt.solve(problem(), time_limit_s=30, threads=1)
    assert " with auto, seed 0, " in caplog.messages[0]
    assert caplog.messages[-1].startswith(f"auto ended {solution.status.value}, objective ")


def test_the_logger_has_the_strategy_of_the_solve_and_none_of_compiling(caplog: pytest.LogCaptureFixture) -> None:
    problem = mast_opt.generate("server-assignment", servers=8, reservations=2)
    with caplog.at_level(logging.INFO, "mast_opt"):
        SearchMonitor(StoppingCriteria()).chose(RasStrategy((), True, True, "every round", 3))
        assert caplog.messages == []
        mast_opt.solve(problem, "ras", iterations=1)
    assert sum(message.startswith("strategy: ") for message in caplog.messages) == 1


@pytest.mark.second_tier
def test_the_logger_is_silent_by_default() -> None:
    program = "import mast_opt as m; m.solve(m.generate('server-assignment', servers=8, reservations=2), 'highs')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert (ended.stdout, ended.stderr) == ("", "")
