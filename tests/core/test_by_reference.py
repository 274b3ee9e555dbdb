"""Kernels read the fields of a named tuple by reference as they would by value."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import compiled, entry, kernel


@by_reference
class Inner(NamedTuple):
    weight: FloatArray
    flag: bool


@by_reference
class Outer(NamedTuple):
    rows: IntArray
    cube: FloatArray
    by_column: FloatArray
    every_other: IntArray
    small: np.ndarray[Any, np.dtype[np.int8]]
    flags: BoolArray
    number: int
    share: float
    single: float
    pair: tuple[int, float]
    inner: Inner


def example() -> Outer:
    rng = np.random.default_rng(0)
    return Outer(
        rows=rng.integers(9, size=5),
        cube=rng.random((3, 4, 5)),
        by_column=np.asfortranarray(rng.random((4, 3))),
        every_other=rng.integers(9, size=12)[::2],
        small=rng.integers(-9, 9, size=7, dtype=np.int8),
        flags=rng.random(6) < 0.5,
        number=-7,
        share=0.25,
        single=float(np.float32(1.5)),
        pair=(3, 0.5),
        inner=Inner(rng.random(4), True),
    )


@kernel
def _weighed(outer: Outer, at: int) -> float:
    return float(outer.inner.weight[at] * outer.pair[0] + outer.pair[1]) if outer.inner.flag else 0.0


@entry
def total(outer: Outer) -> float:
    value = outer.number + outer.share + outer.single + _weighed(outer, -1)
    for x in range(outer.cube.shape[0]):
        for y in range(outer.cube.shape[1]):
            for z in range(outer.cube.shape[2]):
                value += outer.cube[x, y, z] * (x + 2 * y + 3 * z)
    for x in range(outer.by_column.shape[0]):
        for y in range(outer.by_column.shape[1]):
            value += outer.by_column[x, y] * (x - y)
    for row in outer.rows:
        value += row
    for at in range(len(outer.every_other)):
        value += at * outer.every_other[at]
    for at in range(outer.small.size):
        if outer.flags[at % len(outer.flags)]:
            value += outer.small[at]
    return float(value)


def expected(o: Outer) -> float:
    x, y, z = np.ogrid[:3, :4, :5]
    value = o.number + o.share + o.single + o.inner.weight[-1] * 3 + 0.5
    value += float((o.cube * (x + 2 * y + 3 * z)).sum() + (o.by_column * (np.ogrid[:4, :1][0] - np.arange(3))).sum())
    value += float(o.rows.sum() + (o.every_other * np.arange(6)).sum())
    return float(value + o.small[o.flags[np.arange(7) % 6]].sum())


@compiled
def doubled(outer: Outer) -> FloatArray:
    outer.inner.weight[:] *= 2
    outer.rows[0] = 99
    result: FloatArray = outer.cube[1] + outer.cube[1]
    return result


def test_fields_of_every_sort_are_read() -> None:
    outer = example()
    assert total(outer) == pytest.approx(expected(outer))
    assert total(outer._replace(number=5)) == pytest.approx(expected(outer) + 12)
    dispatcher: Any = total
    ((kind,),) = dispatcher.signatures
    assert kind.fields == outer._fields


def test_arrays_are_changed_in_place_and_no_reference_is_left() -> None:
    outer = example()
    arrays = [outer.rows, outer.cube, outer.inner.weight]
    before, weight, cube = [sys.getrefcount(array) for array in arrays], outer.inner.weight.copy(), outer.cube.copy()
    result = doubled(outer)
    assert (result == 2 * cube[1]).all()
    assert (outer.inner.weight == 2 * weight).all()
    assert outer.rows[0] == 99
    assert (outer.cube == cube).all()
    assert [sys.getrefcount(array) for array in arrays] == before


def test_a_field_that_does_not_exist_is_an_error_of_the_compiler() -> None:
    @entry
    def wrong(inner: Inner) -> float:
        return float(inner.height)  # type: ignore[attr-defined]

    with pytest.raises(numba.TypingError, match="height"):
        wrong(example().inner)
