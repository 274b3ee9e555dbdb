"""Limits of a whole plan: hard upper limits on additive terms and metrics, from ``[limits]`` of an instance."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Real

from mast_opt.core.errors import Fault
from mast_opt.core.wording import did_you_mean

MOST_LIMIT = 10**18
"""Largest value of a limit."""


@dataclass(frozen=True)
class LimitName:
    """Something that a limit may be put on."""

    unit: str
    """Unit in words, after a number; empty for a share."""
    base: str
    """The unit in which programs and violations count it."""
    help: str


def limit_value(value: object) -> Fraction | None:
    """The exact value that a number, or a text such as ``"1/3"``, states for a limit; None where it states none."""
    if isinstance(value, bool) or not isinstance(value, (str, Decimal, Real)) or len(str(value)) > 100:
        return None
    try:
        text = str(value)
        if "/" not in text and not (Decimal(text).is_finite() and abs(Decimal(text).adjusted()) < 100):
            return None
        number = Fraction(text)
        return number if 0 <= number <= MOST_LIMIT else None
    except (ValueError, ArithmeticError):
        return None


def plain_number(value: Fraction) -> int | float | str:
    """The value of a limit as a number where that is exact, else as text (``"1/3"``)."""
    if value.denominator == 1:
        return value.numerator
    return float(value) if Fraction(repr(float(value))) == value else str(value)


def limit_faults(limits: object, known: Mapping[str, LimitName]) -> Iterator[Fault]:
    """Faults of a problem's limits: names that there are not, and values that are no fraction of at least 0."""
    if not isinstance(limits, Mapping):
        return
    for name, value in limits.items():
        if name not in known:
            near = did_you_mean(name, known) if isinstance(name, str) else ""
            yield Fault("limits", f"some of the limits {', '.join(known)}{near}", value=str(name))
        elif not isinstance(value, Fraction) or not 0 <= value <= MOST_LIMIT:
            yield Fault("limits", f"a Fraction from 0 to {MOST_LIMIT:g}", column=name, value=str(value))
