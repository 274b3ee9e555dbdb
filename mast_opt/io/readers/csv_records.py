"""Where the records and fields of a CSV text lie, found on the bytes and without a loop over rows.

CSV readers forgive short rows and stray quotes, each in its own way. Looking at the bytes first shows what is
wrong and in which row; what then goes to the reader is regular.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEWLINE, _COMMA, _QUOTE = ord("\n"), ord(","), ord('"')

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Records:
    """Records of a CSV text whose lines end in a line feed; record 0 is the header."""

    starts: Ints
    """[n] first byte of each record."""
    ends: Ints
    """[n] the byte after its last."""
    fields: Ints
    """[n] how many fields it has."""
    stray_quotes: Ints
    """Records with a quotation mark where RFC 4180 allows none."""
    unclosed: int | None
    """The record with a quotation mark that is never closed."""


def records(data: bytes) -> Records:
    """Split at line feeds and commas that stand outside quotation marks. ``data`` is not empty."""
    text = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(text == _NEWLINE)
    commas = np.flatnonzero(text == _COMMA)
    quotes = np.flatnonzero(text == _QUOTE)
    if len(quotes):
        breaks = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
        commas = commas[np.searchsorted(quotes, commas) % 2 == 0]
    ends = breaks if len(text) - 1 in breaks[-1:] else np.append(breaks, len(text))
    starts = np.concatenate([[0], ends[:-1] + 1])
    fields = np.diff(np.searchsorted(commas, ends), prepend=0) + 1
    stray = np.unique(np.searchsorted(ends, _stray(text, quotes)))
    unclosed = int(np.searchsorted(ends, quotes[-1])) if len(quotes) % 2 else None
    return Records(starts, ends, fields, stray[stray != unclosed] if unclosed is not None else stray, unclosed)


def _stray(text: NDArray[np.uint8], quotes: Ints) -> Ints:
    """Positions of quotation marks that neither open a field, nor close one, nor stand doubled inside one."""
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, text[opening - 1], _NEWLINE)
    after = np.where(closing + 1 < len(text), text[np.minimum(closing + 1, len(text) - 1)], _NEWLINE)
    allowed = np.array([_NEWLINE, _COMMA, _QUOTE], np.uint8)
    return np.sort(np.concatenate([opening[~np.isin(before, allowed)], closing[~np.isin(after, allowed)]]))
