"""Warnings of importers: what their files say and an instance cannot hold, or what was probably not meant.

An importer warns where it reads, by Python's ``warnings``; the command line collects what an import has warned of.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from mast_opt.core.errors import InstanceWarning
from mast_opt.core.input_warning import InputWarning

FoundT = TypeVar("FoundT")


class SourceWarning(InstanceWarning):
    """A warning of an importer; ``found`` has its parts."""

    def __init__(self, found: InputWarning) -> None:
        super().__init__(str(found))
        self.found = found


def warn(
    file: str,
    message: str,
    *,
    row: int | None = None,
    column: str | None = None,
    values: Sequence[object] = (),
    suggestion: str = "",
) -> None:
    """Warn of something in a file that an importer reads.

    Args:
        values: what it is about, such as names of jobs; the first is shown, the others are counted.
        suggestion: what was perhaps meant, or what to do.
    """
    value = str(values[0]) if values else None
    issue(InputWarning(file, message, row, column, value, suggestion, max(1, len(values))))


def issue(found: InputWarning) -> None:
    """Issue an importer's warning."""
    warnings.warn(SourceWarning(found), stacklevel=3)


def with_warnings(run: Callable[[], FoundT]) -> tuple[FoundT, list[InputWarning]]:
    """Result of a function, and the warnings of importers that it has issued; others are issued again."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run()
    for one in caught:
        if not isinstance(one.message, SourceWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return found, [one.message.found for one in caught if isinstance(one.message, SourceWarning)]
