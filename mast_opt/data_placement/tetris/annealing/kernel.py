"""Simulated annealing over the moves: picks changes, cools, and stays in compiled code for milliseconds at a time."""

from __future__ import annotations

import math

from mast_opt.core.jit import compiled, kernel
from mast_opt.data_placement.tetris.decomposition import Part
from mast_opt.data_placement.tetris.instance_arrays import Arrays
from mast_opt.data_placement.tetris.operators.candidate_lists import (
    WIDTH,
    Window,
    forget,
    likely_region,
    likely_twin,
    next_window,
    within,
)
from mast_opt.data_placement.tetris.operators.compound_moves import herd, trade
from mast_opt.data_placement.tetris.operators.replica_moves import exchange, shift, toggle
from mast_opt.data_placement.tetris.operators.workload_moves import move, swap
from mast_opt.data_placement.tetris.operators.workspace import Scratch
from mast_opt.data_placement.tetris.params import EXCHANGE, HERD, MOVE, SHIFT, SWAP, TOGGLE, TWINS, Mix
from mast_opt.data_placement.tetris.state import State
from mast_opt.search.random_scalar import below, uniform

GUESSED = 0.5
"""Share of the moves whose region is guessed where they are guided."""
NEAR = 0.6
"""Share of the others that aim at a region which already holds something that the workload reads."""


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
def _change_work(
    a: Arrays, s: State, part: Part, window: Window, kind, temperature, refuse, scratch: Scratch, mix: Mix
):
    """Try to move a workload, or to exchange two."""
    w = part.workloads[within(s.random, window.begin, window.share, len(part.workloads))]
    if kind < mix.upto[MOVE]:
        o = a.option_start[w] + below(s.random, a.option_start[w + 1] - a.option_start[w])
        r = -1
        if mix.guided and uniform(s.random) < GUESSED:
            r = likely_region(a, s, part, w, o, temperature, scratch.guess)
        if r < 0:
            r = _target(a, s, part, w, refuse)
        if a.option_region[o, r] and (r != s.region[w] or o != s.option[w]):
            return move(a, s, w, o, r, temperature, scratch.first)
        return 0.0
    if kind < mix.upto[TWINS]:
        if mix.guided:
            v = likely_twin(a, s, part, window, w, temperature, scratch.guess)
        else:
            first, last = a.twin_start[a.twin_class[w]], a.twin_start[a.twin_class[w] + 1]
            v = a.twin[first + within(s.random, window.partners, window.share, last - first)]
        ow = a.option_start[w] + s.option[v] - a.option_start[v]
        ov = a.option_start[v] + s.option[w] - a.option_start[w]
    else:
        v = part.workloads[within(s.random, window.partners, window.share, len(part.workloads))]
        ow, ov = s.option[w], s.option[v]
    if v != w and part.mine[s.region[v]]:
        return swap(a, s, w, ow, v, ov, temperature, scratch.first, scratch.second)
    return 0.0


@kernel
def _change_data(a: Arrays, s: State, part: Part, window: Window, kind, temperature, scratch: Scratch, mix: Mix):
    """Try to change the replicas of a dataset, or to move it with its readers."""
    datasets = s.place.shape[0]
    i = within(s.random, window.begin, window.share, datasets)
    r1 = part.regions[below(s.random, len(part.regions))]
    if kind < mix.upto[TOGGLE]:
        return toggle(a, s, i, r1, temperature)
    r0 = _holder(s, part, i, -1)
    if r0 < 0:
        return 0.0
    if kind < mix.upto[SHIFT]:
        return shift(a, s, i, r0, r1, temperature)
    if kind < mix.upto[EXCHANGE]:
        j = within(s.random, window.partners, window.share, datasets)
        return exchange(a, s, i, j, r0, temperature)
    if kind < mix.upto[HERD]:
        return herd(a, s, i, r0, r1, temperature, scratch)
    j = within(s.random, window.partners, window.share, datasets)
    r2 = _holder(s, part, j, r0)
    return trade(a, s, i, r0, j, r2, temperature, scratch) if r2 >= 0 else 0.0


@kernel
def _anneal(a: Arrays, s: State, part: Part, steps, hot, cooling, refuse, scratch: Scratch, mix: Mix):
    temperature, total, count = hot, 0.0, len(part.workloads)
    share = WIDTH / max(count, WIDTH)
    for step in range(steps):
        if step % WIDTH == 0:
            window = next_window(s.random, share)
            forget(scratch.guess)
        temperature *= cooling
        kind = uniform(s.random)
        if kind < mix.upto[SWAP]:
            if count > 0:
                total += _change_work(a, s, part, window, kind, temperature, refuse, scratch, mix)
        else:
            total += _change_data(a, s, part, window, kind, temperature, scratch, mix)
    return total


@compiled
def anneal(part: Part, steps, hot, cold, refuse, scratch: Scratch, mix: Mix):
    """Try ``steps`` changes while the temperature falls from ``hot`` to ``cold``; returns the change in cost.

    ``mix`` is what ``mix_of`` makes.
    """
    cooling = math.exp(math.log(cold / hot) / max(steps, 1)) if hot > 0.0 else 1.0
    return _anneal(part.arrays, part.state, part, steps, hot, cooling, refuse, scratch, mix)
