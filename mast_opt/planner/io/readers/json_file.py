"""One JSON file: a key for the header, and one a table (a list of rows, or lists by column)."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mast_opt.core.limits import MOST_COLUMNS, MOST_DOCUMENT_BYTES, most_cells
from mast_opt.planner.io.faults import Faults, shortened, whole_letters
from mast_opt.planner.io.readers.base import Number, read_bytes
from mast_opt.planner.io.readers.memory import MemorySource


class JsonSource(MemorySource):
    """Numbers stay the text that they are in the file, so that no digit is lost."""

    format = "json"
    expected = "a list of row objects, or an object with a list for each column"
    expected_cell = "text, a number, true, false or null"

    def __init__(self, path: Path, stem: str, faults: Faults) -> None:
        self.path, self._stem = path, stem
        data = read_bytes(path, path.name, faults, most=MOST_DOCUMENT_BYTES)
        expected = f"an object with the key {stem!r} and one for each table"
        self._content = None if data is None else parse_object(data, path.name, expected, faults)
        tables = {name: table for name, table in (self._content or {}).items() if name != stem}
        super().__init__(tables, {}, self.file(stem), faults)

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

    def file(self, table: str) -> str:
        """How faults name a table: the file and the key."""
        return f"{self.path.name}: {table}"

    def _columns(self, file: str, table: object) -> dict[str, pl.Series] | None:
        """The columns of a JSON table by their heads; None (and a fault) for what is no table, or far larger than the
        file.
        """
        if isinstance(table, list):
            others = np.array([n for n, row in enumerate(table) if not isinstance(row, dict)], np.int64)
            expected = "an object with a value for each column"
            self._faults.cells(file, None, others + 1, lambda n: table[others[n]], expected)
            if len(others):
                return None
            heads = {head for row in table for head in row}
            if len(heads) > MOST_COLUMNS or len(heads) * len(table) > most_cells(sum(map(len, table))):
                shown = f"{len(heads):,} keys in {len(table):,} rows"
                self._faults.add(file, f"the same keys in each row, {MOST_COLUMNS:,} at most", value=shown)
                return None
        elif not isinstance(table, dict):
            self._faults.add(file, self.expected, value=table)
            return None
        elif len(table) > MOST_COLUMNS:
            self._faults.add(file, f"at most {MOST_COLUMNS:,} columns", value=f"{len(table):,} columns")
            return None
        return super()._columns(file, table)


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
    """JSON object of an input from its pairs. Raises _BadKey for a key twice, or one that no file can carry."""
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _BadKey(next(name for name, count in counts.items() if count > 1), "each key once in an object")
    for name in content:
        if name != whole_letters(name):
            raise _BadKey(name, "keys without halves of surrogate pairs")
    return content
