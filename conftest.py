"""The code blocks of README.md and docs/ are tests: each file is one story, run where only the instances are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser


def _in_a_shell(example: Example) -> None:
    programs = str(Path(sys.executable).parent)
    ended = subprocess.run(
        ["sh", "-eux", "-c", example.parsed],
        env={**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]])},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with nothing but the instances, which is the current one while a file's examples run."""
    before = Path.cwd()
    story = tmp_path_factory.mktemp("story")
    (story / "instances").symlink_to(Path(__file__).parent / "instances")
    os.chdir(story)
    yield
    os.chdir(before)


pytest_collect_file = Sybil(
    parsers=[
        SkipParser(),
        PythonCodeBlockParser(),
        CodeBlockParser(language="sh", evaluator=_in_a_shell),
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    fixtures=["empty_folder"],
).pytest()
