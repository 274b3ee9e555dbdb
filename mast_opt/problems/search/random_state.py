"""Random-number generator of search kernels: xoroshiro128+ (Blackman and Vigna, 2018), one generator per state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.exact_sums_jit import inlined


@inlined
def draw(random: NDArray[np.uint64]) -> np.uint64:
    """Random 64 bits for a search kernel."""
    first, second = random[0], random[1]
    bits: np.uint64 = first + second
    second ^= first
    random[0] = ((first << np.uint64(24)) | (first >> np.uint64(40))) ^ second ^ (second << np.uint64(16))
    random[1] = (second << np.uint64(37)) | (second >> np.uint64(27))
    return bits


@inlined
def below(random: NDArray[np.uint64], limit: int) -> np.int64:
    """A random whole number for a search kernel, from 0 to limit − 1; limit is at most 2^32."""
    return np.int64(((draw(random) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@inlined
def uniform(random: NDArray[np.uint64]) -> np.float64:
    """A random number for a search kernel, from 0 to 1, neither of them included."""
    return (np.float64(draw(random) >> np.uint64(12)) + 0.5) * 2.0**-52
