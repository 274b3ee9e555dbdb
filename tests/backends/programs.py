"""Small programs whose answers are known, and a few that are hard on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.mip import Mip, MipBuilder
from mast_opt.problems.mip.program import Block, frozen

INF = np.inf


DenseRow: TypeAlias = tuple[ArrayLike, float, float]
"""(coefficients, lower, upper)"""


def program(
    cost: Sequence[float] | NDArray[Any],
    rows: Sequence[DenseRow] = (),
    *,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = 1.0,
    integral: ArrayLike = True,
    offset: float = 0.0,
    name: str = "small",
) -> Mip:
    """A program from dense rows ``(coefficients, lower, upper)``; zeros are not stored."""
    width = len(cost)
    matrix = csr_array(np.array([row for row, _, _ in rows], dtype=np.float64).reshape(len(rows), width))
    return Mip(
        name=name,
        cost=frozen(np.array(cost, dtype=np.float64)),
        offset=offset,
        col_lower=frozen(np.broadcast_to(np.asarray(lower, np.float64), width).copy()),
        col_upper=frozen(np.broadcast_to(np.asarray(upper, np.float64), width).copy()),
        integral=frozen(np.broadcast_to(np.asarray(integral, np.bool_), width).copy()),
        row_lower=frozen(np.array([low for _, low, _ in rows], dtype=np.float64)),
        row_upper=frozen(np.array([high for _, _, high in rows], dtype=np.float64)),
        row_start=frozen(matrix.indptr.astype(np.int32)),
        index=frozen(matrix.indices.astype(np.int32)),
        value=frozen(matrix.data.astype(np.float64)),
        columns=(Block("x", ([str(i) for i in range(width)],), None, 0, width),),
        rows=(Block("row", ([str(i) for i in range(len(rows))],), None, 0, len(rows)),),
        terms={},
    )


def knapsack() -> tuple[Mip, float]:
    """Worths 10, 13, 7, 8 at weights 3, 4, 2, 3 and room for 7: take the first two, 23."""
    return program([-10, -13, -7, -8], [([3, 4, 2, 3], -INF, 7)]), -23.0


def diet() -> tuple[Mip, float]:
    """min 2a + 3b with a + 2b ≥ 4 and 3a + b ≥ 6: the rows meet at (1.6, 1.2), 6.8."""
    return program([2, 3], [([1, 2], 4, INF), ([3, 1], 6, INF)], upper=100.0, integral=False), 6.8


def overload(unit: float) -> tuple[Mip, float]:
    """Three works of 5, 4 and 3 units go to one of two sites of 6; each is priced at its excess over all supply.

    Some site takes two of them, 7 units at least, so the least excess is 1 unit of 12.
    """
    m = MipBuilder("overload")
    works, sites = ["a", "b", "c"], ["p", "q"]
    need = unit * np.array([5.0, 4.0, 3.0])
    run = m.columns("run", [works, sites], upper=1, integral=True)
    over = m.columns("overload", [sites])
    m.equals("served", [works], value=1).add(np.arange(3)[:, None], run)
    m.rows("gpu", [sites], upper=6 * unit).add(np.arange(2), run, need[:, None]).add(np.arange(2), over, -1)
    m.term("overload", over, 1 / (12 * unit))
    return m.build({"overload": 1.0}), 1 / 12


def hard(seed: int = 0, items: int = 150, rows: int = 20) -> Mip:
    """A multidimensional knapsack with correlated worths: good plans at once, a proof in hours."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(100, 1000, (rows, items))
    worth = weight.mean(axis=0) + 300 * rng.random(items)
    m = MipBuilder("hard")
    take = m.columns("take", [[f"i{i}" for i in range(items)]], upper=1, integral=True)
    limits = weight.sum(axis=1) // 2
    m.rows("weight", [[f"w{i}" for i in range(rows)]], upper=limits).add(np.arange(rows)[:, None], take, weight)
    m.term("worth", take, -worth)
    return m.build({"worth": 1.0})


def market_split(seed: int = 0, products: int = 60, retailers: int = 7) -> tuple[Mip, FloatArray]:
    """Split every product's volume exactly in two halves of given size: solvers see no plan for hours.

    Returns the program and the one plan that was planted in it. The cost is the number of columns at 1.
    """
    rng = np.random.default_rng(seed)
    volume = rng.integers(0, 1000, (retailers, products))
    planted = rng.integers(0, 2, products).astype(np.float64)
    m = MipBuilder("market_split")
    give = m.columns("give", [[f"p{i}" for i in range(products)]], upper=1, integral=True)
    rows = m.equals("volume", [[f"r{i}" for i in range(retailers)]], value=volume @ planted)
    rows.add(np.arange(retailers)[:, None], give, volume)
    m.term("given", give)
    return m.build({"given": 1.0}), planted


def enumerated(mip: Mip) -> float | None:
    """The minimum by trying every integer point, or None if there is none; at most one column may be continuous.

    For each point, the continuous column goes to the end of the interval that the rows leave it, whichever is cheaper.
    """
    matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape).toarray()
    whole = np.flatnonzero(mip.integral)
    axes = [np.arange(low, high + 1) for low, high in zip(mip.col_lower[whole], mip.col_upper[whole], strict=True)]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    activity = points @ matrix[:, whole].T
    reach = np.abs(matrix).sum(axis=1)
    slack = 1e-12 * np.maximum(1.0, reach)
    lower, upper = mip.row_lower - slack - activity, mip.row_upper + slack - activity
    cost = points @ mip.cost[whole] + mip.offset
    for column in np.flatnonzero(~mip.integral):
        coefficient = matrix[:, column]
        used = coefficient != 0
        ends = np.sort(np.stack([lower[:, used] / coefficient[used], upper[:, used] / coefficient[used]]), axis=0)
        least = np.maximum(mip.col_lower[column], ends[0].max(axis=1, initial=-INF))
        greatest = np.minimum(mip.col_upper[column], ends[1].min(axis=1, initial=INF))
        cost = cost + mip.cost[column] * np.where(mip.cost[column] > 0, least, greatest)
        cost[least > greatest] = INF
        lower, upper = lower[:, ~used], upper[:, ~used]
    fits = ((lower <= 0) & (upper >= 0)).all(axis=1) & np.isfinite(cost)
    return float(cost[fits].min()) if fits.any() else None


def small_random(seed: int, *, continuous: bool = False) -> Mip:
    """Up to five integer columns and four rows of every sense, with awkward numbers; one column more if continuous."""
    rng = np.random.default_rng(seed)
    width, height = int(rng.integers(1, 6)), int(rng.integers(0, 5))
    rows = []
    for _ in range(height):
        coefficients = rng.integers(-5, 6, width + continuous).astype(np.float64)
        coefficients *= rng.choice([1.0, 0.25, 1e9])
        reach = np.abs(coefficients).sum()
        middle = np.round(rng.normal(0, 0.5) * reach)
        kind = rng.integers(4)
        half = 0.25 * reach if kind == 2 else 0.0
        low = -INF if kind == 0 else middle - half
        high = INF if kind == 1 else middle + half
        rows.append((coefficients, low, high))
    lower = rng.integers(-2, 1, width).astype(np.float64)
    upper = lower + rng.integers(0, 4, width)
    integral = [True] * width
    cost = np.round(rng.normal(size=width + continuous), 3) * rng.choice([1.0, 1e-4, 1000.0])
    if continuous:
        lower, upper, integral = np.append(lower, -1.5), np.append(upper, 2.25), [*integral, False]
    return program(cost, rows, lower=lower, upper=upper, integral=integral, offset=float(rng.integers(-3, 4)))
