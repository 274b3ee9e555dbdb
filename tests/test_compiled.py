"""Kernels count no references, and a cached one is not used when a kernel that it calls has changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np

from mast_opt.compiled import _fingerprint, compiled, entry, kernel


@kernel
def _sum(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += value
    return total


@entry
def double_sum(values):  # type: ignore[no-untyped-def]
    return 2 * _sum(values)


@compiled
def doubled(values):  # type: ignore[no-untyped-def]
    return values + values


def test_kernels_count_no_references() -> None:
    values = np.arange(4.0)
    before = sys.getrefcount(values)
    assert double_sum(values) == doubled(values).sum() == 12.0
    assert sys.getrefcount(values) == before
    cases: tuple[tuple[Any, bool], ...] = ((_sum, False), (double_sum, False), (doubled, True))
    for function, counts in cases:
        switch = function.targetoptions.get("_nrt", True)
        fresh = numba.njit(_nrt=switch)(function.py_func)  # cached code cannot be looked at
        fresh.compile("(float64[::1],)")
        assert ("NRT_" in next(iter(fresh.inspect_llvm().values()))) is counts


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
