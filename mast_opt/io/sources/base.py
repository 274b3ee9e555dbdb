"""What the three shapes of input have in common."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

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
    with _stderr_lock, tempfile.TemporaryFile() as held:
        stderr = _redirect(held.fileno())
        try:
            yield panics
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            panics.append(next(iter(str(error).splitlines()), "its reader gave up"))
        finally:
            if stderr is not None:
                _redirect(stderr)
                os.close(stderr)
        if not panics and stderr is not None:
            held.seek(0)
            os.write(2, held.read())


def _redirect(target: int) -> int | None:
    """Point file descriptor 2 at ``target``; a copy of what it was, or None where the process has none."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
        before = os.dup(2)
    except (OSError, ValueError):
        return None
    os.dup2(target, 2)
    return before
