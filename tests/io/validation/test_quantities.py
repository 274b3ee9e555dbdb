"""Decimal text to base units, compared with exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mast_opt.planner.io.validation.frames import exact_numbers
from mast_opt.planner.io.validation.quantities import LARGEST, decimals_of, to_base, to_text
from mast_opt.problems.kind.schema import Role

SCALES = (1, 1000, 1024, 1_000_000, 10**9)
DIGITS = st.text("0123456789", max_size=21)


@st.composite
def decimals(draw: st.DrawFn) -> str:
    whole, fraction = draw(DIGITS), draw(DIGITS)
    text = draw(st.sampled_from(["", "+", "-"])) + (whole or "0") + (f".{fraction}" if fraction else "")
    exponent = draw(st.none() | st.integers(-30, 25))
    return (
        text
        if exponent is None
        else f"{text}{draw(st.sampled_from('eE'))}{exponent:{draw(st.sampled_from(['', '+']))}}"
    )


@given(st.lists(decimals(), min_size=1, max_size=30), st.sampled_from(SCALES), st.sampled_from(Role))
@example([f"1.{'0' * 40}1e0", f" 1.{'0' * 40}1"], 1000, Role.NEED)
def test_to_base_is_exact(texts: list[str], scale: int, role: Role) -> None:
    found = to_base(pl.Series(texts), scale, role)
    for n, text in enumerate(texts):
        exact = Fraction(text) * scale
        rounded = ceil(exact) if role is Role.NEED else floor(exact)
        fits = abs(rounded) <= LARGEST
        assert found.overflow[n] == (not fits)
        assert found.negative[n] == (exact < 0)
        assert found.values[n] == (rounded if fits else 0)
        assert found.rounded[n] == (fits and rounded != exact)
    assert not found.malformed.any()
    assert not found.infinite.any()


@given(st.lists(st.integers(-LARGEST, LARGEST), min_size=1, max_size=30), st.sampled_from(SCALES))
def test_to_text_is_exact_and_short(values: list[int], scale: int) -> None:
    texts = to_text(np.array(values, np.int64), scale)
    for value, text in zip(values, texts.to_list()):
        assert Fraction(text) * scale == value
        assert not ("." in text and text.endswith(("0", ".")))
    back = to_base(texts, scale, Role.NEED)
    assert back.values.tolist() == values
    assert not back.rounded.any()


@given(st.lists(st.none() | st.integers(0, LARGEST), min_size=1, max_size=20), st.sampled_from(SCALES))
def test_typed_numbers_read_back_as_the_same_decimals(values: list[int | None], scale: int) -> None:
    texts = to_text(np.array([value or 0 for value in values], np.int64), scale)
    texts = texts.set(pl.Series([value is None for value in values]), None)
    back = exact_numbers(texts).cast(pl.String)
    assert back.is_null().to_list() == [value is None for value in values]
    found = to_base(back.fill_null("0"), scale, Role.NEED)
    assert found.values.tolist() == [value or 0 for value in values]
    assert not found.rounded.any()


@pytest.mark.parametrize(
    ("text", "role", "expected"),
    [
        ("0.1", Role.NEED, 100_000),
        ("0.1", Role.SUPPLY, 100_000),
        ("0.0000001", Role.NEED, 1),
        ("0.0000001", Role.SUPPLY, 0),
        ("-0.0000001", Role.NEED, 0),
        ("1e-3", Role.NEED, 1000),
        (" 2 ", Role.NEED, 2_000_000),
        (".5", Role.NEED, 500_000),
        ("5.", Role.NEED, 5_000_000),
        ("9223372036854.775807", Role.NEED, LARGEST),
        ("0e999999999999", Role.NEED, 0),
        ("1e-999999999999", Role.NEED, 1),
    ],
)
def test_examples(text: str, role: Role, expected: int) -> None:
    assert to_base(pl.Series([text]), 1_000_000, role).values[0] == expected


@pytest.mark.parametrize("text", ["", ".", "-", "abc", "1,5", "1_0", "0x1", "1e", "e5", "1 2", "--1", "1.2.3", "١"])
def test_what_is_no_number(text: str) -> None:
    found = to_base(pl.Series([text]), 1000, Role.NEED)
    assert found.malformed[0]
    assert not found.infinite[0]


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-Infinity", "+INF"])
def test_infinite(text: str) -> None:
    found = to_base(pl.Series([text]), 1000, Role.NEED)
    assert found.infinite[0]
    assert not found.malformed[0]


@pytest.mark.parametrize("text", ["9223372036854.775808", "9223372036854.7758071", "1e999999999999", "9" * 400])
def test_overflow(text: str) -> None:
    assert to_base(pl.Series([text]), 1_000_000, Role.NEED).overflow[0]


def test_decimals_of() -> None:
    assert [decimals_of(scale) for scale in SCALES] == [0, 3, 10, 6, 9]
    with pytest.raises(ValueError, match="1/3"):
        decimals_of(3)
