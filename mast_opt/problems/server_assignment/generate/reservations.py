"""Generated reservations of server assignment: what they are worth, have today and ask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.server_assignment.generate.fleets import GPU, SPEED, GeneratedFleet
from mast_opt.problems.server_assignment.problem import EMBEDDED, NONE, POOL, SHARED, Bools, Ints

Floats = NDArray[np.float64]
GPU_CLAIMS = 0.25
"""Share of reservations that need GPUs."""
FUSSY = 0.25
"""Share of the others that take only the newer generations."""


def values(rng: np.random.Generator, reservations: int) -> Ints:
    """[Q, T] mrru of a server of each type: newer generations are worth more, to some claims much more."""
    on_gpus = rng.random(reservations) < GPU_CLAIMS
    on_gpus[0] = False
    fussy = rng.random(reservations) < FUSSY
    gain = rng.uniform(0.3, 1.2, reservations)
    worth = np.round(100 * SPEED ** gain[:, None]).astype(np.int64) * 10
    usable = on_gpus[:, None] == GPU
    usable[:, 0] &= ~fussy
    return np.where(usable, worth, 0)


def sizes(rng: np.random.Generator, reservations: int) -> Floats:
    """[Q] relative sizes: a few claims take most of the fleet."""
    return np.minimum(rng.pareto(1.2, reservations) + 0.2, 12.0)


def owners(
    rng: np.random.Generator, fleet: GeneratedFleet, value: Ints, size: Floats, *, free: float, scattered: bool = True
) -> Ints:
    """[S] who has each server, in proportion to the sizes of those that can use it; Q for the free ones.

    ``scattered``: servers are handed out all over the fleet, not one switchboard after another.
    """
    nobody = len(value)
    owner = np.full(len(fleet.server_type), nobody, np.int64)
    for kind in range(value.shape[1]):
        mine = np.flatnonzero(fleet.server_type == kind)
        weight = np.where(value[:, kind] > 0, size, 0.0)
        if not weight.any():
            continue
        edge = np.round(np.cumsum(weight) / weight.sum() * (1 - free) * len(mine)).astype(np.int64)
        spots = rng.permutation(mine) if scattered else mine
        handed = np.repeat(np.arange(nobody), np.diff(edge, prepend=0))
        owner[spots[: len(handed)]] = handed
    return owner


def buffers(rng: np.random.Generator, reservations: int) -> Ints:
    """[Q] most are embedded; where there are five claims or more, the last is a pool for those that share."""
    if reservations < 5:
        return np.full(reservations, EMBEDDED)
    buffer = rng.choice([EMBEDDED, SHARED, NONE], reservations, p=[0.75, 0.15, 0.1])
    buffer[-1] = POOL
    return buffer.astype(np.int64)


def limits(rng: np.random.Generator, asked: Ints, buffer: Ints, boards: int) -> tuple[Bools, Ints]:
    """Mask of the claims that have a spread limit, and the limits in thousandths: three times an even share, and never
    less than two good servers."""
    limited = (rng.random(len(asked)) < 0.5) & (buffer == EMBEDDED) & (asked > 0)
    few = 2 * 1000 * SPEED.max() / np.maximum(asked, 1)
    limit = np.ceil(1000 * np.clip(np.maximum(3 / boards, few), 0, 1)).astype(np.int64)
    return limited, np.where(limited, limit, 0)
