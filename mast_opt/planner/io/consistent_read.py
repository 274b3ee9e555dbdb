"""Reads that see one version of an input, even if it is replaced meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mast_opt.core.errors import InputError, InstanceError, PlanError

ResultT = TypeVar("ResultT")

ATTEMPTS = 20
"""Number of attempts to read an input that keeps being replaced."""


def read_undisturbed(path: Path, header_file: str, read: Callable[[], ResultT]) -> ResultT:
    """Read an instance or plan: return what ``read`` returns, or raise what it raises, from files that all belong to
    one version of the input.

    Writers of this package replace a file or a whole folder. If the path names another file or folder after the read
    than before, the result may mix two versions, so it is dropped and the input is read again.

    Args:
        path: the input; a file, or a folder with ``header_file`` in it.
        header_file: the name of the header in a folder.
        read: reads the input.

    Raises:
        InputError: the input was replaced during each of ``ATTEMPTS`` reads.
    """
    for _ in range(ATTEMPTS):
        before = _identity(path, header_file)
        try:
            result, failure = read(), None
        except (InstanceError, PlanError) as error:
            result, failure = None, error
        if _identity(path, header_file) != before:
            continue
        if failure is not None:
            raise failure
        return result  # type: ignore[return-value]
    raise InputError(f"{path} was replaced {ATTEMPTS} times while it was read; stop its writers and try again")


def _identity(path: Path, header_file: str) -> tuple[tuple[int, ...] | None, ...]:
    """Identity of an input and of its header's file, which changes when they are replaced."""
    return _stamp(path), _stamp(path / header_file)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Device, number, times and size of an input's file; None where there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
