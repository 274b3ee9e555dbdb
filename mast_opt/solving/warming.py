"""Compiling the heuristics before they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mast_opt.kind import Kind
from mast_opt.kinds import kind_named, kind_names
from mast_opt.solving.dispatch import solve

SMALLEST = 6
"""Size, at most, of the instance that compiles the kernels."""
SEVERAL = 8
"""Rounds on a large instance, after which the search has come to all that it does."""


def warm_up(*kinds: str) -> None:
    """Compile the kernels of the heuristics, or load them from the cache, so that the first solve does not wait.

    Compiling takes about a minute a kind, once for an installation; loading takes a second.

    Args:
        kinds: names such as ``"data-placement"``; none means every kind.

    Raises:
        UsageError: there is no such kind.
    """
    for name in kinds or kind_names():
        kind = kind_named(name)
        for heuristic in kind.heuristics:
            warm(kind, heuristic)


def warm(kind: Kind[Any, Any], heuristic: str) -> None:
    """Compile the kernels of one heuristic, or load them from the cache, by one round on the smallest instance, and
    several on the smallest that counts as large."""
    counted = heuristic not in kind.constructive
    solve(smallest(kind), heuristic, iterations=1 if counted else None, threads=1)
    if kind.large is not None:
        solve(_made(kind, kind.large), heuristic, iterations=SEVERAL if counted else None, threads=1)


def smallest(kind: Kind[Any, Any]) -> Any:
    """An instance of the kind's first family, as small as does not matter."""
    (family, *_) = kind.families.values()
    return _made(kind, {size: min(default, SMALLEST) for size, default in family.sizes.items()})


def _made(kind: Kind[Any, Any], sizes: Mapping[str, int]) -> Any:
    """An instance of the kind's first family."""
    (family, *_) = kind.families.values()
    return family.generate(np.random.default_rng(0), **sizes)
