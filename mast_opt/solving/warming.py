"""Compiling the heuristics before they are needed."""

from __future__ import annotations

import numpy as np

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
        if not kind.heuristics or not kind.families:
            continue
        family = next(iter(kind.families.values()))
        sizes = {size: min(default, SMALLEST) for size, default in family.sizes.items()}
        problem = family.generate(np.random.default_rng(0), **sizes)
        for heuristic in kind.heuristics:
            solve(problem, heuristic, iterations=1, threads=1)
