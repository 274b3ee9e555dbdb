"""Compiled simulated-annealing loop of tetris: proposes moves, accepts or rejects them, cools; milliseconds a call."""

from __future__ import annotations

import math
from typing import NamedTuple

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.tetris.decomposition import Subproblem
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.operators.candidate_lists import (
    ActiveWindow,
    draw_index,
    draw_window,
    invalidate_cache,
    sample_region_by_surrogate,
    sample_swap_partner,
)
from mast_opt.problems.data_placement.tetris.operators.compound_moves import compound_move
from mast_opt.problems.data_placement.tetris.operators.workload_moves import move_workload, swap_workloads
from mast_opt.problems.data_placement.tetris.operators.workspace import Workspace
from mast_opt.problems.data_placement.tetris.state import TetrisState
from mast_opt.problems.search.random_scalar import below, uniform

MOVE, TWINS, SWAP, COMPOUND_MOVE = range(4)
"""Positions in ``Proposals.upto``; the compound swap is last."""


@by_reference
class Proposals(NamedTuple):
    """Mix of changes that the kernel tries; the fields but the first are those of ``OperatorParams``."""

    upto: FloatArray
    """[5] cumulative shares of the operators, scaled to 1."""
    guided: bool
    """True if a surrogate of the cost guides moves and exchanges of twins."""
    surrogate_share: float
    holder_share: float
    window: int
    partners: int


@kernel
def _holder(s: TetrisState, part: Subproblem, i: int, other: int) -> int:
    """A random region of the part that holds i, not ``other``; −1 if there is none."""
    regions = len(part.regions)
    first = below(s.random, regions)
    for step in range(regions):
        at = first + step
        r = part.regions[at - regions if at >= regions else at]
        if r != other and s.place[i, r]:
            return int(r)
    return -1


@kernel
def _target(a: TetrisArrays, s: TetrisState, part: Subproblem, w: int, refuse: bool, holder_share: float) -> int:
    """A region to try w in."""
    regions = len(part.regions)
    reads = a.read_start[w + 1] - a.read_start[w]
    if reads > 0 and uniform(s.random) < holder_share:
        i = a.read_dataset[a.read_start[w] + below(s.random, reads)]
        r = _holder(s, part, i, s.region[w])
        if r >= 0:
            return r
    at = below(s.random, regions + 1 if refuse else regions)
    return s.place.shape[1] if at == regions else int(part.regions[at])


@kernel
def _change_work(
    a: TetrisArrays,
    s: TetrisState,
    part: Subproblem,
    window: ActiveWindow,
    kind: float,
    temperature: float,
    refuse: bool,
    workspace: Workspace,
    mix: Proposals,
) -> float:
    """Try to move a workload, or to exchange two."""
    w = part.workloads[draw_index(s.random, window.begin, window.share, len(part.workloads))]
    if kind < mix.upto[MOVE]:
        o = a.option_start[w] + below(s.random, a.option_start[w + 1] - a.option_start[w])
        r = -1
        if mix.guided and uniform(s.random) < mix.surrogate_share:
            r = sample_region_by_surrogate(a, s, part, w, o, temperature, workspace.surrogate)
        if r < 0:
            r = _target(a, s, part, w, refuse, mix.holder_share)
        if a.option_region[o, r] and (r != s.region[w] or o != s.option[w]):
            return move_workload(a, s, w, o, r, temperature, workspace.first)
        return 0.0
    if kind < mix.upto[TWINS]:
        if mix.guided:
            v = sample_swap_partner(a, s, part, window, w, mix.partners, temperature, workspace.surrogate)
        else:
            first, last = a.twin_start[a.twin_class[w]], a.twin_start[a.twin_class[w] + 1]
            v = a.twin[first + draw_index(s.random, window.partners, window.share, last - first)]
        ow = a.option_start[w] + s.option[v] - a.option_start[v]
        ov = a.option_start[v] + s.option[w] - a.option_start[w]
    else:
        v = part.workloads[draw_index(s.random, window.partners, window.share, len(part.workloads))]
        ow, ov = s.option[w], s.option[v]
    if v != w and part.mine[s.region[v]]:
        return swap_workloads(a, s, w, ow, v, ov, temperature, workspace.first, workspace.second)
    return 0.0


@kernel
def _change_data(
    a: TetrisArrays,
    s: TetrisState,
    part: Subproblem,
    window: ActiveWindow,
    kind: float,
    temperature: float,
    workspace: Workspace,
    mix: Proposals,
) -> float:
    """Try to move a dataset with its closure, alone or in exchange for another one."""
    datasets = s.place.shape[0]
    i = draw_index(s.random, window.begin, window.share, datasets)
    r0 = _holder(s, part, i, -1)
    if r0 < 0:
        return 0.0
    if kind < mix.upto[COMPOUND_MOVE]:
        r1 = part.regions[below(s.random, len(part.regions))]
        return compound_move(a, s, i, r0, -1, r1, temperature, workspace)
    j = draw_index(s.random, window.partners, window.share, datasets)
    r1 = _holder(s, part, j, r0)
    return compound_move(a, s, i, r0, j, r1, temperature, workspace) if r1 >= 0 else 0.0


@kernel
def _anneal(
    a: TetrisArrays,
    s: TetrisState,
    part: Subproblem,
    steps: int,
    hot: float,
    cooling: float,
    refuse: bool,
    workspace: Workspace,
    mix: Proposals,
) -> float:
    temperature, total, count = hot, 0.0, len(part.workloads)
    share = mix.window / max(count, mix.window)
    for step in range(steps):
        if step % mix.window == 0:
            window = draw_window(s.random, share)
            invalidate_cache(workspace.surrogate)
        temperature *= cooling
        kind = uniform(s.random)
        if kind < mix.upto[SWAP]:
            if count > 0:
                total += _change_work(a, s, part, window, kind, temperature, refuse, workspace, mix)
        else:
            total += _change_data(a, s, part, window, kind, temperature, workspace, mix)
    return total


@compiled
def anneal(
    part: Subproblem, steps: int, hot: float, cold: float, refuse: bool, workspace: Workspace, mix: Proposals
) -> float:
    """Try ``steps`` changes while the temperature falls from ``hot`` to ``cold``; returns the change in cost.

    ``mix`` is what ``proposals_of`` makes.
    """
    cooling = math.exp(math.log(cold / hot) / max(steps, 1)) if hot > 0.0 else 1.0
    return _anneal(part.arrays, part.state, part, steps, hot, cooling, refuse, workspace, mix)
