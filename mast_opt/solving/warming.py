"""Compiling the kernels before they are needed."""

from __future__ import annotations

from collections.abc import Callable

from mast_opt.kinds import kind_named, kind_names
from mast_opt.solving.compiling import all_needed, rehearse


def warm_up(*kinds: str, on_compile: Callable[[str], None] = lambda kind: None) -> None:
    """Compile every kernel, or load it from the cache, so that no solve and no live fleet waits for the compiler.

    Compiling takes up to a minute a kind, once for an installation; loading takes a second. ``mast-opt warm-up`` does
    the same. A solve that finds its kernels missing compiles them itself, before its time limit begins.

    Args:
        kinds: names such as ``"data-placement"``; none means every kind.
        on_compile: called with the name of a kind if something has to be compiled for it.

    Raises:
        UsageError: there is no such kind.
    """
    for kind in [kind_named(name) for name in kinds or kind_names()]:
        rehearse(kind, all_needed(kind), on_compile=lambda name=kind.name: on_compile(name))  # type: ignore[misc]
