"""Ctrl-C keeps the incumbent; a second one leaves at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Call, command
from tests.platforms import needs

pytestmark = needs("signals")

PATIENCE_S = 120
"""After which a test gives up; it never takes nearly as long."""

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

DEAF = """
import os, sys, time
from mast_opt import backends
from mast_opt.cli import main

class Deaf:
    name, package = "highs", "deaf"
    def version(self): return "1"
    def solve(self, mip, params):
        os.write(2, b"solving\\n")
        time.sleep(3600)

backends.get = lambda name: Deaf()
sys.exit(main(sys.argv[1:]))
"""
"""A solver that hears no request to stop."""


@contextmanager
def started(tokens: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive its test."""
    process = subprocess.Popen(tokens, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    with process:
        try:
            yield process
        finally:
            process.kill()


def _wait_for_incumbent(events: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        lines = events.read_text().splitlines(keepends=True) if events.exists() else []
        if any(json.loads(line)["incumbent"] is not None for line in lines if line.endswith("\n")):
            return
        time.sleep(0.02)
    raise AssertionError("the solver found nothing")


@pytest.mark.parametrize("number", SIGNALS)
def test_the_incumbent_is_written(call: Call, hard: Path, tmp_path: Path, number: signal.Signals) -> None:
    plan, events = tmp_path / "plan", tmp_path / "events"
    with started(command("solve", hard, "--out", plan, "--events", events, "--json")) as process:
        _wait_for_incumbent(events, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    record = json.loads(out)
    assert record["status"] == "FEASIBLE"
    assert record["limit"] == "interrupt"
    assert record["error"].startswith("interrupted")
    assert "best plan so far" in err
    verified = call("verify", hard, plan, "--json")
    assert verified.code == 0
    assert verified.record["objective"] == pytest.approx(record["objective"])


def test_a_second_one_leaves_at_once(instance: Path, tmp_path: Path) -> None:
    with started(
        [sys.executable, "-c", DEAF, "solve", str(instance), "--out", str(tmp_path / "plan"), "--json"]
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "solving\n"
        process.send_signal(signal.SIGINT)
        assert "Press Ctrl-C again" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    record = json.loads(out)
    assert record["status"] == "NO_SOLUTION"
    assert record["error"]
    assert not (tmp_path / "plan").exists()


def test_before_the_solve_it_just_ends(call: Call, instance: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("mast_opt.cli.commands.solve.read_instance", read)
    ended = call("solve", instance, "--json")
    assert ended.code == 130
    assert ended.record["error"] == "interrupted"
