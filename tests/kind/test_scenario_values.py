"""Values of scenarios: what grows is rounded up exactly, however large it is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.problems.kind.scenario_values import (
    amounts,
    factor,
    factors,
    grown,
    named,
    number,
    positions,
    records,
    tier_factors,
    whole,
)

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


KNOWN = [f"region {n}" for n in range(15)]


def test_an_unknown_name_lists_a_dozen_known_ones() -> None:
    with pytest.raises(UsageError) as error:
        named("lose_regions", "region", KNOWN, "moon")
    expected = ", ".join(KNOWN[:12])
    assert str(error.value) == f"lose_regions: there is no region called 'moon'; expected one of: {expected} and 3 more"
    with pytest.raises(UsageError) as error:
        named("lose_regions", "region", KNOWN[:12], "moon")
    assert str(error.value).endswith(f"expected one of: {expected}")


@pytest.mark.parametrize("value", [[], 3, None])
def test_a_list_of_names_shows_an_example(value: object) -> None:
    with pytest.raises(UsageError, match=r'expected a list of regions, as in lose_regions = \["region 0"\]'):
        positions("lose_regions", "region", KNOWN, value)


def test_positions_are_those_of_the_names() -> None:
    assert positions("lose_regions", "region", KNOWN, "region 3") == [3]
    assert positions("lose_regions", "region", KNOWN, ["region 3", "region 0"]) == [3, 0]


@pytest.mark.parametrize("value", [1e12, -1e12, 0, 1])
def test_numbers_up_to_the_largest(value: float) -> None:
    assert number("it", value) == value


@pytest.mark.parametrize("value", [1.0001e12, -1.0001e12, True, "1", None, float("nan"), float("inf")])
def test_what_is_no_number_of_that_size(value: object) -> None:
    with pytest.raises(UsageError, match="expected a number"):
        number("it", value)


def test_factors_begin_at_zero() -> None:
    assert factor("it", 0) == 0
    with pytest.raises(UsageError, match="at least 0"):
        factor("it", -1e-9)


def test_whole_numbers_have_a_least_value_where_one_is_given() -> None:
    assert whole("it", 1.0, 1) == 1
    assert whole("it", -5.0) == -5
    for value in (0.0, 1.5):
        with pytest.raises(UsageError, match="whole number of at least 1"):
            whole("it", value, 1)
    with pytest.raises(UsageError, match=r"expected a whole number$"):
        whole("it", 1.5)


def test_tables_of_numbers_by_name() -> None:
    assert amounts("it", "region", KNOWN, {"region 2": -1, "region 1": 2.5}) == {2: -1.0, 1: 2.5}
    wrong: tuple[Any, ...] = ({}, 3)
    for value in wrong:
        with pytest.raises(UsageError, match=r"expected a table, as in it = \{ region 0 = 1 \}"):
            amounts("it", "region", KNOWN, value)


def test_records_have_a_name_on_every_axis() -> None:
    axes = {"dataset": ["logs"], "region": KNOWN}
    row = {"dataset": "logs", "region": "region 4"}
    rows: tuple[Any, ...] = (row, [row])
    for value in rows:
        (found,) = records("it", axes, None, value)
        assert (found.at, found.amount) == ({"dataset": 0, "region": 4}, 1.0)
    (found,) = records("it", axes, "tb", row | {"tb": 7})
    assert found.amount == 7.0
    wrong: tuple[Any, ...] = ([], [row, 3], "logs")
    for value in wrong:
        with pytest.raises(UsageError, match="expected a list of tables"):
            records("it", axes, None, value)
    for row_of_others in ({"dataset": "logs"}, row | {"tb": 7}):
        with pytest.raises(UsageError, match="it has a table with dataset"):
            records("it", axes, None, row_of_others)


def test_factors_of_tiers() -> None:
    assert tier_factors("it", [0, 1, 2], 1.5).tolist() == [1.5, 1.5, 1.5]
    assert tier_factors("it", [0, 1, 2], {"1": 2, "all": 3}).tolist() == [3.0, 2.0, 3.0]
    assert tier_factors("it", [0, 1], {"0": 2}).tolist() == [2.0, 1.0]
    assert factors("it", "resource", ["cpu", "disk"], 1.5).tolist() == [1.5, 1.5]
    assert factors("it", "resource", ["cpu", "disk"], {"disk": 2}).tolist() == [1.0, 2.0]


def test_sums_of_grown_values_stay_below_the_largest() -> None:
    assert grown("it", np.array([2**62 - 2**55]), np.array([2.0]))[0] == 2**63 - 2**56
    with pytest.raises(UsageError, match="fits in 64 bits"):
        grown("it", np.array([9_200_000_000_000_000_000]), np.array([1.0]))
