"""The public names, and how little importing them costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mast_opt


def test_every_public_name_is_there_and_nothing_else() -> None:
    for name in mast_opt.__all__:
        assert getattr(mast_opt, name).__name__ == name
    assert dir(mast_opt) == sorted(mast_opt.__all__)
    assert sorted(mast_opt.__all__) == mast_opt.__all__


def test_public_names_have_docstrings() -> None:
    assert all(getattr(mast_opt, name).__doc__ for name in mast_opt.__all__)


def test_the_documentation_has_every_public_name() -> None:
    page = (Path(mast_opt.__file__).parents[1] / "docs" / "api.md").read_text()
    listed = re.findall(r"^\.\. auto\w+:: mast_opt\.(\w+)$", page, re.M)
    assert sorted(listed) == mast_opt.__all__


def test_no_module_hides_a_public_name() -> None:
    """``mast_opt.solve`` must be the function, whatever has been imported before."""
    modules = {path.stem for path in Path(mast_opt.__file__).parent.iterdir()}
    assert not modules & set(mast_opt.__all__)


@pytest.mark.second_tier
def test_importing_loads_no_solver() -> None:
    words = (
        "import sys, mast_opt; before = set(sys.modules); mast_opt.solve; mast_opt.read; "
        "print(sorted({'numpy', 'polars'} & before), "
        "sorted({'highspy', 'ortools', 'pulp', 'pyscipopt', 'gurobipy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", words], capture_output=True, encoding="utf-8", check=True)
    assert ended.stdout.strip() == "[] []"
