"""Ctrl-C keeps the incumbent; a second one leaves at once."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, command
from tests.platforms import needs

pytestmark = [pytest.mark.second_tier, needs("signals")]

PATIENCE_S = 120
"""After which a test gives up; it never takes nearly as long."""

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

DEAF = """
import os, sys, time
from mast_opt.problems import backends
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
def started(tokens: list[str], **given: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive its test."""
    process = subprocess.Popen(tokens, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **given)
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

    monkeypatch.setattr("mast_opt.cli.commands.solve.validate", read)
    ended = call("solve", instance, "--json")
    assert ended.code == 130
    assert ended.record["error"] == "interrupted"


def _interrupted_while_compiling(cache: Path, number: signal.Signals, *tokens: object) -> tuple[int, str, str]:
    """The command with an empty cache of kernels, interrupted once it says that it compiles."""
    cache.mkdir()
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    with started(command(*tokens), env=env, start_new_session=True) as process:
        assert process.stderr is not None
        said = ""
        while "compiling for" not in said:
            said = process.stderr.readline()
            assert said, "the command ended and compiled nothing"
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
        with pytest.raises(ProcessLookupError):  # nothing that compiles is left
            os.killpg(process.pid, 0)
    return process.returncode, out, err


def _broken_entries(cache: Path) -> list[Path]:
    """Indexes of the cache that name a file which is not there."""
    broken = []
    for index in cache.rglob("*.nbi"):
        with index.open("rb") as file:
            pickle.load(file)
            _, entries = pickle.loads(file.read())
        broken += [index for name in entries.values() if not (index.parent / name).exists()]
    return broken


@pytest.mark.parametrize("number", SIGNALS)
def test_while_kernels_compile_the_start_is_what_is_kept(
    call: Call, instance: Path, plan: Path, tmp_path: Path, number: signal.Signals
) -> None:
    cache, kept = tmp_path / "cache", tmp_path / "kept"
    code, out, err = _interrupted_while_compiling(
        cache, number, "solve", instance, "--solver", "tetris", "--start", plan, "--out", kept, "--json"
    )
    assert code == 130, err
    record = json.loads(out)
    assert (record["status"], record["limit"]) == ("FEASIBLE", "interrupt")
    assert "while kernels were compiled" in record["message"]
    assert call("verify", instance, kept).code == 0
    assert _broken_entries(cache) == []


@pytest.mark.parametrize(
    "tokens",
    [
        ("solve", "INSTANCE", "--solver", "tetris"),
        ("pareto", "INSTANCE", "--terms", "storage,peak", "--solver", "tetris"),
        ("whatif", "INSTANCE", "--scenarios", "SCENARIOS", "--solver", "tetris"),
        ("warm-up", "data-placement"),
    ],
    ids=lambda tokens: tokens[0],
)
def test_while_kernels_compile_a_command_without_a_plan_ends(
    instance: Path, scenarios: Path, tmp_path: Path, tokens: tuple[str, ...]
) -> None:
    given = [{"INSTANCE": instance, "SCENARIOS": scenarios}.get(token, token) for token in tokens]
    code, out, err = _interrupted_while_compiling(tmp_path / "cache", signal.SIGTERM, *given, "--json")
    assert code == 130, err
    assert "interrupted" in json.loads(out)["error"]
