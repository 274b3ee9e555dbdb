"""The code blocks of README.md and docs/ are tests: each file is one story, run where only the instances are.

A block of ``text`` is a part of what the block before it prints; … stands for any characters, and white space does not
matter.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser

pytest_plugins = ["tests.tiers"]
collect_ignore = ["docs/examples"]
"""Packages to copy, with tests for where they are installed; ``tests/cli/test_plug_ins.py`` runs those."""

PRINTED = "what the last block printed"
"""Its key in the namespace of a file's examples."""
WIDTH = "140"
"""Columns of the terminal in which the examples run; pages have the lines of a wide one."""


def _in_a_shell(example: Example) -> None:
    programs = str(Path(sys.executable).parent)
    ended = subprocess.run(
        ["sh", "-eux", "-c", example.parsed],
        env={**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]]), "COLUMNS": WIDTH},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    example.namespace[PRINTED] = ended.stdout


def _in_python(example: Example) -> None:
    printed = StringIO()
    with redirect_stdout(printed):
        _python(example)
    example.namespace[PRINTED] = printed.getvalue()


def _printed(example: Example) -> None:
    said, expected = (" ".join(text.split()) for text in (example.namespace[PRINTED], example.parsed))
    pattern = ".*".join(re.escape(part.strip()) for part in expected.split("…"))
    assert re.search(pattern, said), f"the page says\n{expected}\nthe block before prints\n{said}"


_python = PythonEvaluator()


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
        CodeBlockParser(language="python", evaluator=_in_python),
        CodeBlockParser(language="sh", evaluator=_in_a_shell),
        CodeBlockParser(language="text", evaluator=_printed),
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    fixtures=["empty_folder"],
).pytest()
