"""Values of scenarios: what grows is rounded up exactly, however large it is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mast_opt.errors import UsageError
from mast_opt.scenario_values import grown

LARGE = 5_000_000_000_000


@pytest.mark.parametrize(
    ("value", "factor", "expected"),
    [
        (LARGE, 1.0, LARGE),
        (LARGE + 1, 1.2, 6 * LARGE // 5 + 2),
        (2**53 - 1, 1.1, math.ceil((2**53 - 1) * Fraction(11, 10))),
        (2**60 + 1, 3.0, 3 * 2**60 + 3),
        (2**61 + 1, 0.123456789, math.ceil((2**61 + 1) * Fraction("0.123456789"))),
        (2**62, 1 / 3, 2**62 // 3 + 1),
        (10, 1.1, 11),
        (100, 1.1 * 1.1, 121),
        (3, 5 / 3, 5),
        (LARGE, 1e-300, 1),
        (7, 0.0, 0),
        (0, 1e12, 0),
    ],
)
def test_what_grows_is_rounded_up_exactly(value: int, factor: float, expected: int) -> None:
    assert grown("grow_demand", np.array([value]), np.array([factor])).tolist() == [expected]


def test_each_value_has_its_own_factor() -> None:
    values = np.array([[1, 2**60 + 1, 3], [4, 5, 6]])
    larger = grown("grow_demand", values, np.array([1.0, 2.0, 0.5]))
    assert larger.tolist() == [[1, 2**61 + 2, 2], [4, 10, 3]]
    assert values.tolist() == [[1, 2**60 + 1, 3], [4, 5, 6]]


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(UsageError, match=r"grow_demand makes 9.22e\+18 base units 1.84e\+19; expected what fits"):
        grown("grow_demand", np.array([2**62, 2**62 - 1]), np.array([2.0, 2.0]))
