"""How kernels are compiled: cached on disk and without the interpreter lock.

A cached kernel contains the kernels that it calls, and the cache would not notice that one of those has changed in
another file. So the name under which a kernel is cached carries a fingerprint of all the files with kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_CONSTANTS = ("compiled.py", "state.py", "units.py")
"""Files without kernels that kernels depend on."""


def _fingerprint() -> str:
    here = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=6)
    for path in (*sorted(here.glob("*.py")), here.parent / "units.py"):
        text = path.read_bytes()
        if path.name in _CONSTANTS or b"heuristics.compiled import" in text:
            digest.update(text)
    return digest.hexdigest()


_FINGERPRINT = _fingerprint()


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called; Python and other kernels may call it."""
    return _compiled(function)


def kernel(function: FunctionT) -> FunctionT:
    """The function, compiled for the use of other kernels only, which takes a fraction of the time.

    It has no way in from Python: calling it there ends the process.
    """
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: FunctionT) -> FunctionT:
    """A kernel that becomes part of its callers: for what is called once for every server, where handing over a state
    with all its arrays would cost more than the work itself."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def _compiled(function: FunctionT, **options: Any) -> FunctionT:
    function.__qualname__ = f"{function.__qualname__}_{_FINGERPRINT}"
    return cast(FunctionT, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
