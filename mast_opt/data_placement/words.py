"""Amounts and lists of names as a planner says them."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 6
"""Names that are listed before the rest is counted."""


def tb(mb: float) -> str:
    return f"{mb / 1e6:.12g} TB"


def cores(mcores: float) -> str:
    return f"{mcores / 1000:.12g} cores"


def gpus(mgpu: float) -> str:
    return f"{mgpu / 1000:.12g} GPUs"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; a long list is cut and the rest counted."""
    if len(names) > NAMED + 1:
        names = [*names[:NAMED], f"{len(names) - NAMED} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(noun: str, names: Sequence[str]) -> str:
    """``dataset a``, ``datasets a and b``."""
    return f"{noun}{'s' if len(names) > 1 else ''} {listed(names)}"
