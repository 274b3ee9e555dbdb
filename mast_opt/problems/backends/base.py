"""The interface of a backend, and code that backends share while their solver runs."""

import atexit
import importlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import BackendUnavailable, SizeLimitExceeded, UnsupportedOption
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.problems.mip import Mip, Scaled

T = TypeVar("T")

OPEN_SOLVERS = "highs, cpsat, scip or cbc"
"""The solvers without a licence, named where another one's licence gives out."""

WATCH_INTERVAL_S = 0.05
PATIENCE = 2
"""Number of times that Ctrl-C is taken as a wish to stop in good order."""
GRACE_S = 1.0
"""Seconds to wait for a solver that was asked to stop, where nothing is lost by leaving it behind."""
SOLVER_THREAD = "mast-opt-solver"


@runtime_checkable
class Backend(Protocol):
    """A MIP solver. Implementations live one to a file and import their library inside their methods."""

    name: str
    package: str
    """Name for ``pip install``, shown when the library is missing."""

    def version(self) -> str:
        """The solver's version. Raises BackendUnavailable if it cannot be used here."""
        ...

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        """Minimise ``mip``. Safe to call from several threads at once.

        Raises:
            UsageError: ``params`` do not fit the program (a start of the wrong length) or make no sense.
            UnsupportedOption: a field of ``params`` cannot be honoured.
            BackendUnavailable: the library or its licence is missing.
            SizeLimitExceeded: the licence does not cover a program of this size.
            BackendError: the library failed; carries its own words.
        """
        ...


def interruptibly(run: Callable[[], T], cancel: threading.Event, instead: Callable[[], T | None] = lambda: None) -> T:
    """Call ``run`` so that Ctrl-C sets ``cancel`` instead of killing it, then return its result.

    ``run`` moves to a worker thread, because a solver that stays inside compiled code would keep Python from seeing
    the signal, and some look up from it only twice a minute. A third Ctrl-C gives up waiting and raises
    KeyboardInterrupt. A handler that the caller installed for SIGINT is left in charge.

    Args:
        run: what to call.
        cancel: what Ctrl-C sets; set it from any thread.
        instead: asked, once ``cancel`` has been set for a while, for what is known without ``run``; None is an answer
            that is not known yet. With any other, ``run`` is left behind in its thread, for which the interpreter
            waits when it ends.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(run())
        except BaseException as error:
            failure.append(error)

    worker = threading.Thread(target=work, name=SOLVER_THREAD, daemon=True)
    asked_s: float | None = None
    with cancelling(cancel):
        worker.start()
        while worker.is_alive():
            worker.join(WATCH_INTERVAL_S)
            if asked_s is None:
                asked_s = time.monotonic() if cancel.is_set() else None
            elif worker.is_alive() and time.monotonic() - asked_s > GRACE_S:
                known = instead()
                if known is not None:
                    atexit.register(worker.join)
                    return known
    if failure:
        raise failure[0]
    return outcome[0]


def solver_left_behind() -> bool:
    """Whether a solver still runs that did not stop when it was asked to."""
    return any(thread.name == SOLVER_THREAD for thread in threading.enumerate())


@contextmanager
def cancelling(cancel: threading.Event) -> Iterator[None]:
    """Set ``cancel`` on Ctrl-C while the block runs in the main thread; the third Ctrl-C raises.

    A handler that the caller installed for SIGINT is left in charge.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    left = iter(range(PATIENCE))

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        cancel.set()
        if next(left, None) is None:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def load(module: str, backend: Backend) -> Any:
    """The solver's library. Raises BackendUnavailable, saying how to install it."""
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:
        raise BackendUnavailable(
            f"{backend.name} cannot be used here ({error}); install it with: pip install '{backend.package}'"
        ) from error


def checked_options(
    backend: str,
    params: SolveParams,
    owned: dict[str, str],
    node_limit: str | None,
    takes_incumbents: bool = False,
) -> tuple[tuple[str, str | int | float | bool], ...]:
    """The options, none of them one that a field of SolveParams already governs, and the limit in nodes among them.

    Args:
        owned: the solver's option → the field to use instead. Compared without regard to case.
        node_limit: the solver's option for ``params.node_limit``, which governs it where it is given; None if the
            solver has none.
        takes_incumbents: whether the backend honours ``params.incumbents``.

    Raises:
        UnsupportedOption: an option is governed by a field, the solver has no limit in nodes, or it takes no solutions
            while it runs.
    """
    if params.incumbents is not None and not takes_incumbents:
        raise UnsupportedOption(f"{backend} takes no solutions while it runs; give it a start")
    limit = params.node_limit
    if limit is not None and node_limit is None:
        raise UnsupportedOption(f"{backend} has no limit in nodes, and node_limit is {limit}; leave it out")
    limits: dict[str, int] = {} if limit is None or node_limit is None else {node_limit: limit}
    fields = {option.casefold(): field for option, field in {**owned, **dict.fromkeys(limits, "node_limit")}.items()}
    for name, _ in params.options:
        if name.casefold() in fields:
            raise UnsupportedOption(
                f"{backend} option {name} is governed by {fields[name.casefold()]}; set that instead"
            )
    return (*params.options, *limits.items())


def converted(value: str | int | float | bool, like: Any) -> Any:
    """An option's value in the type that the solver has for it.

    Raises:
        ValueError: it cannot be read as one.
    """
    if isinstance(like, bool):
        words = {"true": True, "false": False, "1": True, "0": False}
        if str(value).lower() not in words:
            raise ValueError(f"expected true or false, not {value!r}")
        return words[str(value).lower()]
    if isinstance(like, int) and isinstance(value, float) and not value.is_integer():
        raise ValueError(f"expected a whole number, not {value!r}")
    return int(value) if isinstance(like, int) else type(like)(value)


def scaled_start(mip: Mip, scaled: Scaled, start: FloatArray) -> FloatArray:
    """A start as the scaled program has it, integer columns rounded and all within their bounds."""
    whole = np.where(mip.integral, np.round(start), start)
    return scaled.to_scaled(np.clip(whole, mip.col_lower, mip.col_upper))


def one_sided(mip: Mip, below: str, above: str, equal: str) -> tuple[IntArray, NDArray[np.str_], FloatArray]:
    """Rows as solvers without ranges want them: row positions, senses and limits; a row with two limits comes twice.

    Args:
        below, above, equal: the solver's letters for ≤, ≥ and =.
    """
    lower, upper = np.isfinite(mip.row_lower), np.isfinite(mip.row_upper)
    equality = mip.row_lower == mip.row_upper
    lower, upper = lower & ~equality, upper & ~equality
    positions = [np.flatnonzero(chosen) for chosen in (equality, upper, lower)]
    senses = np.repeat(np.array([equal, below, above]), [len(rows) for rows in positions])
    limits = (mip.row_lower, mip.row_upper, mip.row_lower)
    at = np.concatenate(positions)
    return at, senses, np.concatenate([limit[rows] for limit, rows in zip(limits, positions, strict=True)])


def too_large(backend: str, mip: Mip, words: str) -> SizeLimitExceeded:
    """The error for a program over the size that a licence allows; ``words`` states that limit."""
    rows, columns = mip.shape
    return SizeLimitExceeded(
        f"{backend} refuses {rows:,} rows × {columns:,} columns × {len(mip.value):,} entries: {words}. "
        f"Use {OPEN_SOLVERS}, which have no such limit, or install a full licence of {backend}."
    )
