"""How kernels are compiled: cached on disk, without the interpreter lock, free to reorder float sums.

The sums are of whole numbers and so exact in any order. Kernels own no memory: arrays come in with the fleet and the
state, and counting references to some forty of them took four fifths of the time, so it is switched off.

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


def _fingerprint() -> str:
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_bytes()
        if path.name in ("compiled.py", "state.py") or b"heuristics.compiled import" in text:
            digest.update(text)
    return digest.hexdigest()


_FINGERPRINT = _fingerprint()


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called; Python and other kernels may call it."""
    return _compiled(function)


def inlined(function: FunctionT) -> FunctionT:
    """The function as part of its callers, for what is called often: handing over some forty arrays costs more than
    most of these functions. Python may call it too."""
    return _compiled(function, forceinline=True)


def _compiled(function: FunctionT, **more: Any) -> FunctionT:
    function.__qualname__ = f"{function.__qualname__}_{_FINGERPRINT}"
    options: dict[str, Any] = {
        "cache": True,
        "nogil": True,
        "error_model": "numpy",
        "fastmath": {"reassoc", "nsz", "contract", "nnan", "ninf"},
        "_nrt": False,
        **more,
    }
    return cast(FunctionT, numba.njit(**options)(function))
