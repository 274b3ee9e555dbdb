"""Usage of GPUs by tenant and month: asked, held, idle and lost GPU-hours, and what they cost."""

import csv
import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from mast_opt.live.loop.history import History, Steps
from mast_opt.live.reports.charts import DAY_MS, HOUR_MS
from mast_opt.planner.io.atomic import check_free, new_file
from mast_opt.problems.job_placement.units import WHOLE

DAYS = 30
"""Days per month of a trace, whose time begins at 0."""
CLOCK_MS = 10 * 365 * DAY_MS
"""Smallest time that is read as milliseconds since 1970; smaller ones are times of a trace."""


@dataclass(frozen=True)
class Usage:
    """Usage of a tenant in a month, in GPU-hours."""

    month: str
    """Year and month in UTC; the days of a trace, counted from 0, where its log has no dates."""
    tenant: str
    asked: float
    """GPU-hours requested by jobs from their submission to their end, waiting or running."""
    held: float
    idle: float
    """Part of ``held`` in which the job did not run: it was starting, or had been asked to stop."""
    lost: float
    """GPU-hours of work that must be done again."""
    cost: float | None
    """Price of ``held``; None if one of its GPU types has no price."""


HEADS = tuple(
    field.name if field.name in ("month", "tenant", "cost") else f"{field.name}_gpu_h" for field in fields(Usage)
)
"""Names of the columns in files and answers."""


def months(first_ms: int, last_ms: int) -> tuple[list[int], list[str]]:
    """Bounds [months + 1] in ms of the months of usage in a log, and their names [months]."""
    if first_ms < CLOCK_MS:
        numbers = range(first_ms // (DAYS * DAY_MS), max(last_ms - 1, first_ms) // (DAYS * DAY_MS) + 1)
        bounds = [number * DAYS * DAY_MS for number in (*numbers, numbers[-1] + 1)]
        return bounds, [f"days {number * DAYS} to {(number + 1) * DAYS}" for number in numbers]
    first, last = (dt.datetime.fromtimestamp(at // 1000, dt.UTC) for at in (first_ms, last_ms))
    numbers = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
    begins = [dt.datetime(number // 12, number % 12 + 1, 1, tzinfo=dt.UTC) for number in (*numbers, numbers[-1] + 1)]
    return [int(begin.timestamp()) * 1000 for begin in begins], [f"{begin:%Y-%m}" for begin in begins[:-1]]


def usage_of(found: History, prices: Mapping[str, float] | None = None) -> tuple[Usage, ...]:
    """Usage of each tenant in each month of a log in which it asked for anything.

    Args:
        prices: GPU type → price of a GPU-hour.
    """
    sums = UsageSums()
    sums.add(found.usage, found.first_ms, found.last_ms)
    return sums.table(prices)


class UsageSums:
    """GPU-hours of each tenant in each month, added up over parts of a log, one after the other."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, dict[str, float]]] = {}
        """Month → tenant → sort of usage (as in ``History.usage``) → GPU-hours."""

    def add(self, usage: Mapping[tuple[str, str], Steps], first_ms: int, last_ms: int) -> None:
        """Add ``History.usage`` of the part of a log between two times."""
        bounds, names = months(first_ms, last_ms)
        ends = np.array(bounds).clip(first_ms, last_ms)
        for (tenant, what), steps in usage.items():
            lost = what == "lost"
            amounts = np.diff(steps.at(ends[1:]), prepend=0) if lost else steps.means(ends) * np.diff(ends)
            for month, amount in zip(names, amounts.tolist(), strict=True):
                of = self._rows.setdefault(month, {}).setdefault(tenant, {})
                of[what] = of.get(what, 0.0) + amount / (HOUR_MS * WHOLE)

    def table(self, prices: Mapping[str, float] | None = None) -> tuple[Usage, ...]:
        """Rows of usage by month, and by tenant in each.

        Args:
            prices: GPU type → price of a GPU-hour.
        """
        rows = ((month, *row) for month, tenants in self._rows.items() for row in sorted(tenants.items()))
        found = (_row(month, tenant, of, prices) for month, tenant, of in rows)
        return tuple(row for row in found if row.asked or row.held or row.lost)


def _row(month: str, tenant: str, of: Mapping[str, float], prices: Mapping[str, float] | None) -> Usage:
    """Usage of a tenant in a month from its sums."""
    held = {what.removeprefix("held "): hours for what, hours in of.items() if what.startswith("held ") and hours}
    known = prices is not None and prices.keys() >= held.keys()
    cost = sum(hours * prices[kind] for kind, hours in held.items()) if prices is not None and known else None
    asked, idle, lost = (of.get(what, 0.0) for what in ("asked", "idle", "lost"))
    return Usage(month, tenant, asked, sum(held.values()), idle, lost, cost)


def write_usage(rows: Iterable[Usage], path: Path, *, force: bool = False) -> None:
    """Write usage as a CSV file. Raises InputError for a file that is there already or cannot be written."""
    check_free(path, force=force)
    with new_file(path.absolute()) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADS)
        table.writerows(["" if cell is None else cell for cell in astuple(row)] for row in rows)
