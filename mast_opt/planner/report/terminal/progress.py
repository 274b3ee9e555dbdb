"""Progress of a command on stderr: one live line in a terminal, and elsewhere a plain line now and then if asked."""

import threading
import time

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from mast_opt.core.solve_result import Event
from mast_opt.core.wording import percent, plain

PATIENCE_S = 1.0
"""Seconds within which a command needs no progress line."""
FIRST_S, LONGEST_S = 2.0, 60.0
"""Seconds until the first plain line, and most between two; they double from one to the next."""


class Progress:
    """A context manager to be called with each event.

    Args:
        console: where the line goes.
        title: what is being done, or by which solver.
        time_limit_s: for the whole command, or None.
        elapsed_s: of the limit, already spent.
        waiting: what to say until there is an incumbent.
        lines: whether plain lines are printed where the console is no terminal; otherwise nothing is shown there.
    """

    def __init__(
        self,
        console: Console,
        title: str,
        time_limit_s: float | None = None,
        elapsed_s: float = 0.0,
        waiting: str = "",
        *,
        lines: bool = False,
    ) -> None:
        self._console = console
        self._title = title
        self._waiting = waiting
        self._limit_s = time_limit_s
        self._began = time.perf_counter() - elapsed_s
        self._event: Event | None = None
        self._compiling_since: float | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._spinner = Spinner("dots" if console.encoding.startswith("utf") else "line")
        self._live = Live(console=console, get_renderable=self._render, transient=True, refresh_per_second=4)
        self._timer: threading.Timer | None = None
        if console.is_terminal:
            self._timer = threading.Timer(PATIENCE_S, self._open)
        elif lines:
            self._timer = threading.Timer(FIRST_S, self._print, [FIRST_S])

    def __call__(self, event: Event) -> None:
        """The next event to show. Time spent compiling is left out of the clock."""
        if event.compiling:
            self._compiling_since = time.perf_counter()
        elif self._compiling_since is not None:  # the limit does not cover it
            self._began += time.perf_counter() - self._compiling_since
            self._compiling_since = None
        self._event = event

    def __enter__(self) -> "Progress":
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is None:
            return
        with self._lock:
            self._closed = True
            self._timer.cancel()
            self._live.stop()

    def _open(self) -> None:
        """Show the progress line in the terminal, unless it is closed already."""
        with self._lock:
            if not self._closed:
                self._live.start()

    def _print(self, waited_s: float) -> None:
        """Print a plain line now, and the next one after twice the wait."""
        with self._lock:
            if self._closed:
                return
            self._console.print(self.line(), soft_wrap=True)
            self._timer = threading.Timer(min(2 * waited_s, LONGEST_S), self._print, [2 * waited_s])
            self._timer.daemon = True
            self._timer.start()

    def _render(self) -> Spinner:
        """Render the progress line in the terminal as it is now."""
        self._spinner.update(text=self.line())
        return self._spinner

    def line(self) -> Text:
        """Words of the progress line on what is known now, within 80 columns."""
        if self._compiling_since is not None:
            seconds = f"{time.perf_counter() - self._compiling_since:.0f}"
            return Text.assemble((self._title, "bold"), f" compiling, once {seconds} s")
        elapsed = f"{time.perf_counter() - self._began:.0f}"
        of = "" if self._limit_s is None else f"/{self._limit_s:.0f}"
        parts = [Text.assemble((self._title, "bold"), f" {elapsed}{of} s")]
        event = self._event
        if event is None or event.incumbent is None:
            parts += [Text(self._waiting)] if self._waiting else []
        known = [] if event is None else [("incumbent", event.incumbent), ("bound", event.bound)]
        parts += [Text.assemble((f"{name} ", "dim"), plain(value)) for name, value in known if value is not None]
        if event is not None and event.gap is not None:
            parts.append(Text.assemble(("gap ", "dim"), percent(event.gap)))
        if event is not None and event.stage is not None:
            parts.append(Text.assemble(("stage ", "dim"), event.stage))
        line = Text("  ").join(parts)
        line.no_wrap, line.overflow = True, "ellipsis"
        return line
