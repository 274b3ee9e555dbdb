"""Amounts of Kubernetes as whole numbers of base units, rounded up."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

MOST = Decimal(2) ** 52
"""Of base units; a larger amount stands for no limit."""
UNITS = {"gpu": Decimal(1000), "cpu": Decimal(1000), "memory": Decimal(1) / 2**20}
"""Base units in one unit of Kubernetes: milli-GPUs, millicores, MiB."""


def base_units(amount: Decimal, resource: str) -> int:
    """An amount of ``gpu``, ``cpu`` or ``memory`` in base units."""
    return int(min(amount * UNITS[resource], MOST).to_integral_value(ROUND_CEILING))
