"""Projections of tetris's primal-dual method onto the choices of a workload or a dataset (simplex, capped simplex).

Entries of what must not be chosen are −``BARRED``, of what must be, ``BARRED``.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import kernel, summing
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles

SINGLE = np.float32
NONE, WHOLE = SINGLE(0), SINGLE(1)
BARRED = SINGLE(1e20)
"""Far above any cost, far from overflow even when multiplied by a step."""
CLOSE = SINGLE(1e-6)
"""A sum is right when it is within so much."""
TRIES = 40


@summing
def least(values: Singles, count: int) -> np.float32:
    """The least of values[:count]."""
    found: np.float32 = values[0]
    for j in range(1, count):
        found = values[j] if values[j] < found else found
    return found


@summing
def _most(values: Singles, count: int) -> np.float32:
    found: np.float32 = values[0]
    for j in range(1, count):
        found = values[j] if values[j] > found else found
    return found


@summing
def _above(values: Singles, count: int, shift: np.float32) -> tuple[np.float32, int]:
    """(Σ of what exceeds the shift, how many do)."""
    total, number = NONE, 0
    for j in range(count):
        total += values[j] - shift if values[j] > shift else NONE
        number += 1 if values[j] > shift else 0
    return total, number


@kernel
def simplex_shift(values: Singles, count: int) -> np.float32:
    """The shift with which values[:count] land on {x ≥ 0, Σ x = 1}: Newton's method from below (Michelot 1986)."""
    shift, before = _most(values, count) - WHOLE, count + 1
    while True:
        total, number = _above(values, count, shift)
        if number >= before or number == 0:
            return shift
        shift += (total - WHOLE) / SINGLE(number)
        before = number


@summing
def _clipped(values: Singles, count: int, shift: np.float32) -> tuple[np.float32, int]:
    """(Σ of the values less the shift, clipped to 0 … 1, how many are not clipped)."""
    total, inside = NONE, 0
    for j in range(count):
        y = values[j] - shift
        inside += 1 if NONE < y < WHOLE else 0
        y = y if y > NONE else NONE
        total += y if y < WHOLE else WHOLE
    return total, inside


@summing
def _extremes(values: Singles, count: int) -> tuple[np.float32, np.float32]:
    """(least, most) of what may be chosen or not."""
    first, last = BARRED, -BARRED
    for j in range(count):
        free = -BARRED < values[j] < BARRED
        first = values[j] if free and values[j] < first else first
        last = values[j] if free and values[j] > last else last
    return first, last


@kernel
def copies_shift(values: Singles, count: int, fewest: int, most: int) -> np.float32:
    """The shift with which values[:count] land on {0 ≤ y ≤ 1, fewest ≤ Σ y ≤ most}."""
    total, inside = _clipped(values, count, NONE)
    target = SINGLE(fewest) if total < fewest else SINGLE(most)
    if fewest <= total <= most:
        return NONE
    first, last = _extremes(values, count)
    low, high = (min(first - WHOLE, NONE), NONE) if total < target else (NONE, max(last, NONE))
    shift = NONE
    for _ in range(TRIES):  # Newton's method, bracketed
        if abs(total - target) < CLOSE:
            break
        if total > target:
            low = shift
        else:
            high = shift
        shift = shift + (total - target) / SINGLE(inside) if inside > 0 else SINGLE(0.5) * (low + high)
        if not low < shift < high:
            shift = SINGLE(0.5) * (low + high)
        total, inside = _clipped(values, count, shift)
    return shift
