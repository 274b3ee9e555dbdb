"""Compiling the kernels before they are needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from mast_opt.core.arguments import CANCEL, a_function
from mast_opt.registry import kind_named, kind_names
from mast_opt.solving.kernel_compilation import all_needed, rehearse


def warm_up(
    *kinds: str, on_compile: Callable[[str], None] = lambda kind: None, cancel: threading.Event | None = None
) -> None:
    """Compile every kernel, or load it from the cache, so that no solve and no live fleet waits for the compiler.

    Compiling takes up to a minute a kind, once for an installation; loading takes a second. ``mast-opt warm-up`` does
    the same. A solve that finds its kernels missing compiles them itself, before its time limit begins.

    Args:
        kinds: names such as ``"data-placement"``; none means every kind.
        on_compile: called with the name of a kind if something has to be compiled for it.
        cancel: set it from any thread to stop compiling; Ctrl-C does the same. What was compiled until then is kept.

    Raises:
        UsageError: there is no such kind.
        Interrupted: cancelled before everything was compiled.
    """
    a_function("on_compile", on_compile)
    CANCEL("cancel", cancel)
    for kind in [kind_named(name) for name in kinds or kind_names()]:
        rehearse(kind, all_needed(kind), cancel, partial(on_compile, kind.name))
