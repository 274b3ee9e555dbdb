"""Runs spread over a Ray cluster that the test starts here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mast_opt.bench.results import load
from mast_opt.cli import main
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


def test_without_ray_it_says_how_to_install_it(
    suite_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["bench", str(suite_file), "--filter", "drawn", "--ray", "auto"]) == 2
    assert "pip install 'mast-opt[ray]'" in capsys.readouterr().err
