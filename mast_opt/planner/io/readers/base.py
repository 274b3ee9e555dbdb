"""Code that the readers of all three shapes of input share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from mast_opt.core.limits import MOST_FILE_BYTES, read_regular
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.raw_table import RawTable


class Untyped(str):
    """Text from a place that does not distinguish a number from text (an Excel sheet, the numbers of a JSON file)."""

    __slots__ = ()


class Number(Untyped):
    """A number of a JSON file as it is written there: text where a table has text, but no text of a header."""

    __slots__ = ()


class Source(Protocol):
    """An opened input: a header and named tables. Defects become faults; nothing is raised for them."""

    format: str
    """``folder``, ``xlsx`` or ``json``."""
    header_file: str
    """How faults call the header: ``instance.toml``, ``fleet.xlsx: instance``."""

    def header(self) -> Mapping[str, Any] | None:
        """The header of an input as nested mappings; None if it is missing or unreadable."""
        ...

    def tables(self) -> Mapping[str, str]:
        """Name of each table of the input → how faults call it."""
        ...

    def file(self, table: str) -> str:
        """Name by which faults call a table of the input, whether it is there or not."""
        ...

    def table(self, name: str) -> RawTable | None:
        """Content of an input's table; None if nothing of it can be read."""
        ...


def read_bytes(
    path: Path, file: str, faults: Faults, *, most: int = MOST_FILE_BYTES, inside: Path | None = None
) -> bytes | None:
    """Content of an input file; None (and a fault in the system's words) if it cannot be had. See ``read_regular``."""
    try:
        return read_regular(path, most, inside)
    except OSError as error:
        faults.add(file, f"a file that can be read ({error.strerror})")
        return None


@contextmanager
def panics_as_text() -> Iterator[list[str]]:
    """A list that gets the message of a panic of an input's reader written in Rust; other exceptions pass.

    Such a reader prints its own report to stderr before it raises. That report is not suppressed: file descriptor 2
    belongs to the whole process, and other threads write to it.
    """
    panics: list[str] = []
    try:
        yield panics
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        panics.append(next(iter(str(error).splitlines()), "its reader gave up"))
