"""How kernels are compiled: cached on disk and without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called; Python and other kernels may call it."""
    return cast(FunctionT, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def kernel(function: FunctionT) -> FunctionT:
    """The function, compiled for the use of other kernels only, which takes a fraction of the time."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(FunctionT, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
