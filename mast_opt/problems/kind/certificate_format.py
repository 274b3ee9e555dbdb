"""Format of a certificate's arrays: names, types, shapes and limits, checked before a bound is computed from them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import Fault

FILE = "certificate.npz"
LARGEST_PRICE = 1e100
"""Largest price, so that no sum overflows."""
TEXT = "text"
"""Stands for all types of texts, which differ in length."""


@dataclass(frozen=True, slots=True)
class ArrayFormat:
    """Requirements of an array."""

    dtype: str
    """Name of the numpy type, or ``TEXT``."""
    shape: tuple[int, ...] | None = None
    """None where the shape is checked later."""
    least: float = -math.inf
    most: float = math.inf

    def fault(self, name: str, array: NDArray[Any]) -> Fault | None:
        """The first thing that is wrong with an array of this name, if any."""
        if not (array.dtype.kind == "U" if self.dtype == TEXT else array.dtype == self.dtype):
            return Fault(FILE, f"an array of {self.dtype}", column=name, value=str(array.dtype))
        if self.shape is not None and array.shape != self.shape:
            return Fault(FILE, f"shape {self.shape}", column=name, value=str(array.shape))
        limited = math.isfinite(self.least) or math.isfinite(self.most)
        if limited and not ((array >= self.least) & (array <= self.most)).all():
            return Fault(FILE, f"numbers from {self.least:g} to {self.most:g}", column=name)
        return None


def price(*shape: int) -> ArrayFormat:
    """The format of prices in a shape: numbers from 0."""
    return ArrayFormat("float64", shape, 0.0, LARGEST_PRICE)


def array_faults(arrays: Mapping[str, NDArray[Any]], formats: Mapping[str, ArrayFormat]) -> list[Fault]:
    """A fault for every array that is missing or has another type or shape, or numbers beyond its limits."""
    found = [Fault(FILE, f"an array called {name}") for name in formats if name not in arrays]
    checked = (one.fault(name, np.asarray(arrays[name])) for name, one in formats.items() if name in arrays)
    return found + [fault for fault in checked if fault is not None]
