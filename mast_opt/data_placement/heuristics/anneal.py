"""Simulated annealing over the moves: picks changes, cools, and stays in compiled code for milliseconds at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mast_opt.compiled import compiled, kernel
from mast_opt.data_placement.heuristics.arrays import Arrays
from mast_opt.data_placement.heuristics.chance import below, uniform
from mast_opt.data_placement.heuristics.herd import herd
from mast_opt.data_placement.heuristics.moves import move, swap
from mast_opt.data_placement.heuristics.parts import Part, Scratch
from mast_opt.data_placement.heuristics.replicas import exchange, shift, toggle
from mast_opt.data_placement.heuristics.state import State
from mast_opt.data_placement.heuristics.trade import trade
from mast_opt.mip import FloatArray

SHARES = {
    "move": 0.5,
    "twins": 0.19,
    "swap": 0.14,
    "toggle": 0.05,
    "shift": 0.04,
    "exchange": 0.04,
    "herd": 0.04,
    "trade": 0.2,
}
"""How often each kind of change is tried, in proportion."""
MOVE, TWINS, SWAP, TOGGLE, SHIFT, EXCHANGE, HERD = range(7)
NEAR = 0.6
"""Share of the moves that aim at a region which already holds something that the workload reads."""


def mix_of(shares: Mapping[str, float] = SHARES) -> FloatArray:
    """[8] cumulative shares, scaled to 1. A share of 0 switches a kind of change off."""
    amounts = np.cumsum([shares[name] for name in SHARES])
    return np.asarray(amounts / amounts[-1], np.float64)


def shares_for(remote_reads: bool) -> dict[str, float]:
    """The shares for a problem; trades are worth their time only where work cannot leave its data behind."""
    return SHARES | {"trade": 0.0} if remote_reads else SHARES


@kernel
def _holder(s: State, part: Part, i, other):
    """A random region of the part that holds i, not ``other``; −1 if there is none."""
    regions = len(part.regions)
    first = below(s.random, regions)
    for step in range(regions):
        at = first + step
        r = part.regions[at - regions if at >= regions else at]
        if r != other and s.place[i, r]:
            return r
    return -1


@kernel
def _target(a: Arrays, s: State, part: Part, w, refuse):
    """A region to try w in."""
    regions = len(part.regions)
    reads = a.read_start[w + 1] - a.read_start[w]
    if reads > 0 and uniform(s.random) < NEAR:
        i = a.read_dataset[a.read_start[w] + below(s.random, reads)]
        r = _holder(s, part, i, s.region[w])
        if r >= 0:
            return r
    at = below(s.random, regions + 1 if refuse else regions)
    return s.place.shape[1] if at == regions else part.regions[at]


@kernel
def _change_work(a: Arrays, s: State, part: Part, kind, temperature, refuse, scratch: Scratch, mix):
    """Try to move a workload, or to exchange two."""
    w = part.workloads[below(s.random, len(part.workloads))]
    if kind < mix[MOVE]:
        o = a.option_start[w] + below(s.random, a.option_start[w + 1] - a.option_start[w])
        r = _target(a, s, part, w, refuse)
        if a.option_region[o, r] and (r != s.region[w] or o != s.option[w]):
            return move(a, s, w, o, r, temperature, scratch.first)
        return 0.0
    if kind < mix[TWINS]:
        c = a.twin_class[w]
        v = a.twin[a.twin_start[c] + below(s.random, a.twin_start[c + 1] - a.twin_start[c])]
        ow = a.option_start[w] + s.option[v] - a.option_start[v]
        ov = a.option_start[v] + s.option[w] - a.option_start[w]
    else:
        v = part.workloads[below(s.random, len(part.workloads))]
        ow, ov = s.option[w], s.option[v]
    if v != w and part.mine[s.region[v]]:
        return swap(a, s, w, ow, v, ov, temperature, scratch.first, scratch.second)
    return 0.0


@kernel
def _change_data(a: Arrays, s: State, part: Part, kind, temperature, scratch: Scratch, mix):
    """Try to change the replicas of a dataset, or to move it with its readers."""
    datasets = s.place.shape[0]
    i, r1 = below(s.random, datasets), part.regions[below(s.random, len(part.regions))]
    if kind < mix[TOGGLE]:
        return toggle(a, s, i, r1, temperature)
    r0 = _holder(s, part, i, -1)
    if r0 < 0:
        return 0.0
    if kind < mix[SHIFT]:
        return shift(a, s, i, r0, r1, temperature)
    if kind < mix[EXCHANGE]:
        return exchange(a, s, i, below(s.random, datasets), r0, temperature)
    if kind < mix[HERD]:
        return herd(a, s, i, r0, r1, temperature, scratch)
    j = below(s.random, datasets)
    r2 = _holder(s, part, j, r0)
    return trade(a, s, i, r0, j, r2, temperature, scratch) if r2 >= 0 else 0.0


@kernel
def _anneal(a: Arrays, s: State, part: Part, steps, hot, cooling, refuse, scratch: Scratch, mix):
    temperature, total = hot, 0.0
    for _ in range(steps):
        temperature *= cooling
        kind = uniform(s.random)
        if kind < mix[SWAP]:
            if len(part.workloads) > 0:
                total += _change_work(a, s, part, kind, temperature, refuse, scratch, mix)
        else:
            total += _change_data(a, s, part, kind, temperature, scratch, mix)
    return total


@compiled
def anneal(part: Part, steps, hot, cold, refuse, scratch: Scratch, mix):
    """Try ``steps`` changes while the temperature falls from ``hot`` to ``cold``; returns the change in cost.

    ``mix`` holds the cumulative shares of the kinds of change, as ``mix_of`` makes them.
    """
    cooling = math.exp(math.log(cold / hot) / max(steps, 1)) if hot > 0.0 else 1.0
    return _anneal(part.arrays, part.state, part, steps, hot, cooling, refuse, scratch, mix)
