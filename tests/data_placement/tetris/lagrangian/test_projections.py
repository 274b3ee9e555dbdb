"""The projections of the relaxation, compared with ones that sort and bisect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.tetris.lagrangian.projections import BARRED, copies_shift, simplex_shift


@compiled
def shift_to_simplex(values: NDArray[np.float32]) -> Any:
    return simplex_shift(values, len(values))


@compiled
def shift_to_copies(values: NDArray[np.float32], fewest: int, most: int) -> Any:
    return copies_shift(values, len(values), fewest, most)


def drawn(seed: int, size: int) -> NDArray[np.float32]:
    """Values of which some are barred and, of the others, some lie far off."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0.1, 0.5, size) * rng.choice([0.01, 1.0, 30.0], size)
    return np.asarray(values, np.float32)


@pytest.mark.parametrize("size", [1, 2, 7, 31, 64])
@pytest.mark.parametrize("seed", range(6))
def test_simplex(seed: int, size: int) -> None:
    values = drawn(seed, size)
    values[np.random.default_rng(seed).random(size) < 0.2] = -BARRED
    values[-1] = max(values[-1], np.float32(0.3))
    ordered = np.sort(values[values > -BARRED].astype(np.float64))[::-1]
    candidates = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    expected = candidates[np.flatnonzero(ordered > candidates)[-1]]
    assert shift_to_simplex(values) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(("fewest", "most"), [(0, 0), (1, 1), (1, 4), (2, 3), (5, 5)])
@pytest.mark.parametrize("seed", range(8))
def test_copies(seed: int, fewest: int, most: int) -> None:
    values = drawn(seed, 12)
    values[0] = -BARRED
    pinned = seed % 2 and most > 0
    if pinned:
        values[1] = BARRED
    kept = np.clip(values - shift_to_copies(values, fewest, most), 0, 1).astype(np.float64)
    assert kept[0] == 0.0
    assert not pinned or kept[1] == 1.0
    assert fewest - 1e-4 <= kept.sum() <= most + 1e-4
    low, high = float(-BARRED) / 2, float(BARRED) / 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.clip(values - middle, 0, 1).sum() > kept.sum() else (low, middle)
    plain = np.clip(values, 0, 1)
    nearest = plain if fewest <= plain.sum() <= most else np.clip(values.astype(np.float64) - high, 0, 1)
    np.testing.assert_allclose(kept, nearest, atol=1e-4)
