"""stdout is for results, stderr for everything else, and no terminal is too poor for either."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN = {"×": "x", "→": "->", "…": "...", "≥": ">=", "≤": "<=", "·": "-", "−": "-", "–": "-", "’": "'", "Σ": "sum"}


def console(stream: TextIO) -> Console:
    """A console on the stream that shows labels as they are: no markup, no emoji, no guessed colours."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the process with an exit code of its own

    tolerant(stream)
    return Plain(file=stream, markup=False, emoji=False, highlight=False)


def tolerant(stream: TextIO) -> None:
    """Let the stream write what its encoding lacks in plainer characters instead of failing."""
    codecs.register_error("mast_opt.plain", _plain)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="mast_opt.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


@contextmanager
def only_results_on_stdout() -> Iterator[None]:
    """Send what native solver code writes to file descriptor 1 to stderr while the block runs."""
    try:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):  # one of the two is closed: nothing to keep apart
        yield
        return
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def to_stdout(write: Callable[[], None]) -> None:
    """Write, and see now whether it arrived; a reader who has gone away is no fault of ours."""
    if sys.stdout is None:
        return
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
    except OSError as error:
        _abandon_stdout()
        raise OSError(error.errno, error.strerror, "stdout") from error


def _abandon_stdout() -> None:
    """After a broken pipe: whatever is still buffered goes nowhere, without complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
