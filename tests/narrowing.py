"""Narrowing of optional values in tests."""

from __future__ import annotations

from typing import TypeVar

ValueT = TypeVar("ValueT")


def some(value: ValueT | None) -> ValueT:
    """The value, which has to be there."""
    assert value is not None
    return value
