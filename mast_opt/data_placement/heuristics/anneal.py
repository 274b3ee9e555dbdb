"""Simulated annealing over the moves: picks changes, cools, and stays in compiled code for milliseconds at a time."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mast_opt.data_placement.heuristics.arrays import Arrays
from mast_opt.data_placement.heuristics.herd import WORKLOADS, herd
from mast_opt.data_placement.heuristics.moves import _uniform, below, exchange, move, shift, swap, toggle
from mast_opt.data_placement.heuristics.state import State

MOVE, TWINS, SWAP, TOGGLE, SHIFT, EXCHANGE = 0.5, 0.69, 0.83, 0.88, 0.92, 0.96
"""Cumulative shares of the kinds of change; the rest are herds."""
NEAR = 0.6
"""Share of the moves that aim at a region which already holds something that the workload reads."""


@njit(cache=True)
def _holder(s: State, i, other):  # type: ignore[no-untyped-def]
    """A random region that holds i, not ``other``; −1 if there is none."""
    regions = s.place.shape[1]
    first = below(s.random, regions)
    for step in range(regions):
        r = first + step
        if r >= regions:
            r -= regions
        if r != other and s.place[i, r]:
            return r
    return -1


@njit(cache=True)
def _target(a: Arrays, s: State, w, refuse):  # type: ignore[no-untyped-def]
    """A region to try w in."""
    regions = s.place.shape[1]
    reads = a.read_start[w + 1] - a.read_start[w]
    if reads > 0 and _uniform(s.random) < NEAR:
        i = a.read_dataset[a.read_start[w] + below(s.random, reads)]
        r = _holder(s, i, s.region[w])
        if r >= 0:
            return r
    return below(s.random, regions + 1 if refuse else regions)


@njit(cache=True, nogil=True)
def anneal(a: Arrays, s: State, steps, hot, cold, refuse):  # type: ignore[no-untyped-def]
    """Try ``steps`` changes while the temperature falls from ``hot`` to ``cold``; returns the change in cost."""
    workloads, (datasets, regions) = len(a.tier), s.place.shape
    widest = 1
    for w in range(workloads):
        widest = max(widest, a.read_start[w + 1] - a.read_start[w])
    first, second = np.zeros(widest, np.int8), np.zeros(widest, np.int8)
    many = np.zeros((WORKLOADS, widest), np.int8)
    cooling = math.exp(math.log(cold / hot) / max(steps, 1)) if hot > 0.0 else 1.0
    temperature = hot
    total = 0.0
    for _ in range(steps):
        temperature *= cooling
        kind = _uniform(s.random)
        if kind < MOVE:
            w = below(s.random, workloads)
            o = a.option_start[w] + below(s.random, a.option_start[w + 1] - a.option_start[w])
            r = _target(a, s, w, refuse)
            if a.option_region[o, r] and (r != s.region[w] or o != s.option[w]):
                total += move(a, s, w, o, r, temperature, first)
        elif kind < SWAP:
            w = below(s.random, workloads)
            if kind < TWINS:
                c = a.twin_class[w]
                v = a.twin[a.twin_start[c] + below(s.random, a.twin_start[c + 1] - a.twin_start[c])]
                ow = a.option_start[w] + s.option[v] - a.option_start[v]
                ov = a.option_start[v] + s.option[w] - a.option_start[w]
            else:
                v = below(s.random, workloads)
                ow, ov = s.option[w], s.option[v]
            if v != w:
                total += swap(a, s, w, ow, v, ov, temperature, first, second)
        elif kind < TOGGLE:
            total += toggle(a, s, below(s.random, datasets), below(s.random, regions), temperature)
        elif kind < SHIFT:
            i = below(s.random, datasets)
            r = _holder(s, i, -1)
            if r >= 0:
                total += shift(a, s, i, r, below(s.random, regions), temperature)
        elif kind < EXCHANGE:
            i = below(s.random, datasets)
            r = _holder(s, i, -1)
            if r >= 0:
                total += exchange(a, s, i, below(s.random, datasets), r, temperature)
        else:
            i = below(s.random, datasets)
            r = _holder(s, i, -1)
            if r >= 0:
                total += herd(a, s, i, r, below(s.random, regions), temperature, many)
    return total
