"""stdout is for results, stderr for everything else, and no terminal is too poor for either."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from mast_opt.core.wording import UNSAFE, shown_lines

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN = {"×": "x", "→": "->", "…": "...", "≥": ">=", "≤": "<=", "·": "-", "−": "-", "–": "-", "’": "'", "Σ": "sum"}


def console(stream: TextIO) -> Console:
    """A console on the stream that shows labels as they are: no markup, no emoji, no guessed colours.

    Characters in them that would control a terminal or reorder its text are shown as escapes.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Plain(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            """Segments of a renderable, with unsafe characters shown as escapes."""
            for segment in super().render(renderable, options):
                if segment.control or not UNSAFE.search(segment.text.replace("\n", "")):
                    yield segment
                else:
                    yield Segment(shown_lines(segment.text), segment.style)

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
    """Replace characters that a stream of the command line cannot encode by plainer ones."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


class OnlyResults:
    """Redirection to stderr of what native solver code writes to file descriptor 1, while entered, until
    ``release``."""

    def __init__(self) -> None:
        self._kept: int | None = None

    def __enter__(self) -> OnlyResults:
        try:
            sys.stdout.flush()
            self._kept = os.dup(1)
            os.dup2(2, 1)
        except (OSError, ValueError, AttributeError):  # one of the two is closed: nothing to keep apart
            self.release()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give stdout back to the command; a second time does nothing."""
        if self._kept is not None:
            os.dup2(self._kept, 1)
            os.close(self._kept)
            self._kept = None


def to_stdout(write: Callable[[], None]) -> None:
    """Write a command's result, and see now whether it arrived; a reader who has gone away is no fault of ours."""
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
    """Discard whatever is still buffered after a broken pipe, without complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
