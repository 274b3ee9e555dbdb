"""Scalar random numbers in compiled search kernels: the generator's state is an array of one number."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import kernel


@kernel
def uniform(random: NDArray[np.uint64]) -> float:
    """A random number of a search in [0, 1) by xorshift64."""
    x: np.uint64 = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    number: float = (x >> np.uint64(11)) * (1.0 / 9007199254740992.0)
    return number


@kernel
def below(random: NDArray[np.uint64], n: int) -> np.int64:
    """An integer in 0 … n − 1."""
    return np.int64(uniform(random) * n)


@kernel
def metropolis_threshold(random: NDArray[np.uint64], temperature: float) -> float:
    """The largest change of the objective that Metropolis accepts this time, drawn before the change is priced."""
    return 0.0 if temperature <= 0.0 else -temperature * math.log(1.0 - uniform(random))


def gumbel(draws: int, extra: int) -> NDArray[np.float32]:
    """Noise to take from, some in a row: so many quantiles of a Gumbel distribution in random order, and some of them
    again. Of values with such noise, times a temperature, the largest is each as often as their exponentials weigh."""
    quantiles = -np.log(-np.log((np.arange(draws) + 0.5) / draws))
    return np.resize(np.random.default_rng(draws).permutation(quantiles), draws + extra).astype(np.float32)
