"""CSV text to records and tables of text."""

import csv
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.limits import MOST_COLUMNS
from mast_opt.planner.io.faults import Faults, shortened
from mast_opt.planner.io.raw_table import RawTable, raw_table

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
    """Split CSV text at line feeds and commas that stand outside quotation marks. ``data`` is not empty."""
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
    """Positions of quotation marks in CSV text that neither open a field, nor close one, nor stand doubled
    inside one.
    """
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, text[opening - 1], _NEWLINE)
    after = np.where(closing + 1 < len(text), text[np.minimum(closing + 1, len(text) - 1)], _NEWLINE)
    allowed = np.array([_NEWLINE, _COMMA, _QUOTE], np.uint8)
    return np.sort(np.concatenate([opening[~np.isin(before, allowed)], closing[~np.isin(after, allowed)]]))


_UTF8_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def parse_csv(data: bytes, file: str, faults: Faults) -> RawTable | None:
    """The table in a CSV file's bytes, or None if nothing of it can be read (with a fault that says why)."""
    before = len(faults.found)
    text = _clean(data, file, faults)
    if text is None:
        return None
    found = records(text)
    if found.fields[0] > MOST_COLUMNS:
        faults.add(file, f"at most {MOST_COLUMNS:,} columns, not {found.fields[0]:,}")
        return None
    if found.unclosed is not None:
        row = found.unclosed or None
        value = _record(text, found, found.unclosed)
        faults.add(file, "a closing quotation mark (is the file cut off?)", row, value=value)
        return None
    try:
        heads = next(csv.reader([_record(text, found, 0)]), [""])
    except csv.Error as error:
        faults.add(file, f"a first row with the names of the columns ({error})", value=_record(text, found, 0))
        return None
    if len(heads) == 1 and (";" in heads[0] or "\t" in heads[0]):
        faults.add(file, "columns separated by commas", value=heads[0])
        return None
    bad = _irregular(text, found, len(heads), file, faults)
    return _read(text, found, heads, bad, file, faults, partial=len(faults.found) > before)


def _clean(data: bytes, file: str, faults: Faults) -> bytes | None:
    """CSV text in UTF-8 with line feeds, without byte-order mark and trailing blank lines; None if that is not what it
    is.
    """
    if data.startswith(_OTHER_MARKS) or b"\0" in data:
        faults.add(file, "CSV text in UTF-8 (this is another encoding, such as UTF-16, or a binary file)")
        return None
    data = data.removeprefix(_UTF8_MARK)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    data = data.rstrip(b"\n")
    if not data.strip():
        faults.add(file, "a first row with the names of the columns (the file is empty)")
        return None
    return data if data.isascii() else _utf8(data, file, faults)


def _utf8(data: bytes, file: str, faults: Faults) -> bytes | None:
    """CSV text in UTF-8; faults for rows that are in another encoding, None if the first is."""
    try:
        data.decode("utf-8")
        return data
    except UnicodeDecodeError:
        pass
    lines = [line.decode("utf-8", "replace") for line in data.split(b"\n")]
    if _REPLACEMENT in lines[0]:
        faults.add(file, "CSV text in UTF-8 (this is another encoding or a binary file)")
        return None
    rows = np.array([row for row, line in enumerate(lines) if _REPLACEMENT in line], np.int64)
    faults.cells(file, None, rows, lambda n: lines[rows[n]], "text in UTF-8 (� marks what is not)")
    return "\n".join(lines).encode()


def _record(text: bytes, found: Records, number: int) -> str:
    """Text of a record of a CSV file, for messages."""
    return text[found.starts[number] : found.ends[number]].decode("utf-8", "replace")


def _irregular(text: bytes, found: Records, width: int, file: str, faults: Faults) -> Ints:
    """Numbers of the records that cannot be split into the header's columns, each with a fault."""
    stray = found.stray_quotes[found.stray_quotes > 0]
    if len(stray) < len(found.stray_quotes):
        faults.add(file, "column names without quotation marks inside", value=_record(text, found, 0))
    faults.cells(
        file,
        None,
        stray,
        lambda n: _record(text, found, int(stray[n])),
        'quotation marks around a whole field, doubled ("") inside it',
    )
    uneven = np.setdiff1d(np.flatnonzero(found.fields != width), found.stray_quotes)
    uneven = uneven[uneven > 0]
    faults.cells(
        file,
        None,
        uneven,
        lambda n: _record(text, found, int(uneven[n])),
        f"{width} fields, as in the header",
        lambda n: f", not {found.fields[uneven[n]]}",
    )
    return np.union1d(stray, uneven)


def _read(
    text: bytes, found: Records, heads: list[str], bad: Ints, file: str, faults: Faults, *, partial: bool
) -> RawTable | None:
    """The table of a CSV file's regular records; None, with a fault, where it cannot be read."""
    rows = np.setdiff1d(np.arange(1, len(found.ends)), bad) if len(bad) else None
    height = len(found.ends) - 1 if rows is None else len(rows)
    names = [str(position) for position in range(len(heads))]
    if height == 0:
        columns = [pl.Series(name, [], pl.String) for name in names]
    else:
        if rows is None:
            body = text[found.starts[1] :]
        else:
            body = b"\n".join(text[found.starts[row] : found.ends[row]] for row in rows)
        try:
            frame = pl.read_csv(body, has_header=False, schema=dict.fromkeys(names, pl.String), glob=False)
        except pl.exceptions.PolarsError as error:
            faults.add(file, f"CSV text as in RFC 4180 ({shortened(str(error))})")
            return None
        if frame.height != height:
            faults.add(file, f"CSV text as in RFC 4180: {height} rows, not {frame.height}")
            return None
        columns = frame.get_columns()
    return raw_table(file, heads, columns, faults, rows, partial)
