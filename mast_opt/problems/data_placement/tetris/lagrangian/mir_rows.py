"""Mixed-integer rounding (MIR) of GPU rows in tetris's relaxation, for gangs that do not divide; classes of equal work.

A row Σ g·run ≤ limit + slack, with whole runs and slack ≥ 0, stays valid when every size is rounded by a size d
(mixed-integer rounding; Nemhauser & Wolsey 1990): with ρ = limit mod d,

    Σ e(g)·run ≤ e(limit) + slack,    e(x) = ⌊x/d⌋·(d − ρ) + max(0, x mod d − ρ)

so a region of 100 GPUs counts as 28 when gangs of 64 count as 28: a second one exceeds it by 28, however split.
The rows ``gpu`` round the supply itself, the rows ``worst`` what the smallest possible peak allows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams


@by_reference
class MirRows(NamedTuple):
    """C classes of equal type, tier and size; J − 1 roundings of each row, the row itself being the first.

    Work of other sizes and splittable work is counted in milli-GPUs, in classes that no rounding counts.
    """

    size: Ints
    """[K, J−1] by which rows are rounded; 1, which changes nothing, where a type has fewer."""
    option_class: Ints
    """[O] C for work without GPUs."""
    option_amount: FloatArray
    """[O] 1, or the milli-GPUs of work that is counted in those."""
    over: FloatArray
    """[R, K·P·J, C] what one of a class takes of the rows ``gpu``, in milli-GPUs."""
    over_limit: FloatArray
    """[R, K, P, J]"""
    worst: FloatArray
    """[R, K·P·J, C] what one of a class takes of the rows ``worst``, as a part of the supply."""
    worst_limit: FloatArray
    """[R, K, P, J] what they hold while the peak is the smallest possible."""

    def load(self, rows: FloatArray, demand: FloatArray) -> FloatArray:
        """[R, K, P, J] what is taken of ``over`` or ``worst`` by so much [R, C + 1] of every class."""
        taken: FloatArray = np.matmul(rows, demand[:, :-1, None])[:, :, 0]
        return taken.reshape(self.over_limit.shape)

    def price(self, over: FloatArray, worst: FloatArray) -> FloatArray:
        """[C + 1, R] price of one of each class when the rows have these prices [R, K, P, J]."""
        regions, rows, _ = self.over.shape
        flat = (regions, 1, rows)
        each = np.matmul(over.reshape(flat), self.over) + np.matmul(worst.reshape(flat), self.worst)
        return np.concatenate([each[:, 0].T, np.zeros((1, regions))])


def mir_rows_of(a: TetrisArrays, floor: FloatArray, splittable: Bools, params: RelaxationParams) -> MirRows:
    """The classes and rows of a problem whose peaks [K, P] are at least ``floor``."""
    regions, kinds = a.supply.shape
    tiers = len(a.peak_price)
    owner = np.repeat(np.arange(len(a.tier)), np.diff(a.option_start))
    uses = (a.option_type < kinds) & (a.option_mgpu > 0)
    whole = np.flatnonzero(uses & ~splittable[owner])
    key = np.stack([a.option_type[whole], a.tier[owner[whole]], a.option_mgpu[whole]])
    alike, member, count = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    member = member.reshape(-1)
    distinct = _commonest(alike[:2], alike[2] * count, params.sizes)
    likely = np.bincount(a.option_type[whole], weights=1 / np.diff(a.option_start)[owner[whole]], minlength=kinds)
    crowded = likely > params.crowd * (a.supply > 0).sum(axis=0)
    rounded = _sizes_of(
        alike, np.where(crowded[alike[0]], 0, count), regions * kinds * tiers, kinds, distinct.sum(), params
    )
    distinct &= rounded.shape[1] > 0
    # first the classes that are counted in milli-GPUs, then those with a size of their own
    class_type = np.concatenate([np.repeat(np.arange(kinds), tiers), alike[0, distinct]])
    class_tier = np.concatenate([np.tile(np.arange(tiers), kinds), alike[1, distinct]])
    class_size = np.concatenate([np.ones(kinds * tiers, np.int64), alike[2, distinct]])
    counted = np.arange(len(class_type)) < kinds * tiers
    option_class = np.where(uses, a.option_type * tiers + a.tier[owner], len(class_type))
    option_amount = a.option_mgpu.astype(np.float64)
    own = np.cumsum(distinct) - 1 + kinds * tiers
    own_class = distinct[member]
    option_class[whole[own_class]] = own[member[own_class]]
    option_amount[whole[own_class]] = 1.0
    shape = (regions, kinds, tiers, 1 + rounded.shape[1])
    over, over_limit = np.zeros((*shape, len(class_type))), np.zeros(shape)
    worst, worst_limit = np.zeros_like(over), np.zeros(shape)
    for k in range(kinds):
        supply = a.supply[:, k].astype(np.float64)
        mine = class_type == k
        for p in range(tiers):
            takes = mine & (class_tier <= p)
            for table, limits, limit, unit in (
                (over, over_limit, supply, np.ones(regions)),
                (worst, worst_limit, supply * floor[k, p], np.maximum(supply, 1.0)),
            ):
                table[:, k, p, 0] = np.where(takes, class_size, 0.0) / unit[:, None]
                limits[:, k, p, 0] = limit / unit
                for j, d in enumerate(rounded[k], start=1):
                    rest = limit % d
                    sizes = round_by(class_size[None, :], d, rest[:, None])
                    table[:, k, p, j] = np.where(takes & ~counted, sizes, 0.0) / unit[:, None]
                    limits[:, k, p, j] = limit // d * (d - rest) / unit
    flat = (regions, kinds * tiers * shape[3], len(class_type))
    over, worst = over.reshape(flat), worst.reshape(flat)
    return MirRows(rounded, option_class, option_amount, over, over_limit, worst, worst_limit)


def round_by(size: Ints, d: int, rest: FloatArray) -> FloatArray:
    """e(size) for a limit that leaves ``rest`` when divided by d."""
    return size // d * (d - rest) + np.maximum(size % d - rest, 0.0)


def _commonest(group: Ints, volume: Ints, most: int) -> Bools:
    """Mask [n] of the ``most`` of each group [·, n] with the largest volumes."""
    order = np.lexsort((-volume, *group[::-1]))
    ordered = group[:, order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    chosen = np.zeros(len(order), np.bool_)
    chosen[order] = np.arange(len(order)) - first < most
    return chosen


def _sizes_of(alike: Ints, count: Ints, rows: int, kinds: int, distinct: int, params: RelaxationParams) -> Ints:
    """[K, J − 1] the sizes of each type that most is asked in, as many as a table has room for."""
    room = min(params.roundings, max(params.table_entries // max(rows * (distinct + rows), 1) - 1, 0))
    by_type: list[list[int]] = []
    for k in range(kinds):
        mine = (alike[0] == k) & (count > 0)
        sizes, at = np.unique(alike[2, mine], return_inverse=True)
        volume = np.bincount(at.reshape(-1), weights=(alike[2] * count)[mine], minlength=len(sizes))
        by_type.append(sizes[np.argsort(-volume, kind="stable")][:room].tolist())
    width = max((len(sizes) for sizes in by_type), default=0)
    return np.array([sizes + [1] * (width - len(sizes)) for sizes in by_type], np.int64).reshape(kinds, width)
