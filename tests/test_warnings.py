"""Nothing that is documented lets a warning through: in a child, because pytest has filters of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.second_tier
def test_no_call_lets_a_warning_through(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.every_call", str(tmp_path)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Warning" not in ended.stderr
