"""Calendar dates of days that are counted from a first one."""

from datetime import date, timedelta

from mast_opt.core.errors import UsageError


def date_of(begin: date | None, day: int | None) -> str | None:
    """ISO date of a day, counted from 0 at ``begin``; None where either is unknown.

    Raises:
        UsageError: the day is after the year 9999.
    """
    if begin is None or day is None:
        return None
    try:
        return (begin + timedelta(days=day)).isoformat()
    except OverflowError:
        raise UsageError(f"day {day:,} from {begin.isoformat()} is after the year 9999") from None
