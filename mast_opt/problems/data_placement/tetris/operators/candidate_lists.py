"""Candidate lists of tetris's operators: regions by a surrogate cost of reads; active windows of workloads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import kernel
from mast_opt.problems.data_placement.tetris.decomposition import Subproblem
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.operators.delta_costs import gpu_change
from mast_opt.problems.data_placement.tetris.operators.workspace import NOISES, SurrogateBuffers
from mast_opt.problems.data_placement.tetris.state import TetrisState
from mast_opt.problems.search.random_scalar import below, uniform


@kernel
def invalidate_cache(surrogate: SurrogateBuffers) -> None:
    """GPU prices have changed."""
    surrogate.entry_of[:] = -1


@kernel
def _local_reads(a: TetrisArrays, s: TetrisState, w: int, o: int, saved: Singles) -> None:
    """Savings of w on option o in each region that holds what it reads, and where it runs today, less its price."""
    for r in range(len(saved)):
        saved[r] = -np.float32(a.run_price[o, r])
    for n in range(a.read_start[w], a.read_start[w + 1]):
        i, price = a.read_dataset[n], np.float32(a.read_volume[n] * a.remote_price)
        for r in range(len(saved)):
            saved[r] += price * np.float32(s.place[i, r])
    for c in range(a.today_start[w], a.today_start[w + 1]):
        saved[a.today_region[c]] += np.float32(a.today_share[c] * a.move_price[w])


@kernel
def _entry_row(a: TetrisArrays, s: TetrisState, w: int, o: int, surrogate: SurrogateBuffers) -> int:
    """Row of ``surrogate.entry`` with the GPU price of option o in every region, as of a while ago."""
    twin = a.twin[a.twin_start[a.twin_class[w]]]
    asked = a.option_start[twin] + o - a.option_start[w]
    row: int = asked % len(surrogate.entry_of)
    if surrogate.entry_of[row] != asked:
        surrogate.entry_of[row] = asked
        k, g, regions = a.option_type[o], a.option_mgpu[o], s.place.shape[1]
        for r in range(regions):
            surrogate.entry[row, r] = gpu_change(a, s, a.tier[w], regions, k, 0, r, k, g, False)
    return row


@kernel
def sample_region_by_surrogate(
    a: TetrisArrays, s: TetrisState, part: Subproblem, w: int, o: int, temperature: float, surrogate: SurrogateBuffers
) -> int:
    """The part's region, other than w's, where w would cost least on option o, give or take the temperature; −1 if
    there is none with enough cores."""
    row = _entry_row(a, s, w, o, surrogate)
    _local_reads(a, s, w, o, surrogate.saved)
    noise, scale = below(s.random, NOISES), np.float32(temperature)
    least, best, here = np.float32(np.inf), -1, s.region[w]
    for at in range(len(part.regions)):
        r = part.regions[at]
        cost = surrogate.entry[row, r] - surrogate.saved[r] - scale * surrogate.noise[noise + at]
        if cost < least and r != here and a.option_region[o, r] and s.cpu[r] + a.cpu_need[w] <= a.cpu[r]:
            least, best = cost, r
    return best


@kernel
def sample_swap_partner(
    a: TetrisArrays,
    s: TetrisState,
    part: Subproblem,
    window: ActiveWindow,
    w: int,
    partners: int,
    temperature: float,
    surrogate: SurrogateBuffers,
) -> int:
    """A swap partner for w: of ``partners`` drawn among its twins, the best one in another region of the part, give or
    take the temperature; w itself if there is none."""
    _local_reads(a, s, w, s.option[w], surrogate.saved)
    c, here = a.twin_class[w], s.region[w]
    first, count = a.twin_start[c], a.twin_start[c + 1] - a.twin_start[c]
    noise, scale = below(s.random, NOISES), np.float32(temperature)
    most, best = np.float32(-np.inf), w
    for at in range(partners):
        v = a.twin[first + draw_index(s.random, window.partners, window.share, count)]
        r = s.region[v]
        if r == here or r == len(surrogate.saved) or not part.mine[r]:
            continue
        saved = surrogate.saved[r] + scale * surrogate.noise[noise + at]
        if here < len(surrogate.saved):
            for n in range(a.read_start[v], a.read_start[v + 1]):
                i, price = a.read_dataset[n], np.float32(a.read_volume[n] * a.remote_price)
                saved += price * (np.float32(s.place[i, here]) - np.float32(s.place[i, r]))
        if saved > most:
            most, best = saved, v
    return best


class ActiveWindow(NamedTuple):
    """One part of all that there is, in order, and another one where partners for an exchange are drawn. Both begin
    anywhere; what lies beyond the end lies at the beginning."""

    begin: float
    partners: float
    share: float


@kernel
def draw_window(random: NDArray[np.uint64], share: float) -> ActiveWindow:
    """Windows that begin at random, or all there is."""
    if share >= 1.0:
        return ActiveWindow(0.0, 0.0, 1.0)
    return ActiveWindow(uniform(random), uniform(random), share)


@kernel
def draw_index(random: NDArray[np.uint64], begin: float, share: float, n: int) -> int:
    """A random index in the part of 0 … n − 1 that begins there."""
    at = begin + uniform(random) * share
    return int((at - 1.0 if at >= 1.0 else at) * n)
