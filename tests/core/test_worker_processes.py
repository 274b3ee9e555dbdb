"""Calls in processes: answers, lost workers, and calls that should stop."""

from __future__ import annotations

import os
import threading
import time

import pytest

from mast_opt.core.worker_processes import WorkerLost, WorkerProcesses

pytestmark = pytest.mark.second_tier


def do(what: str, cancel: threading.Event) -> str:
    """A call with a stated end."""
    if what == "crash":
        os._exit(3)
    if what == "raise":
        raise ZeroDivisionError(what)
    if what == "hang":
        time.sleep(300)
    return f"stopped {os.getpid()}" if what == "wait" and cancel.wait(300) else f"{what} {os.getpid()}"


def run(workers: WorkerProcesses, what: str, stopped: bool = False) -> str:
    """The answer of ``do``; with ``stopped``, it should stop from soon on."""
    begun = iter((False, False))
    return workers.run(do, what, lambda: stopped and next(begun, True))


def test_a_process_answers_fails_and_stops() -> None:
    with WorkerProcesses(1) as workers:
        words, process = run(workers, "hello").split()
        assert words == "hello"
        assert int(process) != os.getpid()
        with pytest.raises(ZeroDivisionError, match="raise"):
            run(workers, "raise")
        assert run(workers, "wait", stopped=True) == f"stopped {process}"
        with pytest.raises(WorkerLost, match="before it began"):
            workers.run(do, "hello", lambda: True)


def test_a_process_that_crashes_is_lost_and_another_takes_its_place() -> None:
    with WorkerProcesses(1) as workers:
        for _ in range(2):
            with pytest.raises(WorkerLost):
                run(workers, "crash")
            assert run(workers, "hello").startswith("hello ")


def test_a_process_that_does_not_stop_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_opt.core.worker_processes.PATIENCE_S", 0.1)
    with WorkerProcesses(1) as workers, pytest.raises(WorkerLost):
        run(workers, "hang", stopped=True)
