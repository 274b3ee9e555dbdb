"""Cache of compiled kernels between processes.

numba keeps them next to the source, or in the user's cache folder. A read-only installation used by an account without
a home directory has neither. Then they go to a private folder among the temporary files. If there is no such folder
either, they are compiled in every process, and a warning says so.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as numba_config

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_config: Any = numba_config
_setting_lock = threading.Lock()


def cached_njit(keep: bool = True, **options: Any) -> Callable[[FunctionT], FunctionT]:
    """Decorator like ``numba.njit(cache=True, **options)`` that never fails for lack of a folder.

    Args:
        keep: False for what has no machine code of its own, since it becomes part of functions that are kept.

    With numba's setting ``NUMBA_DISABLE_JIT`` the function stays as it is, so that coverage and debuggers see it.

    Warns (RuntimeWarning) if what is compiled can be kept nowhere.
    """

    def define(function: FunctionT) -> FunctionT:
        if _config.DISABLE_JIT:
            return function
        dispatcher = numba.njit(**options)(function)
        if keep:
            _keep_on_disk(dispatcher)
        return cast(FunctionT, dispatcher)

    return define


def _keep_on_disk(dispatcher: Any) -> None:
    """Cache a kernel on disk in numba's folder, else in a private folder; warn if neither is possible."""
    try:
        dispatcher.enable_caching()
        return
    except RuntimeError:  # numba found no folder that it may write to
        pass
    try:
        folder = _private_folder()
        with _setting_lock:  # numba reads the setting once, while it creates the cache
            before, _config.CACHE_DIR = _config.CACHE_DIR, str(folder)
            try:
                dispatcher.enable_caching()
            finally:
                _config.CACHE_DIR = before
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"compiled kernels cannot be kept, so every process compiles them again ({error}); set NUMBA_CACHE_DIR to "
            "a folder that you may write to",
            RuntimeWarning,
            stacklevel=2,
        )


def _private_folder() -> Path:
    """A folder among the temporary files that only this user can write to.

    numba loads code from its cache, so a folder that another user has prepared must not be used. Raises OSError.
    """
    owner = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir()) / ("mast-opt-kernels" if owner is None else f"mast-opt-kernels-{owner}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    mine = stat.S_ISDIR(found.st_mode) and (owner is None or (found.st_uid == owner and not found.st_mode & 0o022))
    if not mine:
        raise OSError(f"{folder} belongs to another user, or others may write to it")
    return folder
