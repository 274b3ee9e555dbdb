"""A folder with a TOML header and one CSV or Parquet file a table."""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.core.limits import MOST_HEADER_BYTES, MOST_KEY_PARTS, read_regular
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.raw_table import RawTable, is_note
from mast_opt.planner.io.readers.base import read_bytes
from mast_opt.planner.io.readers.csv_text import parse_csv
from mast_opt.planner.io.readers.parquet import parse_parquet

_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MOST_KEY_PARTS}}}""", re.ASCII
)
_SUFFIXES = (".csv", ".parquet")


class FolderSource:
    """``stem`` names the header file (``instance`` or ``plan``); ``known`` are the tables a kind may have."""

    format = "folder"

    def __init__(self, path: Path, stem: str, faults: Faults) -> None:
        self.path = path
        self.header_file = f"{stem}.toml"
        self._faults = faults
        self._files: dict[str, Path] = {}
        self._others: list[Path] = []
        for entry in sorted(path.iterdir()):
            if entry.name.startswith(".") or is_note(entry.name) or entry.name == self.header_file:
                continue
            if entry.suffix.lower() not in _SUFFIXES:
                self._others.append(entry)
            elif entry.stem in self._files:
                other = self._files[entry.stem].name
                faults.add(entry.name, f"one file for the table {entry.stem}, but {other} is there too; remove one")
            else:
                self._files[entry.stem] = entry

    def header(self) -> Mapping[str, Any] | None:
        """The header file's content; None, with a fault, where it cannot be read."""
        path = self.path / self.header_file
        if not path.exists():
            self._faults.add(self.header_file, f"this file in {self.path}; it says what kind of tables these are")
            return None
        data = read_bytes(path, self.header_file, self._faults, most=MOST_HEADER_BYTES, inside=self.path)
        if data is None:
            return None
        try:
            return parse_toml(data, parse_float=Decimal)
        except UnicodeDecodeError as error:
            row = data[: error.start].count(b"\n") + 1
            self._faults.add(self.header_file, f"text in UTF-8 (line {row} is not)")
        except (ValueError, ArithmeticError, RecursionError) as error:  # of tomllib, int and Decimal
            self._faults.add(self.header_file, f"TOML ({error})")
        return None

    def tables(self) -> Mapping[str, str]:
        """Table → name of its file in the instance's folder."""
        return {name: path.name for name, path in self._files.items()}

    def file(self, table: str) -> str:
        """Name of a table's file; that of the CSV file where there is none."""
        return self._files[table].name if table in self._files else f"{table}.csv"

    def table(self, name: str) -> RawTable | None:
        """The cells of a table's file; None, with a fault, where it cannot be read."""
        path = self._files[name]
        if path.is_dir():
            self._faults.add(path.name, "a file, not a folder")
            return None
        data = read_bytes(path, path.name, self._faults, inside=self.path)
        if data is None:
            return None
        parse = parse_csv if path.suffix.lower() == ".csv" else parse_parquet
        return parse(data, path.name, self._faults)

    def misnamed(self, known: Collection[str]) -> None:
        """A fault for each file that looks like a table (``reads.tsv``, ``reads.csv.gz``) but cannot be read as one."""
        for entry in self._others:
            name = entry.name.split(".")[0]
            if name in known and entry.is_file():
                self._faults.add(entry.name, f"{name}.csv or {name}.parquet; other formats are not read")


def parse_toml(data: bytes, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        ValueError, ArithmeticError, RecursionError: it is no TOML, or a dotted key has more parts than TOML is read
            with: its reader takes quadratic time.
    """
    text = data.decode("utf-8-sig")
    if _LONG_KEY.search(text):
        raise ValueError(f"a key of more than {MOST_KEY_PARTS} parts")
    return tomllib.loads(text, parse_float=parse_float)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a TOML file of ``what``. Raises InputError where there is none."""
    try:
        return parse_toml(read_regular(path, MOST_HEADER_BYTES))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a TOML file of {what}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
