"""Processes that need almost the same: where machines are nearly full, hardly any others can trade places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

PARTNERS = 64
"""Listed for each process."""
PROCESSES = 10_000
"""Most processes for which such lists are made: with more, the same time is better spent on twice as many changes."""


def alike(price: NDArray[np.float64]) -> NDArray[np.int64]:
    """[P, ·] those whose exchange with a process changes the least, the most alike first.

    ``price`` [P, J] is what each process adds to a machine where everything is above its safety capacity. Processes
    that are equal are not listed for one another, as their exchange changes nothing, and of several equal ones only
    one is listed for another process.
    """
    distinct, kind = np.unique(price, axis=0, return_inverse=True)
    kind = kind.ravel()
    count = min(PARTNERS, len(distinct) - 1)
    if count < 1 or len(price) > PROCESSES:
        return np.zeros((len(price), 0), np.int64)
    near: NDArray[np.int64] = cKDTree(distinct).query(distinct, k=count + 1, p=1)[1][kind, 1:]
    by_kind = np.argsort(kind, kind="stable")
    equals = np.bincount(kind)
    first = np.cumsum(equals) - equals
    turn = np.arange(len(price))[:, None] % equals[near]
    listed: NDArray[np.int64] = by_kind[first[near] + turn]
    return listed
