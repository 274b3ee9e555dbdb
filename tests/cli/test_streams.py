"""stdout for results, stderr for the rest, in any terminal or none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import command, spawn, write_tables

pytestmark = pytest.mark.second_tier

SLOW = {"numpy", "scipy", "polars", "numba", "highspy", "ortools", "pulp", "pyscipopt", "networkx"}


def test_help_loads_nothing_heavy() -> None:
    words = f"import sys; from mast_opt.cli import main; main(['--help']); print(sorted({SLOW} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", words], capture_output=True, encoding="utf-8", check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_nothing_but_the_result_in_a_pipe(hard: Path) -> None:
    ended = spawn("solve", hard, "--solver", "highs", "--time-limit", 3)
    assert ended.code in (0, 4)
    assert ended.err == ""
    assert "\x1b" not in ended.out


def test_a_reader_who_leaves(instance: Path) -> None:
    with subprocess.Popen(
        command("solve", instance), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_terminals_without_unicode(tmp_path: Path, encoding: str) -> None:
    labels = {
        name: text.replace("east", "東京").replace("west", "münchen")
        for name, text in {
            "regions.csv": "region,storage_tb,cpu_cores\neast,10,10\nwest,10,10\n",
            "gpu_supply.csv": "region,gpu_type,gpus\neast,A100,8\nwest,A100,8\n",
            "replicas.csv": "dataset,region\nclicks,east\nlogs,west\n",
        }.items()
    }
    folder = write_tables(tmp_path / "unicode", labels)
    ended = subprocess.run(
        command("solve", folder, "--full"),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )
    assert ended.returncode == 0
    assert "A100" in ended.stdout.decode(encoding)
    assert ended.stderr == b""


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_any_width(instance: Path, columns: str) -> None:
    ended = spawn("solve", instance, env={"COLUMNS": columns})
    assert ended.code == 0
    assert all(len(line) <= int(columns) for line in ended.out.splitlines() if not line.startswith("The plan"))


def test_run_as_a_module(instance: Path) -> None:
    assert spawn("validate", instance).code == 0
