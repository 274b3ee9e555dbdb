"""Which workloads and datasets are changed for a while: what they look at then stays in the processor's cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.jit import kernel
from mast_opt.search.random_scalar import uniform

WIDTH = 2_000
"""Workloads in a window, which lasts for as many changes. Fewer, and they find too few partners; more, and changes take
longer."""


class Window(NamedTuple):
    """One part of all that there is, in order, and another one where partners for an exchange are drawn. Both begin
    anywhere; what lies beyond the end lies at the beginning."""

    begin: float
    partners: float
    share: float


@kernel
def next_window(random, share):
    """Windows that begin at random, or all there is."""
    if share >= 1.0:
        return Window(0.0, 0.0, 1.0)
    return Window(uniform(random), uniform(random), share)


@kernel
def within(random, begin, share, n):
    """A random index in the part of 0 … n − 1 that begins there."""
    at = begin + uniform(random) * share
    return np.int64((at - 1.0 if at >= 1.0 else at) * n)
