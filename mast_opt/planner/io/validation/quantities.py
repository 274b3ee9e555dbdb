"""Exact conversion between the decimal text of a quantity and whole base units.

0.1 TB is 100,000 MB, not the binary fraction nearest to 0.1 times a million. What is finer than the base unit
is rounded against the planner: needs up, supplies down.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import polars as pl

from mast_opt.problems.kind.problem_data import Bools, Ints
from mast_opt.problems.kind.schema import LARGEST as LARGEST
from mast_opt.problems.kind.schema import Role

_PLAIN = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
_WITH_EXPONENT = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?\s*", re.ASCII)
INFINITE = r"(?i)^\s*[+-]?(?:nan|inf|infinity)\s*$"
_GROUP = 9
"""Digits of a fraction that are handled at a time: a group times a scale of up to 10⁹ fits in 64 bits."""


@dataclass(frozen=True, eq=False)
class Converted:
    """Cells in base units. A cell with one of the marks below has 0 in its place, except for ``rounded``."""

    values: Ints
    malformed: Bools
    """Not a decimal number."""
    infinite: Bools
    """NaN or infinite."""
    overflow: Bools
    """Does not fit in 64 bits in base units."""
    negative: Bools
    """Less than 0, be it by less than a base unit (marks a value, does not void it)."""
    rounded: Bools
    """Finer than the base unit."""


def to_base(text: pl.Series, scale: int, role: Role) -> Converted:
    """An input's decimal numbers times ``scale``, rounded as the role says. ``text`` has no nulls.

    ``scale`` is at most 10⁹.
    """
    if not 1 <= scale <= 10**_GROUP:
        raise ValueError(f"a scale from 1 to 10^{_GROUP} is expected, not {scale}")
    frame = pl.DataFrame({"text": text})
    plain = frame["text"].str.contains(_PLAIN)
    numbers = frame if plain.all() else frame.select(pl.when(plain).then("text").otherwise(pl.lit("0")).alias("text"))
    unsigned = pl.col("text").str.strip_chars_start("+-").str.splitn(".", 2)
    parts = numbers.select(
        negative=pl.col("text").str.starts_with("-"),
        whole=unsigned.struct.field("field_0").str.strip_chars_start("0"),
        digits=unsigned.struct.field("field_1").fill_null("").str.strip_chars_end("0"),
    )
    whole = parts["whole"].str.replace("^$", "0").cast(pl.Int64, strict=False)
    too_large = whole.is_null().to_numpy()
    units = whole.fill_null(0).to_numpy()
    part, finer = _fraction(parts["digits"], scale)
    negative = parts["negative"].to_numpy() & ((units > 0) | (part > 0) | finer | too_large)
    up = finer & (negative if role is Role.SUPPLY else ~negative)
    part = part + up
    overflow = too_large | (units > (LARGEST - part) // scale)
    values = np.where(overflow, 0, units * np.where(overflow, 0, scale) + part)
    result = Converted(
        values=np.where(negative, -values, values),
        malformed=np.zeros(len(text), np.bool_),
        infinite=np.zeros(len(text), np.bool_),
        overflow=overflow,
        negative=negative,
        rounded=finer & ~overflow,
    )
    _convert_unusual(result, text, np.flatnonzero(~plain.to_numpy()), scale, role)
    return result


def _fraction(digits: pl.Series, scale: int) -> tuple[Ints, Bools]:
    """0.digits × scale of an input's quantity, rounded down, and where something is left over."""
    count = len(digits)
    longest = int(digits.str.len_bytes().to_numpy().max(initial=0))
    part, finer = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for start in reversed(range(0, min(longest, 2 * _GROUP), _GROUP)):
        group = digits.str.slice(start, _GROUP).str.pad_end(_GROUP, "0").cast(pl.Int64).to_numpy()
        part, remainder = np.divmod(group * scale + part, 10**_GROUP)
        finer |= remainder > 0
    if longest > 2 * _GROUP:
        finer |= digits.str.slice(2 * _GROUP).str.len_bytes().to_numpy() > 0
    return part, finer


def _convert_unusual(result: Converted, text: pl.Series, where: Ints, scale: int, role: Role) -> None:
    """Fill in, one by one, quantities of an input that are not in plain digits: exponents, blanks around, and what
    is no number.
    """
    if not len(where):
        return
    unusual = text.gather(where)
    infinite = unusual.str.contains(INFINITE).to_numpy()
    result.infinite[where[infinite]] = True
    for index, written in zip(where[~infinite].tolist(), unusual.filter(pl.Series(~infinite)).to_list()):
        match = _WITH_EXPONENT.fullmatch(written)
        if match is None:
            result.malformed[index] = True
            continue
        number = Decimal(match[1])
        exponent = _saturated(match[2] or "0")
        result.negative[index] = number < 0
        if number and number.adjusted() + exponent > 30:
            result.overflow[index] = True
            continue
        magnitude, finer = _scaled(number.copy_abs(), exponent, scale)  # abs would round
        magnitude += finer and (number > 0) == (role is Role.NEED)
        result.overflow[index] = magnitude > LARGEST
        result.rounded[index] = finer and magnitude <= LARGEST
        result.values[index] = 0 if magnitude > LARGEST else (-magnitude if number < 0 else magnitude)


def _saturated(exponent: str) -> int:
    """The exponent of an input's number, or ±10⁹ where it is beyond: a long one must not cost time or memory."""
    digits = exponent.lstrip("+-").lstrip("0")
    size = int(digits or "0") if len(digits) <= 9 else 10**9
    return -size if exponent.startswith("-") else size


def _scaled(number: Decimal, exponent: int, scale: int) -> tuple[int, bool]:
    """An input's quantity: number × 10^exponent × scale ≥ 0, rounded down, and whether something is left over."""
    if not number:
        return 0, False
    if number.adjusted() + exponent < -30:
        return 0, True
    top, bottom = number.as_integer_ratio()
    top, bottom = (top * 10**exponent, bottom) if exponent >= 0 else (top, bottom * 10**-exponent)
    whole, left = divmod(top * scale, bottom)
    return whole, left > 0


def decimals_of(scale: int) -> int:
    """Decimals of a quantity in files that write 1/scale exactly. Raises ValueError where no number of them does."""
    decimals = 0
    while 10**decimals % scale:
        decimals += 1
        if decimals > 18:
            raise ValueError(f"1/{scale} has no exact decimal of 18 digits")
    return decimals


def to_text(values: Ints, scale: int) -> pl.Series:
    """Base units as decimal numbers in the unit of files: exact, and no longer than needed."""
    decimals = decimals_of(scale)
    magnitude = np.abs(values)
    whole, part = np.divmod(magnitude, scale)
    fraction = pl.Series(part * (10**decimals // scale)).cast(pl.String).str.pad_start(decimals, "0")
    fraction = fraction.str.strip_chars_end("0")
    frame = pl.DataFrame({"sign": values < 0, "whole": whole, "fraction": fraction})
    return frame.select(
        pl.concat_str(
            pl.when("sign").then(pl.lit("-")).otherwise(pl.lit("")),
            pl.col("whole").cast(pl.String),
            pl.when(pl.col("fraction") == "").then(pl.lit("")).otherwise("." + pl.col("fraction")),
        ).alias("text")
    ).to_series()
