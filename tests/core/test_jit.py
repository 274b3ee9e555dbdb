"""Kernels count no references, and a cached one is not used when anything that it can see has changed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
import pytest

from mast_opt.core.arrays import FloatArray
from mast_opt.core.fingerprint import fingerprint, imports_of, modules_seen
from mast_opt.core.jit import compiled, entry, kernel

ROOT = Path(__file__).parents[2]


@kernel
def _sum(values: FloatArray) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@entry
def double_sum(values: FloatArray) -> float:
    return 2 * _sum(values)


@compiled
def doubled(values: FloatArray) -> FloatArray:
    return values + values


def test_kernels_count_no_references() -> None:
    values = np.arange(4.0)
    before = sys.getrefcount(values)
    assert double_sum(values) == doubled(values).sum() == 12.0
    assert sys.getrefcount(values) == before
    cases: tuple[tuple[Any, bool], ...] = ((_sum, False), (double_sum, False), (doubled, True))
    for function, counts in cases:
        switch = function.targetoptions.get("_nrt", True)
        njit: Any = numba.njit
        fresh = njit(_nrt=switch)(function.py_func)  # cached code cannot be looked at
        fresh.compile("(float64[::1],)")
        assert ("NRT_" in next(iter(fresh.inspect_llvm().values()))) is counts


MODULES = {
    "fake/__init__.py": "",
    "fake/units.py": "WHOLE = 10\n",
    "fake/near/__init__.py": "",
    "fake/near/main.py": """
from mast_opt.core.jit import entry
from fake import units
from fake.far.helper import added

@entry
def answer(value):
    return added(value) * units.WHOLE
""",
    "fake/far/__init__.py": "",
    "fake/far/helper.py": """
from mast_opt.core.jit import kernel
from ..limits import (  # what is added
    ADDED,
)

@kernel
def added(value):
    return value + ADDED
""",
    "fake/limits.py": "ADDED = 1\n",
    "fake/unrelated.py": "ANYTHING = 1\n",
}
RUN = """
from fake.near.main import answer
print(answer(2), sum(answer.stats.cache_hits.values()))
"""


@pytest.mark.second_tier
def test_a_change_anywhere_that_a_kernel_sees_gives_new_results(tmp_path: Path) -> None:
    for name, text in MODULES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert _answer(tmp_path) == (30, 0)
    (tmp_path / "fake/unrelated.py").write_text("ANYTHING = 2\n")
    assert _answer(tmp_path) == (30, 1), "nothing that the kernel sees has changed: it comes from the cache"
    (tmp_path / "fake/units.py").write_text("WHOLE = 100\n")
    assert _answer(tmp_path) == (300, 0)
    (tmp_path / "fake/limits.py").write_text("ADDED = 5\n")
    assert _answer(tmp_path) == (700, 0)
    helper = MODULES["fake/far/helper.py"].replace("value + ADDED", "value - ADDED")
    (tmp_path / "fake/far/helper.py").write_text(helper)
    assert _answer(tmp_path) == (-300, 0)


def _answer(folder: Path) -> tuple[int, int]:
    """The kernel's result in a new process, and how often its code came from the cache."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, cwd=folder, capture_output=True, encoding="utf-8", check=True
    )
    value, hits = ended.stdout.split()
    return int(value), int(hits)


def test_every_import_of_ours_is_seen() -> None:
    files = sorted((ROOT / "mast_opt").rglob("*.py"))
    assert len(files) > 300
    for path in files:
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        names = frozenset(imports_of(path, module))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= names, path
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                assert node.module in names, path
                assert {f"{node.module}.{alias.name}" for alias in node.names} <= names, path


def test_job_placement_kernels_see_the_units_and_no_command() -> None:
    file = ROOT / "mast_opt/problems/job_placement/engine/feasibility.py"
    name = "mast_opt.problems.job_placement.engine.feasibility"
    seen = {str(path.relative_to(ROOT)) for path in modules_seen(file, name)}
    assert {"mast_opt/problems/job_placement/units.py", "mast_opt/core/jit.py", "mast_opt/core/fingerprint.py"} <= seen
    assert not any(name.startswith("mast_opt/cli/") for name in seen)


def test_a_fingerprint_names_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("")
    fresh = fingerprint.__wrapped__
    first = fresh(file, "kernels")
    assert fresh(file, "kernels") == first
    for module in (numba, llvmlite, np):
        with monkeypatch.context() as patch:
            patch.setattr(module, "__version__", "0.0")
            assert fresh(file, "kernels") != first


def test_every_kernel_is_cached_where_there_is_a_folder() -> None:
    files = [path for path in (ROOT / "mast_opt").rglob("*.py") if path.name != "kernel_cache.py"]
    assert [path.name for path in files if re.search(r"\bnjit\b", path.read_text(encoding="utf-8"))] == []
