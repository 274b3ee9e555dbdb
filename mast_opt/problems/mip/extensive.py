"""Programs side by side, with what is decided once for all of them: the extensive form of a two-stage program."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.problems.mip.program import Block, Mip, frozen


@dataclass(frozen=True, eq=False)
class Extensive:
    """The joint program and where each scenario's columns are in it."""

    mip: Mip
    columns: tuple[IntArray, ...]


def extensive(mips: Sequence[Mip], shared: Sequence[IntArray], alive: Sequence[np.ndarray[Any, Any]]) -> Extensive:
    """The scenarios' programs side by side, with the shared columns of each that are alive in it being those of the
    first.

    Its terms are the objectives of the programs, named by position.
    """
    from scipy.sparse import block_array, csr_array

    width = len(mips[0].cost)
    maps: list[IntArray] = [np.arange(width)]
    for mip, ids, lives in zip(mips[1:], shared[1:], alive[1:], strict=True):
        own = np.ones(len(mip.cost), np.bool_)
        own[ids[lives]] = False
        place: IntArray = np.empty(len(mip.cost), np.int64)
        place[own] = width + np.arange(int(own.sum()))
        place[ids[lives]] = shared[0][lives]
        maps.append(place)
        width += int(own.sum())
    lower, upper, integral = np.full(width, -np.inf), np.full(width, np.inf), np.zeros(width, np.bool_)
    for mip, place in zip(mips, maps, strict=True):
        np.maximum.at(lower, place, mip.col_lower)
        np.minimum.at(upper, place, mip.col_upper)
        np.logical_or.at(integral, place, mip.integral)
    pieces = [
        csr_array((mip.value, place[mip.index], mip.row_start), shape=(len(mip.row_lower), width))
        for mip, place in zip(mips, maps, strict=True)
    ]
    matrix = csr_array(block_array([[piece] for piece in pieces]))
    matrix.sort_indices()
    sizes = [len(mip.row_lower) for mip in mips]
    starts = accumulate(sizes, initial=0)
    rows = [_numbered(f"scenario_{at}", start, size) for at, (start, size) in enumerate(zip(starts, sizes))]
    first = mips[0]
    return Extensive(
        replace(
            first,
            name=f"{first.name}_robust",
            cost=frozen(np.zeros(width)),
            offset=0.0,
            col_lower=frozen(lower),
            col_upper=frozen(upper),
            integral=frozen(integral),
            row_lower=frozen(np.concatenate([mip.row_lower for mip in mips])),
            row_upper=frozen(np.concatenate([mip.row_upper for mip in mips])),
            row_start=frozen(matrix.indptr.astype(np.int32 if matrix.nnz < np.iinfo(np.int32).max else np.int64)),
            index=frozen(matrix.indices.astype(np.int32)),
            value=frozen(matrix.data),
            columns=(*first.columns, _numbered("recourse", len(first.cost), width - len(first.cost))),
            rows=tuple(rows),
            terms={},
        ),
        tuple(maps),
    )


def _numbered(name: str, start: int, size: int) -> Block:
    """Block of columns of the two-stage program, its members named by number."""
    return Block(name, (tuple(str(member) for member in range(size)),), None, start, size)
