"""How numbers are written for people."""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN = "–"
ROUNDING = 1e-9
"""Shares up to this come from rounding and are written as 0."""


def plain(value: float | None) -> str:
    """A number with about five significant digits, thousands apart, no exponent for everyday sizes."""
    if value is None:
        return UNKNOWN
    if value != 0 and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.4g}"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    digits = 4 if abs(value) < 10 else 3 if abs(value) < 100 else 2 if abs(value) < 1000 else 1
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def of_term(value: float | None, term: str | None) -> str:
    """A value, with the term of a lexicographic objective that it is of: ``0.98 (peak)``."""
    return plain(value) if term is None or value is None else f"{plain(value)} ({term})"


def percent(share: float | None, digits: int | None = None) -> str:
    """A share as a percentage; without ``digits``, two decimals below 10% and one above. None beyond ``ROUNDING``
    is written as 0."""
    if share is None:
        return UNKNOWN
    if digits is None:
        digits = 2 if abs(share) < 0.1 else 1
    if ROUNDING < abs(share) < 0.5 * 10 ** -(digits + 2):
        return f"{'<' if share > 0 else '>-'}{0.1**digits:.{digits}f}%"
    return f"{0.0 if abs(share) <= ROUNDING else share:.{digits}%}"


def seconds(value: float) -> str:
    """A duration in words, in minutes from ten minutes on."""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"


def amounts(values: Sequence[float | int | None]) -> list[str]:
    """A column of quantities with the same number of decimals throughout; none but 0 is written as 0."""
    known = [value for value in values if value is not None]
    whole = all(float(value).is_integer() for value in known)
    largest = max((abs(value) for value in known), default=0)
    digits = 0 if whole else 1 if largest >= 100 else 2
    return [UNKNOWN if value is None else _amount(value, digits) for value in values]


def _amount(value: float, digits: int) -> str:
    if value and abs(value) < 0.5 * 10**-digits:
        return f"< {10**-digits:.{digits}f}" if value > 0 else f"> {-(10**-digits):.{digits}f}"
    return f"{value:,.{digits}f}"
