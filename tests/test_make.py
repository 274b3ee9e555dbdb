"""make.py: what its help lists is what it does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

MAKE = Path(__file__).resolve().parents[1] / "make.py"


def test_every_task_that_the_help_lists_exists() -> None:
    text = MAKE.read_text(encoding="utf-8")
    listed = re.findall(r"^    python3 make\.py (\w+)", text, re.MULTILINE)
    assert "docs" in listed
    (tasks,) = re.findall(r"^    tasks = \{(.*?)\}$", text, re.MULTILINE | re.DOTALL)
    assert sorted(re.findall(r'"(\w+)":', tasks)) == sorted(listed)


@pytest.mark.second_tier
def test_an_unknown_task_shows_the_help() -> None:
    done = subprocess.run([sys.executable, str(MAKE), "no-such-task"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "python3 make.py docs" in done.stdout
