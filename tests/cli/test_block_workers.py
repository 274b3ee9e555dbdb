"""``solve --workers`` and ``--ray``: what they set, what they refuse, and where it is recorded."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import mast_opt
from tests.cli.conftest import Call


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A small instance."""
    made = mast_opt.generate("data-placement", seed=1, datasets=12, workloads=20, regions=3)
    mast_opt.write(made, tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.second_tier
def test_processes_solve_blocks_and_the_plan_says_so(call: Call, data: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    spread = ("--workers", "processes", "--threads", 2, "--iterations", 2)
    assert call("solve", data, "--solver", "tetris", *spread, "--out", plan).code == 0
    stated = tomllib.loads((plan / "plan.toml").read_text())
    assert stated["params"] == {"blocks.workers": "processes"}
    checked = call("verify", data, plan, "--json")
    assert checked.code == 0
    assert json.loads(checked.out)["bound_checked"] is True


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--ray", "auto"), "which auto does not; of those for data-placement these do: tetris"),
        (("--solver", "tetris", "--workers", "fork"), "--workers fork: expected one of: threads, processes, ray"),
        (("--solver", "tetris", "--ray", "10.0.0.1"), "expected auto, HOST:PORT or ray://HOST:PORT"),
        (("--solver", "tetris", "--ray", "auto", "--workers", "processes"), "leave one out"),
        (
            ("--solver", "tetris", "--ray", "auto", "--param", "blocks.workers=ray"),
            "blocks.workers of TetrisParams is given",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Call, data: Path, given: tuple[str, ...], words: str) -> None:
    ended = call("solve", data, *given)
    assert ended.code == 2
    assert words in " ".join(ended.err.split())
