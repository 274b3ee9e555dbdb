"""A loop that leads in its turn while its service already answers: until then, that it is not ready."""

import threading
from collections.abc import Callable

from mast_opt.core.errors import Interrupted
from mast_opt.live.service.live import Live
from mast_opt.live.store.errors import CorruptStore, Fenced, LeadHeld, StoreError

WATCH_S = 0.2
"""Time between two looks at whether the loop goes on."""


class Leading(threading.Thread):
    """Thread that prepares, waits until no other process leads, then leads. It ends when it is stopped, when another
    process leads, or when the log cannot be read.

    Args:
        stop: ends it.
        prepare: called first; it may raise Interrupted once ``stop`` is set.
        on_wait: called with who leads, while somebody else does.
        on_lead: called once, when the loop has begun.
        on_end: called in the end.
    """

    def __init__(
        self,
        live: Live,
        stop: threading.Event,
        prepare: Callable[[], None],
        on_wait: Callable[[str], None],
        on_lead: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(name="mast-opt lead", daemon=True)
        self._live, self._stop_asked, self._prepare = live, stop, prepare
        self._on_wait, self._on_lead, self._on_end = on_wait, on_lead, on_end
        self.led = False
        """Whether the loop has begun."""
        self.error: Exception | None = None
        """Error that ended the thread; None while it runs and where it was stopped."""

    def run(self) -> None:
        """Body of the thread: lead the loop whenever the store allows it, until it is stopped."""
        try:
            self._prepare()
            self.led = lead(self._live, self._stop_asked, self._on_wait)
            if self.led:
                self._on_lead()
            while self.led and not self._stop_asked.wait(WATCH_S):
                if not self._live.goes_on:
                    self.error = Fenced(self._live.problem)
                    return
        except Interrupted:
            return
        except Exception as error:
            self.error = error
        finally:
            self._on_end()


def lead(live: Live, stop: threading.Event, on_wait: Callable[[str], None] = lambda words: None) -> bool:
    """Start a loop as soon as no other process leads; False if ``stop`` is set before. While another process leads, a
    store that fails is tried again.

    Raises:
        StoreError: the store fails, and nobody else leads.
        CorruptStore: its log cannot be read.
    """
    said = ""
    while not stop.is_set():
        try:
            live.start()
        except CorruptStore:
            raise
        except StoreError as error:
            if not (said or isinstance(error, LeadHeld)):
                raise
            if str(error) != said:
                live.problem = said = str(error)
                on_wait(said)
            stop.wait(0.5)
        else:
            return True
    return False
