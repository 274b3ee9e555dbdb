"""Delta evaluation of moves in tetris: term by term, in time independent of instance size (peak: of regions)."""

from __future__ import annotations

from mast_opt.core.jit import kernel
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.state import TetrisState


@kernel
def penalty_reduction(a: TetrisArrays, used: int, limit: int, amount: int) -> float:
    """Cost change, ≤ 0, of taking ``amount`` out of a limit that may be exceeded."""
    over = used - limit
    return 0.0 if over <= 0 else -a.relief * min(over, amount) / max(limit, 1)


@kernel
def region_worth(a: TetrisArrays, w: int, r: int) -> float:
    """Savings of w in r whatever its option, by the share that stays there."""
    share = 0.0
    for c in range(a.today_start[w], a.today_start[w + 1]):
        if a.today_region[c] == r:
            share += a.today_share[c]
    worth: float = share * a.move_price[w]
    return worth


@kernel
def option_worth(a: TetrisArrays, w: int, o: int, r: int) -> float:
    """Savings of w on option o in r (R: left out), by the share that keeps its GPU type, less what the run costs."""
    return 0.0 if r >= a.run_price.shape[1] else a.kept_share[o] * a.retype_price[w] - a.run_price[o, r]


@kernel
def _balance(a: TetrisArrays, s: TetrisState, r: int, k: int, p: int, change: int) -> float:
    """Change of the overload and idle terms when demand[r,k,p] changes."""
    supply = a.supply[r, k]
    before = s.demand[r, k, p]
    after = before + change
    delta: float = a.overload_price[k, p] * (max(after - supply, 0) - max(before - supply, 0))
    if p == s.demand.shape[2] - 1:
        delta += a.idle_price[k] * (max(supply - after, 0) - max(supply - before, 0))
    return delta


@kernel
def _new_peak(a: TetrisArrays, s: TetrisState, k: int, p: int, r0: int, g0: int, r1: int, g1: int) -> float:
    """peak[k,p] after demand leaves r0 and enters r1 (−1: neither)."""
    peak: float = s.peak[k, p]
    if r0 >= 0:
        was = s.demand[r0, k, p] / a.supply[r0, k]
        if was >= peak:
            peak = a.peak_level[p]
            for r in range(a.supply.shape[0]):
                if a.supply[r, k] > 0 and r != r1:
                    left = s.demand[r, k, p] - (g0 if r == r0 else 0)
                    peak = max(peak, left / a.supply[r, k])
    if r1 >= 0:
        held = s.demand[r1, k, p] + g1 - (g0 if r1 == r0 else 0)
        peak = max(peak, held / a.supply[r1, k])
    return peak


@kernel
def gpu_change(
    a: TetrisArrays, s: TetrisState, tier: int, r0: int, k0: int, g0: int, r1: int, k1: int, g1: int, make: bool
) -> float:
    """Change of the GPU terms when g0 of type k0 leaves r0 and g1 of type k1 enters r1; made if ``make``."""
    kinds, regions = s.demand.shape[1], s.demand.shape[0]
    leaves = r0 < regions and k0 < kinds and g0 > 0
    enters = r1 < regions and k1 < kinds and g1 > 0
    delta = 0.0
    for p in range(tier, s.demand.shape[2]):
        if leaves and enters and k0 == k1:
            peak = _new_peak(a, s, k0, p, r0, g0, r1, g1)
            delta += a.peak_price[p] * (peak - s.peak[k0, p])
            if r0 == r1:
                delta += _balance(a, s, r0, k0, p, g1 - g0)
            else:
                delta += _balance(a, s, r0, k0, p, -g0) + _balance(a, s, r1, k1, p, g1)
            if make:
                s.peak[k0, p] = peak
        else:
            if leaves:
                peak = _new_peak(a, s, k0, p, r0, g0, -1, 0)
                delta += a.peak_price[p] * (peak - s.peak[k0, p]) + _balance(a, s, r0, k0, p, -g0)
                if make:
                    s.peak[k0, p] = peak
            if enters:
                peak = _new_peak(a, s, k1, p, -1, 0, r1, g1)
                delta += a.peak_price[p] * (peak - s.peak[k1, p]) + _balance(a, s, r1, k1, p, g1)
                if make:
                    s.peak[k1, p] = peak
        if make:
            if leaves:
                s.demand[r0, k0, p] -= g0
            if enters:
                s.demand[r1, k1, p] += g1
    return delta
