"""What the three shapes of input have in common."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from mast_opt.io.faults import Faults
from mast_opt.io.raw import RawTable


class Untyped(str):
    """Text from a place that does not tell a number from text (an Excel sheet, the numbers of a JSON file)."""

    __slots__ = ()


class Source(Protocol):
    """An opened input: a header and named tables. Defects become faults; nothing is raised for them."""

    format: str
    """``folder``, ``xlsx`` or ``json``."""
    header_file: str
    """How faults call the header: ``instance.toml``, ``fleet.xlsx: instance``."""

    def header(self) -> Mapping[str, Any] | None:
        """The header as nested mappings; None if it is missing or unreadable."""
        ...

    def tables(self) -> Mapping[str, str]:
        """Name of each table there is → how faults call it."""
        ...

    def file(self, table: str) -> str:
        """How faults call a table, whether it is there or not."""
        ...

    def table(self, name: str) -> RawTable | None:
        """A table's content; None if nothing of it can be read."""
        ...


def read_bytes(path: Path, file: str, faults: Faults) -> bytes | None:
    """A file's content; None (and a fault in the system's words) if it cannot be had."""
    try:
        return path.read_bytes()
    except OSError as error:
        faults.add(file, f"a file that can be read ({error.strerror})")
        return None


_stderr_lock = threading.Lock()


@contextmanager
def no_panic_report() -> Iterator[list[str]]:
    """Turn a panic of a reader written in Rust into one line; other exceptions pass.

    On a file damaged in just the right way such a reader prints a stack trace to file descriptor 2 before it
    raises. What is written there meanwhile is held back, and released unless there was a panic.
    """
    panics: list[str] = []
    with _stderr_lock, ExitStack() as after:
        try:
            held = after.enter_context(tempfile.TemporaryFile())
            stderr = os.dup(2)
        except OSError:  # no room for a temporary file, or no stderr at all: nothing is held back
            held = None
        if held is not None:
            after.callback(_release, held, stderr, panics)
            os.dup2(held.fileno(), 2)
        try:
            yield panics
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            panics.append(next(iter(str(error).splitlines()), "its reader gave up"))


def _release(held: IO[bytes], stderr: int, panics: list[str]) -> None:
    """Make ``stderr`` file descriptor 2 again, and print what was held back unless there was a panic."""
    os.dup2(stderr, 2)
    os.close(stderr)
    if not panics:
        held.seek(0)
        os.write(2, held.read())
