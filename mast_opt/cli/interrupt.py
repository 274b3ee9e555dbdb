"""Ctrl-C, a termination request or a closed terminal while a solver runs: the first keeps what was found, the second
leaves at once."""

import os
import signal
import threading
from types import FrameType

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Run
from mast_opt.core.solve_result import Status


class Interrupt:
    """Signal handler that sets ``cancel`` on the first SIGINT, SIGTERM or SIGHUP while entered, and ends the process on
    the next.

    A SIGHUP that is ignored, as under ``nohup``, stays ignored.

    Args:
        run: the command that is interrupted.
        kept: what is kept of it after the first, in words.
    """

    def __init__(self, run: Run, kept: str) -> None:
        self.cancel = threading.Event()
        self._run = run
        self._kept = kept
        self._previous: dict[signal.Signals, signal.Handlers] = {}

    @property
    def happened(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self.cancel.is_set()

    def __enter__(self) -> "Interrupt":
        if threading.current_thread() is threading.main_thread():
            for number in _signals():
                self._previous[number] = signal.signal(number, self._handle)  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: set ``cancel``, or end the process if it is set already."""
        if self.cancel.is_set():
            try:
                self._run.stdout.release()
                self._run.record["status"] = Status.NO_SOLUTION.value
                self._run.fail(f"Interrupted twice; left without {self._kept}.", Exit.INTERRUPTED)
            finally:
                os._exit(Exit.INTERRUPTED)
        self.cancel.set()
        self._run.say(f"Stopping; {self._kept} will be kept. Press Ctrl-C again to leave at once.")


def _signals() -> tuple[signal.Signals, ...]:
    """Signals by which a command is interrupted on this system."""
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is None or signal.getsignal(hang_up) is signal.SIG_IGN:
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, hang_up)
