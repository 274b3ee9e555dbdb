"""Options of the form NAME=NUMBER."""

from __future__ import annotations

from collections.abc import Sequence

from mast_opt.core.errors import UsageError


def numbers_by_name(option: str, texts: Sequence[str] | None, example: str) -> dict[str, float]:
    """What a repeatable NAME=NUMBER option says. Raises UsageError for anything else, or a name twice."""
    found: dict[str, float] = {}
    for text in texts or ():
        name, equals, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not name or not equals or value != value:
            raise UsageError(f"{option} {text}: expected NAME=NUMBER, as in {option} {example}")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given twice")
        found[name] = value
    return found
