"""One JSON file: a key for the header, and one a table (a list of rows, or lists by column)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mast_opt.core.limits import MOST_COLUMNS, MOST_DOCUMENT_BYTES, most_cells
from mast_opt.planner.io.faults import Faults, shortened, whole_letters
from mast_opt.planner.io.raw_table import RawTable, is_note, raw_table
from mast_opt.planner.io.readers.base import Number, read_bytes


class JsonSource:
    """Numbers stay the text that they are in the file, so that no digit is lost."""

    format = "json"

    def __init__(self, path: Path, stem: str, faults: Faults) -> None:
        self.path = path
        self.header_file = self.file(stem)
        self._stem = stem
        self._faults = faults
        self._content = self._load()

    def _load(self) -> dict[str, Any] | None:
        """Parsed document, or None with faults."""
        file = self.path.name
        data = read_bytes(self.path, file, self._faults, most=MOST_DOCUMENT_BYTES)
        expected = f"an object with the key {self._stem!r} and one for each table"
        return None if data is None else parse_object(data, file, expected, self._faults)

    def header(self) -> Mapping[str, Any] | None:
        """The header's object; None, with a fault, where it is missing."""
        if self._content is None:
            return None
        header = self._content.get(self._stem)
        if isinstance(header, dict):
            return header
        expected = f"the key {self._stem!r} with an object; it says what kind of tables these are"
        self._faults.add(self.path.name, expected)
        return None

    def tables(self) -> Mapping[str, str]:
        """Table → how faults name it; every key but the header's."""
        return {name: self.file(name) for name in self._content or {} if name != self._stem}

    def file(self, table: str) -> str:
        """How faults name a table: the file and the key."""
        return f"{self.path.name}: {table}"

    def table(self, name: str) -> RawTable | None:
        """The cells of a table, listed by rows or by columns; None, with a fault, where they are neither."""
        assert self._content is not None
        file, content = self.file(name), self._content[name]
        columns = None
        if content == []:
            return RawTable(file, pl.DataFrame(), headless=True)
        if isinstance(content, list):
            columns = self._of_rows(file, content)
        elif isinstance(content, dict):
            columns = self._of_columns(file, content)
        else:
            self._faults.add(file, "a list of row objects, or an object with a list for each column", value=content)
        if columns is None:
            return None
        heads = [head for head in columns if not is_note(head)]
        return raw_table(file, heads, [self._series(file, head, columns[head]) for head in heads], self._faults)

    def _of_rows(self, file: str, rows: list[Any]) -> dict[str, list[Any]] | None:
        others = np.array([n for n, row in enumerate(rows) if not isinstance(row, dict)], np.int64)
        self._faults.cells(file, None, others + 1, lambda n: rows[others[n]], "an object with a value for each column")
        if len(others):
            return None
        heads = dict.fromkeys(head for row in rows for head in row)
        stated = sum(map(len, rows))
        if len(heads) > MOST_COLUMNS or len(heads) * len(rows) > most_cells(stated):
            shown = f"{len(heads):,} keys in {len(rows):,} rows"
            self._faults.add(file, f"the same keys in each row, {MOST_COLUMNS:,} at most", value=shown)
            return None
        return {head: [row.get(head) for row in rows] for head in heads}

    def _of_columns(self, file: str, columns: dict[str, Any]) -> dict[str, list[Any]] | None:
        height = None
        if len(columns) > MOST_COLUMNS:
            self._faults.add(file, f"at most {MOST_COLUMNS:,} columns", value=f"{len(columns):,} columns")
            return None
        for head, cells in columns.items():
            if not isinstance(cells, list):
                self._faults.add(file, "a list of cells", column=head, value=cells)
                return None
            height = len(cells) if height is None else height
            if len(cells) != height:
                shown = f"{len(cells)} cells"
                self._faults.add(file, f"{height} cells, as in the first column", column=head, value=shown)
                return None
        return columns

    def _series(self, file: str, head: str, cells: list[Any]) -> pl.Series:
        """The cells as text; lists and objects are faults and become null."""
        types = set(map(type, cells))
        if not types <= {str, Number, bool, type(None)}:
            nested = np.array([n for n, cell in enumerate(cells) if isinstance(cell, (list, dict))], np.int64)
            listed = list(cells)
            self._faults.cells(
                file, head, nested + 1, lambda n: listed[nested[n]], "text, a number, true, false or null"
            )
            cells = [None if isinstance(cell, (list, dict)) else cell for cell in cells]
        if bool in types:
            cells = [str(cell).lower() if isinstance(cell, bool) else cell for cell in cells]
        try:
            return pl.Series(head, cells, pl.String)
        except UnicodeEncodeError:
            return self._without_surrogates(file, head, cells)

    def _without_surrogates(self, file: str, head: str, cells: list[str | None]) -> pl.Series:
        clean = [None if cell is None else whole_letters(cell) for cell in cells]
        bad = np.array([n for n, cell in enumerate(cells) if cell != clean[n]], np.int64)
        self._faults.cells(file, head, bad + 1, lambda n: clean[bad[n]], "text without halves of surrogate pairs")
        return pl.Series(head, clean, pl.String)


def parse_object(data: bytes, file: str, expected: str, faults: Faults) -> dict[str, Any] | None:
    """The JSON object that a file holds, with numbers as ``Number``; None, with a fault, where it holds none.

    Args:
        data: content of the file.
        file: how faults name it.
        expected: of an object, for a file with something else.
        faults: where what is wrong is listed.
    """
    try:
        content = json.loads(
            data.decode("utf-8-sig"),
            parse_float=Number,
            parse_int=Number,
            parse_constant=Number,
            object_pairs_hook=_unique_keys,
        )
    except UnicodeDecodeError as error:
        faults.add(file, f"JSON text in UTF-8 (byte {error.start} is not)")
    except json.JSONDecodeError as error:
        faults.add(file, f"JSON ({error.msg}, line {error.lineno} column {error.colno})")
    except RecursionError:
        faults.add(file, "JSON (this is nested too deeply)")
    except _BadKey as error:
        faults.add(file, error.expected, value=error.key)
    else:
        if isinstance(content, dict):
            return content
        faults.add(file, expected)
    return None


class _BadKey(ValueError):
    def __init__(self, key: str, expected: str) -> None:
        self.key, self.expected = shortened(whole_letters(key)), expected


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _BadKey(next(name for name, count in counts.items() if count > 1), "each key once in an object")
    for name in content:
        if name != whole_letters(name):
            raise _BadKey(name, "keys without halves of surrogate pairs")
    return content
