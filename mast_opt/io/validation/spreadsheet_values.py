"""What somebody meant who typed a number or a truth value as spreadsheets show it."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = r"([+-]?\d+(?:[.,]\d+)?)"
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?")
_PERCENTAGE = re.compile(_NUMBER + r"\s*%")
_WITH_UNIT = re.compile(_NUMBER + r"\s*[^\W\d_]+")
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_IN_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[,.'’\s]\d{3})+(?:[.,]\d+)?")
_TRUTH = {"yes": "true", "y": "true", "no": "false", "n": "false"}


def number_meant(text: str) -> str:
    """``"; did you mean 12.5?"`` for ``12,5``, and likewise for percentages, units and dates; or nothing."""
    text = text.strip()
    if _DATE.fullmatch(text):
        return "; it is a date: give the cell the format of a number, and type it again"
    if _IN_THOUSANDS.fullmatch(text):
        return "; write nothing between thousands, and a point before decimals"
    if _WITH_COMMA.fullmatch(text):
        return f"; did you mean {text.replace(',', '.')}?"
    if share := _PERCENTAGE.fullmatch(text):
        return f"; did you mean {(Decimal(share[1].replace(',', '.')) / 100).normalize():f}?"
    if amount := _WITH_UNIT.fullmatch(text):
        return f"; did you mean {amount[1].replace(',', '.')}? (its unit is that of the column)"
    return ""


def truth_meant(text: str) -> str:
    """``"; did you mean true?"`` for ``yes``, and likewise for no; or nothing."""
    meant = _TRUTH.get(text.strip().casefold())
    return f"; did you mean {meant}?" if meant else ""
