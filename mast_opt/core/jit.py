"""How kernels are compiled: cached on disk, without the interpreter lock, and without counting references.

A kernel is handed the problem and the plan as tuples of some fifty arrays. Counting references to them at every call
took four fifths of the time, so kernels that other kernels call own no memory and count nothing: scratch space comes
in from outside. (The switch is numba's ``_nrt``; ``tests/core/test_jit.py`` notices if it should go away.) Large tuples
are handed over by reference (``mast_opt.core.by_reference``). Kernels that only kernels call are compiled where they
are called (``mast_opt.core.kernel_compiler``) and not cached by themselves.

A cached kernel contains the kernels that it calls and the constants that it reads, and numba's cache does not notice a
change in another file. So the name under which a kernel is cached carries a fingerprint of every module that it can see
(``mast_opt.core.fingerprint``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mast_opt.core.fingerprint import fingerprint
from mast_opt.core.kernel_cache import cached_njit
from mast_opt.core.kernel_compiler import PartCompiler, WholeCompiler

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""numba's options for every kernel; none is called from C."""


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called from Python; it may allocate arrays."""
    return define(function)


def kernel(function: FunctionT, **options: Any) -> FunctionT:
    """The function as a part of kernels that call it. It must allocate nothing.

    It has no way in from Python: calling it there ends the process.
    """
    part: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "pipeline_class": PartCompiler}
    return cached_njit(keep=False, **part, **COMMON, **options)(function)


def summing(function: FunctionT) -> FunctionT:
    """A kernel whose sums and extremes may be taken in any order, so that the processor takes many at a time."""
    return kernel(function, fastmath={"reassoc", "nsz", "nnan"})


def entry(function: FunctionT) -> FunctionT:
    """A kernel that Python may call too. It must allocate nothing, and return no array."""
    return define(function, _nrt=False)


def define(function: FunctionT, **options: Any) -> FunctionT:
    """The function with further options of numba's, for packages that have use for them."""
    seen = fingerprint(Path(function.__code__.co_filename), function.__module__)
    function.__qualname__ = f"{function.__qualname__}_{seen}"
    return cached_njit(pipeline_class=WholeCompiler, **COMMON, **options)(function)
