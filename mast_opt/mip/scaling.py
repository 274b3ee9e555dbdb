"""Power-of-two scaling of rows and continuous columns, exact in floating point.

Problems are stated in integer base units (megabytes, milli-GPUs), whose coefficients reach 1e12; solvers
compare rows against absolute tolerances near 1e-6 and costs against 1e-7. A backend therefore solves the
scaled program and maps the answer back. Integer columns are left alone, so integrality keeps its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.mip.program import FloatArray, Mip, frozen


@dataclass(frozen=True)
class Scaled:
    """A scaled program and the way back: x = column_factor · x_scaled."""

    mip: Mip
    row_factor: FloatArray
    column_factor: FloatArray

    def to_original(self, x: FloatArray) -> FloatArray:
        return x * self.column_factor

    def to_scaled(self, x: FloatArray) -> FloatArray:
        return x / self.column_factor


def scale(mip: Mip) -> Scaled:
    """Scale so that each row's largest integer coefficient, and each continuous column's, is near 1."""
    rows, columns = mip.shape
    counts = np.diff(mip.row_start)
    row_of = np.repeat(np.arange(rows), counts)
    magnitude = np.abs(mip.value)
    row_max = np.zeros(rows)
    np.maximum.at(row_max, row_of, np.where(mip.integral[mip.index], magnitude, 0.0))
    continuous_max = np.zeros(rows)
    np.maximum.at(continuous_max, row_of, magnitude)
    row_factor = _inverse_power(np.where(row_max > 0, row_max, continuous_max))
    value = mip.value * row_factor[row_of]
    column_max = np.zeros(columns)
    np.maximum.at(column_max, mip.index, np.abs(value))
    column_factor = np.where(mip.integral, 1.0, _inverse_power(column_max))
    scaled = replace(
        mip,
        cost=frozen(mip.cost * column_factor),
        col_lower=frozen(mip.col_lower / column_factor),
        col_upper=frozen(mip.col_upper / column_factor),
        row_lower=frozen(mip.row_lower * row_factor),
        row_upper=frozen(mip.row_upper * row_factor),
        value=frozen(value * column_factor[mip.index]),
        terms={},
    )
    return Scaled(scaled, frozen(row_factor), frozen(column_factor))


def _inverse_power(magnitude: FloatArray) -> FloatArray:
    """2^−k with 2^k the power of two just below each magnitude; 1 where it is 0."""
    exponent = np.floor(np.log2(np.where(magnitude > 0, magnitude, 1.0)))
    return np.exp2(-exponent)
