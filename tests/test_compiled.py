"""Kernels count no references, and a cached one is not used when a kernel that it calls has changed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mast_opt.compiled import _fingerprint, compiled, kernel


@kernel
def _sum(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += value
    return total


@compiled
def total_of(values):  # type: ignore[no-untyped-def]
    return _sum(values)


def test_kernels_count_no_references() -> None:
    values = np.arange(4.0)
    before = sys.getrefcount(values)
    assert total_of(values) == 6.0
    assert sys.getrefcount(values) == before
    code = next(iter(_sum.inspect_llvm().values()))
    assert "NRT_incref" not in code
    assert "NRT_incref" in next(iter(total_of.inspect_llvm().values()))


def test_a_changed_kernel_is_a_different_kernel(tmp_path: Path) -> None:
    kernels, other = tmp_path / "kernels.py", tmp_path / "other.py"
    kernels.write_text("from mast_opt.compiled import kernel\n")
    other.write_text("x = 1\n")
    fresh = _fingerprint.__wrapped__
    first = fresh(tmp_path)
    other.write_text("x = 2\n")
    assert fresh(tmp_path) == first
    kernels.write_text("from mast_opt.compiled import kernel, compiled\n")
    assert fresh(tmp_path) != first
