"""What a release needs agrees: the version in every file that states it, and the Python versions that are tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import mast_opt

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere() -> None:
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert citation is not None
    assert mast_opt.__version__ == PROJECT["version"] == citation[1]


def test_every_supported_python_is_tested() -> None:
    stated = {name.rsplit(" ", 1)[1] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)}
    matrix = re.search(r"python: \[(.+)\]", (ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert matrix is not None
    assert stated <= set(re.findall(r"3\.\d+", matrix[1]))
