"""Amounts as Kubernetes writes them (``500m``, ``2``, ``16Gi``, ``1e3``), as whole numbers of base units."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal, InvalidOperation

from mast_opt.core.errors import InputError

_SUFFIXES = {
    "": Decimal(1),
    **{name: Decimal(1000) ** power for name, power in (("n", -3), ("u", -2), ("m", -1), ("k", 1), ("M", 2))},
    **{name: Decimal(1000) ** power for name, power in (("G", 3), ("T", 4), ("P", 5), ("E", 6))},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", start=1)},
}
_PATTERN = re.compile(r"([+-]?[0-9.]{1,30}(?:[eE][+-]?[0-9]{1,2})?)([a-zA-Z]{0,2})")
MOST = Decimal(2) ** 52
"""Of base units; a larger amount stands for no limit."""


def quantity(value: object, what: str, unit: Decimal = Decimal(1)) -> int:
    """An amount in units of ``1/unit``, rounded up. Raises InputError for what is no amount, or less than 0."""
    found = _PATTERN.fullmatch(str(value)) if isinstance(value, (str, int, float)) else None
    if found is not None and not isinstance(value, bool) and found[2] in _SUFFIXES:
        try:
            amount = Decimal(found[1]) * _SUFFIXES[found[2]] * unit
        except InvalidOperation:
            amount = Decimal(-1)
        if amount >= 0:
            return int(min(amount, MOST).to_integral_value(ROUND_CEILING))
    raise InputError(f"{what} is {value!r}; expected an amount of Kubernetes of at least 0, such as 500m, 8 or 16Gi")


def mgpu(value: object, what: str) -> int:
    """Milli-GPUs."""
    return quantity(value, what, Decimal(1000))


def mcores(value: object, what: str) -> int:
    """Millicores."""
    return quantity(value, what, Decimal(1000))


def mib(value: object, what: str) -> int:
    """MiB."""
    return quantity(value, what, Decimal(1) / 2**20)
