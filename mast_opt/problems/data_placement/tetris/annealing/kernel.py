"""Compiled simulated-annealing loop of tetris: proposes moves, accepts or rejects them, cools; and its time slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.tetris.annealing.params import OperatorParams
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
from mast_opt.problems.data_placement.tetris.operators.workspace import Workspace, workspace_for
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


def proposals_of(params: OperatorParams, compound: bool, guided: bool = False, swaps: bool = True) -> Proposals:
    """Mix of changes for the kernel: with compound moves or without, with their swaps or without, guided or not.

    A share of 0 switches an operator off.
    """
    closures = (params.compound_move, params.compound_swap if swaps else 0.0) if compound else (0.0, 0.0)
    amounts = np.cumsum([params.move, params.guided_twins if guided else params.twins, params.swap, *closures])
    return Proposals(
        np.asarray(amounts / amounts[-1], np.float64),
        guided,
        params.surrogate_share,
        params.holder_share,
        params.window,
        params.partners,
    )


def annealing_workspace(a: TetrisArrays, params: OperatorParams) -> Workspace:
    """Space for one thread of the annealing."""
    return workspace_for(a, params.closure_workloads, params.closure_datasets, params.partners)


class KernelRuns:
    """The annealing of one problem by several threads, each with scratch space of its own.

    Args:
        refuse: may work be left out?
        small: is the instance small enough for multistart annealing? Datasets move with their closures then, even where
            remote reads are allowed.
    """

    def __init__(
        self, a: TetrisArrays, refuse: bool, threads: int, params: OperatorParams, small: bool = False
    ) -> None:
        self.refuse, self.params = refuse, params
        self._scratch: list[Workspace] = [annealing_workspace(a, params) for _ in range(threads)]
        self._reads_have_a_price = a.remote_reads and a.remote_price > 0
        self.mix = proposals_of(params, compound=small or not a.remote_reads, swaps=not a.remote_reads)

    def guide(self) -> None:
        """Propose changes where the data is from now on, unless remote reads cost nothing or are forbidden."""
        if self._reads_have_a_price:
            self.mix = proposals_of(self.params, compound=False, guided=True)

    def run(
        self, thread: int, part: Subproblem, steps: int, falls: Iterable[tuple[float, float]], over: Callable[[], bool]
    ) -> float:
        """Anneal with ``steps`` changes for every fall of the temperature, until ``over``; returns the change of the
        cost."""
        change = 0.0
        for hot, cold in falls:
            change += anneal(part, steps, hot, cold, self.refuse, self._scratch[thread], self.mix)
            if over():
                break
        return change
