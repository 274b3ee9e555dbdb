"""Compiling the heuristics before they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mast_opt.kind import Kind
from mast_opt.kinds import kind_named, kind_names
from mast_opt.solving.dispatch import solve

SMALLEST = 6
"""Size, at most, of the instance that compiles the kernels."""


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
    """Compile the kernels of one heuristic, or load them from the cache, by one round on the smallest instance, and one
    on the smallest that counts as large."""
    iterations = None if heuristic in kind.constructive else 1
    solve(smallest(kind), heuristic, iterations=iterations, threads=1)
    if kind.large is not None:
        family = next(iter(kind.families.values()))
        large = family.generate(np.random.default_rng(0), **kind.large)
        solve(large, heuristic, iterations=iterations, threads=1)


def smallest(kind: Kind[Any, Any]) -> Any:
    """An instance of the kind's first family, as small as does not matter."""
    family = next(iter(kind.families.values()))
    sizes = {size: min(default, SMALLEST) for size, default in family.sizes.items()}
    return family.generate(np.random.default_rng(0), **sizes)
