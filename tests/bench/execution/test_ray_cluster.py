"""Runs spread over a Ray cluster that the test starts here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mast_opt.cli import main
from mast_opt.planner.bench.results.store import load
from mast_opt.planner.bench.suites.suite import Trial
from tests.platforms import needs

HERE = """
import sys
from pathlib import Path
import ray
ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
from mast_opt.cli import main
code = main(["bench", sys.argv[1], "--out", sys.argv[2], "--filter", "drawn", "--ray", "auto"])
ray.shutdown()
raise SystemExit(code)
"""


@needs("ray")
def test_runs_come_back_from_a_cluster(suite_file: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HERE, str(suite_file), str(tmp_path / "results")]
    ended = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    results = load(tmp_path / "results" / "two.jsonl")
    assert {result["instance"] for result in results} == {"study-1x1x2x80-s3", "study-1x1x2x80-s4"}
    assert {result["status"] for result in results} == {"OPTIMAL"}
    assert not any(result["pinned"] for result in results)
    assert all(result["node"]["processors"] for result in results)


@pytest.mark.second_tier
def test_patience_is_that_of_the_command(
    suite_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stand-in for Ray makes the runs as they are asked for."""
    patience: list[float] = []

    def run_child(trial: Trial, *, pinned: bool, patience_s: float) -> dict[str, Any]:
        patience.append(patience_s)
        return {"status": "OPTIMAL", "objective": 0.0, "runtime_s": {"wall": 1.0}, "pinned": pinned}

    def remote(run: Callable[..., Any]) -> SimpleNamespace:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *given: Later(run(*given))))

    ray = SimpleNamespace(
        is_initialized=lambda: True,
        remote=remote,
        wait=lambda pending: (pending, []),
        get=lambda later: later.outcome,
        exceptions=SimpleNamespace(RayError=RuntimeError),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr("mast_opt.planner.bench.execution.ray_cluster.run_child", run_child)
    words = ["--filter", "drawn", "--ray", "auto", "--patience", "5", "--out", str(tmp_path / "results")]
    assert main(["bench", str(suite_file), *words]) == 0
    assert patience == [5.0, 5.0]


class Later:
    """What a task will have come to; equal to no other, as Ray's references are."""

    def __init__(self, outcome: dict[str, Any]) -> None:
        self.outcome = outcome


@pytest.mark.second_tier
def test_without_ray_it_says_how_to_install_it(
    suite_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["bench", str(suite_file), "--filter", "drawn", "--ray", "auto"]) == 2
    assert "pip install 'mast-opt[ray]'" in capsys.readouterr().err
