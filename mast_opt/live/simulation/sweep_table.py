"""The table of a sweep: of each figure the mean over seeds, and the interval that holds it with 95% confidence."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from mast_opt.live.simulation.sweep import CellResult

CONFIDENCE = 0.95
ROUNDING = 1e-12
"""Differences between seeds, relative to the mean, that are those of floating-point sums."""


@dataclass(frozen=True)
class Row:
    """A figure of a policy at a load, over all seeds."""

    policy: str
    load: float
    metric: str
    seeds: int
    """Number of seeds for which there is a figure."""
    mean: float
    low: float | None
    """None for a single seed, which says nothing about the interval."""
    high: float | None


def table_of(results: Sequence[CellResult]) -> tuple[Row, ...]:
    """The rows, by policy and load in the order of the results. Where a figure is missing for a seed, the others count.

    The interval is Student's for the mean of independent seeds.
    """
    groups: dict[tuple[str, float], dict[str, list[float]]] = {}
    for result in results:
        group = groups.setdefault((result.cell.policy, result.cell.load), {})
        for name, value in numbers_in(result.metrics).items():
            group.setdefault(name, []).append(value)
    return tuple(
        _row(policy, load, metric, values)
        for (policy, load), group in groups.items()
        for metric, values in group.items()
    )


def numbers_in(stated: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Name → number, those inside as ``queue_s.mean``."""
    found: dict[str, float] = {}
    for name, value in stated.items():
        if isinstance(value, Mapping):
            found.update(numbers_in(value, f"{prefix}{name}."))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[f"{prefix}{name}"] = float(value)
    return found


def _row(policy: str, load: float, metric: str, values: Sequence[float]) -> Row:
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Row(policy, load, metric, count, mean, None, None)
    if max(values) - min(values) <= ROUNDING * abs(mean):
        return Row(policy, load, metric, count, mean, mean, mean)
    half = float(student.ppf((1 + CONFIDENCE) / 2, count - 1) * np.std(values, ddof=1) / np.sqrt(count))
    return Row(policy, load, metric, count, mean, mean - half, mean + half)


def csv_text(rows: Sequence[Row]) -> str:
    """The table as CSV, numbers by the shortest decimal that means the same."""
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(Row.__dataclass_fields__)
    lines.writerows([getattr(row, name) for name in Row.__dataclass_fields__] for row in rows)
    return text.getvalue()
