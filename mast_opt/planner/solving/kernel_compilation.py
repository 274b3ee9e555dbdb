"""Kernel compilation (or loading from the cache) of all solvers, before the clock of a search starts."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from mast_opt.core.arguments import a_function, checked
from mast_opt.core.errors import Interrupted
from mast_opt.problems import backends
from mast_opt.problems.backends.base import GRACE_S, WATCH_INTERVAL_S, cancelling, interruptibly
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.registry import kind_named
from mast_opt.problems.registry import kinds as every_kind
from mast_opt.problems.search.interface import Rehearsal, SearchContext, SearchMonitor, StoppingCriteria

PROGRAMS = "programs"
"""The rehearsal for what states programs to MIP solvers."""
SMALLEST = 6
"""Sizes, at most, of the instance that is stated there."""
MOST_PROCESSES = 4
"""Processes that compile at the same time; there are no more long kernels than that."""

POOL_THREADS = "mast-opt-"
"""How the names of threads begin in which solvers run kernels."""
INTERRUPTED = "interrupted while kernels were compiled; what was compiled until then is kept for the next time"

_ready: set[tuple[str, str]] = set()
"""(kind, rehearsal) of those that are done: what is loaded stays loaded for as long as the process lives."""
_lock = threading.RLock()
_listeners: list[Callable[[str, float | None], None]] = []


@contextmanager
def compilation_heard(listener: Callable[[str, float | None], None]) -> Iterator[None]:
    """Tell a listener of every compilation in this process within the block, whoever asked for it.

    Args:
        listener: called with the name of a kind and None when compiling for it begins, and again with the seconds that
            it took. It may be called from any thread.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def needed(kind: Kind[Any, Any], solver: str, problem: Any | None = None) -> tuple[Rehearsal, ...]:
    """The rehearsals for a solver on a problem; without a problem, on any."""
    ours = kind.solvers.heuristics.get(solver)
    own = ours.rehearsals(problem) if ours is not None else ()
    if (ours is not None and ours.constructive) or not kind.formulation.has_kernels:
        return own
    return (*own, Rehearsal(PROGRAMS, partial(_state_program, kind)))


def all_needed(kind: Kind[Any, Any]) -> tuple[Rehearsal, ...]:
    """The rehearsals for every solver and every live object of a kind."""
    every = [rehearsal for solver, _ in kind.solvers.usable() for rehearsal in needed(kind, solver)]
    return tuple({rehearsal.name: rehearsal for rehearsal in (*every, *kind.solvers.live())}.values())


def rehearse(
    kind: Kind[Any, Any],
    rehearsals: Sequence[Rehearsal],
    cancel: threading.Event | None = None,
    on_compile: Callable[[], None] = lambda: None,
    helpers: bool = True,
) -> None:
    """Run the rehearsals that this process has not run yet.

    Args:
        cancel: set it from any thread, or press Ctrl-C, to stop compiling. Kernels that are in the cache are loaded
            nevertheless, which takes seconds.
        on_compile: called once, if and when something has to be compiled.
        helpers: may other processes compile?

    Raises:
        Interrupted: kernels are missing, because ``cancel`` was set or Ctrl-C was pressed while they were compiled.
    """
    if all((kind.name, rehearsal.name) in _ready for rehearsal in rehearsals):
        return
    given, cancel = cancel, cancel or threading.Event()
    began_s: list[float] = []

    def tell(seconds: float | None) -> None:
        for listener in tuple(_listeners):
            listener(kind.name, seconds)

    def compiling() -> None:
        if not began_s:
            began_s.append(time.perf_counter())
            tell(None)
            on_compile()

    with cancelling(cancel), _alone(cancel):
        left = [rehearsal for rehearsal in rehearsals if (kind.name, rehearsal.name) not in _ready]
        try:
            _run(kind, left, cancel, _Compiler(cancel, compiling, elsewhere=helpers))
        except _Missing:
            compiling()
            _compile_elsewhere(kind, [rehearsal.name for rehearsal in left], cancel)
            _run(kind, left, cancel, _Compiler(cancel, compiling, elsewhere=False))
        finally:
            if began_s:
                tell(time.perf_counter() - began_s[0])
    if given is None and cancel.is_set():
        raise Interrupted(INTERRUPTED)


def _run(kind: Kind[Any, Any], rehearsals: Sequence[Rehearsal], cancel: threading.Event, compiler: "_Compiler") -> None:
    """Run those rehearsals of kernels that are not ready, in a thread of their own.

    Raises:
        Interrupted: cancelled while the compiler ran. The thread ends at the compiler's next step.
        _Missing: a kernel has to be compiled elsewhere.
    """
    left = [rehearsal for rehearsal in rehearsals if (kind.name, rehearsal.name) not in _ready]
    if not left:
        return

    def run() -> bool:
        with compiler.followed():
            for rehearsal in left:
                rehearsal.run(_tools())
                _ready.add((kind.name, rehearsal.name))
        return True

    try:
        done = interruptibly(run, cancel, lambda: False if compiler.began else None)
    except _Cancelled:
        done = False
    if not done:
        raise Interrupted(INTERRUPTED)


@contextmanager
def _alone(cancel: threading.Event) -> Iterator[None]:
    """Compile kernels alone: only one thread at a time is within the block. Raises Interrupted if cancelled before it
    is this one's turn.
    """
    while not _lock.acquire(timeout=WATCH_INTERVAL_S):
        if cancel.is_set():
            raise Interrupted(INTERRUPTED)
    try:
        yield
    finally:
        _lock.release()


class _Missing(BaseException):
    """A kernel is not in the cache. Not an Exception, so that no solver takes it for one of its own failures."""


class _Cancelled(BaseException):
    """Cancelled while the compiler ran."""


class _Compiler:
    """Follows the compiler in one thread and in its pools.

    Args:
        on_compile: called before a kernel is compiled here.
        elsewhere: raise _Missing instead, for a kernel that another process can put into the cache.
    """

    def __init__(self, cancel: threading.Event, on_compile: Callable[[], None], elsewhere: bool) -> None:
        self._cancel, self._on_compile, self._elsewhere = cancel, on_compile, elsewhere
        self.began = False
        """Whether anything has been compiled."""

    def _at_kernel(self, dispatcher: Any) -> None:
        """Note that a kernel is about to be compiled; stop here if another process compiles it."""
        if self._elsewhere and type(dispatcher._cache).__name__ != "NullCache":
            raise _Missing
        self.began = True
        self._on_compile()
        self._at_step()

    def _at_step(self) -> None:
        """Raises _Cancelled where the solve was cancelled while kernels are compiled."""
        if self._cancel.is_set():
            raise _Cancelled

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow each kernel and each step of the compiler in the calling thread within the block."""
        from numba.core import event

        own, outer = threading.get_ident(), self

        def ours() -> bool:
            thread = threading.current_thread()
            return thread.ident == own or thread.name.startswith(POOL_THREADS)

        class Steps(event.Listener):
            def on_start(self, event: Any) -> None:
                if ours():
                    outer._at_step()

            def on_end(self, event: Any) -> None:
                pass

        class Kernels(Steps):
            def on_start(self, event: Any) -> None:
                if ours():
                    outer._at_kernel(event.data["dispatcher"])

        with event.install_listener("numba:compile", Kernels()), event.install_listener("numba:run_pass", Steps()):
            yield


def _compile_elsewhere(kind: Kind[Any, Any], names: list[str], cancel: threading.Event) -> None:
    """Wait for processes that compile these rehearsals. What they leave missing, because they failed, is no error.

    Raises:
        Interrupted: cancelled before they had done so.
    """
    children: list[subprocess.Popen[bytes]] = []
    try:
        children.extend(_helpers(kind, names))
        while not cancel.is_set():
            codes = [child.poll() for child in children]
            if 0 in codes or None not in codes:
                return
            cancel.wait(WATCH_INTERVAL_S)
        raise Interrupted(INTERRUPTED)
    finally:
        for child in children:
            child.terminate()
        for child in children:
            _ended(child)


def _ended(child: subprocess.Popen[bytes]) -> None:
    """End a process that compiles kernels, and close its input."""
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    assert child.stdin is not None
    child.stdin.close()


def help_out(kind_name: str, names: Sequence[str]) -> None:
    """Run these rehearsals of kernels in a helping process, in this order, until it is asked to end.

    It is asked by SIGTERM, or by the end of its standard input: then its parent is gone. It does not end while it
    writes to the cache: numba writes the index first, and an entry without its file would be compiled again.
    """
    from numba.core.caching import IndexDataCacheFile

    writing = threading.Lock()
    save: Callable[[Any, Any, Any], None] = IndexDataCacheFile.save

    def save_whole(file: Any, key: Any, data: Any) -> None:
        with writing:
            save(file, key, data)

    def end() -> None:
        writing.acquire()
        os._exit(1)

    def follow_parent() -> None:
        while os.read(0, 1):
            pass
        end()

    IndexDataCacheFile.save = save_whole  # type: ignore[method-assign]
    signal.signal(signal.SIGTERM, lambda number, frame: end())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    threading.Thread(target=follow_parent, daemon=True).start()
    kind = kind_named(kind_name)
    by_name = {rehearsal.name: rehearsal for rehearsal in all_needed(kind)}
    rehearse(kind, [by_name[name] for name in names], helpers=False)


def processors() -> int:
    """Number of processors that this process may use to compile kernels."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _helpers(kind: Kind[Any, Any], names: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Processes that run these rehearsals of kernels: one in their order, the others backwards, each from another place
    on.
    """
    from numba.core import config

    count = min(processors(), MOST_PROCESSES, len(names))
    folder: Any = config.CACHE_DIR  # type: ignore[attr-defined]
    environment = os.environ | ({"NUMBA_CACHE_DIR": folder} if folder else {})
    code = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    code += f"from {__name__} import help_out; help_out(sys.argv[2], sys.argv[3:])"
    backwards = names[::-1]
    for number in range(count):
        at = (number - 1) * len(names) // max(count - 1, 1)
        order = [*backwards[at:], *backwards[:at]] if number else names
        command = [sys.executable, "-c", code, json.dumps(sys.path), kind.name, *order]
        nothing = subprocess.DEVNULL
        with suppress(OSError):  # then this process compiles
            yield subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, env=environment)


def _tools() -> SearchContext:
    """Context of a heuristic in a rehearsal: one round on one thread."""
    watch = SearchMonitor(StoppingCriteria(iterations=1))
    return SearchContext(np.random.default_rng(0), watch, 1, lambda backend: backends.get(backend).solve)


def _state_program(kind: Kind[Any, Any], tools: SearchContext) -> None:
    """State a small instance in every formulation."""
    for formulation in kind.formulation.formulations.values():
        formulation(smallest(kind))


def smallest(kind: Kind[Any, Any]) -> Any:
    """An instance of the kind's first family, as small as does not matter, to compile kernels."""
    (family, *_) = kind.generate.families.values()
    sizes = {size: min(default, SMALLEST) for size, default in family.sizes.items()}
    return family.generate(np.random.default_rng(0), **sizes)


@checked(on_compile=a_function)
def warm_up(
    *kinds: str, on_compile: Callable[[str], None] = lambda kind: None, cancel: threading.Event | None = None
) -> None:
    """Compile every kernel, or load it from the cache, so that no solve and no live fleet waits for the compiler.

    Compiling takes up to a minute a kind, once for an installation; loading takes a second. ``mast-opt warm-up`` does
    the same. A solve that finds its kernels missing compiles them itself, before its time limit begins.

    Args:
        kinds: names such as ``"data-placement"``; none means every kind.
        on_compile: called with the name of a kind if something has to be compiled for it.
        cancel: set it from any thread to stop compiling; Ctrl-C does the same. What was compiled until then is kept.

    Raises:
        UsageError: there is no such kind.
        Interrupted: cancelled before everything was compiled.
    """
    for kind in map(kind_named, kinds) if kinds else every_kind():
        rehearse(kind, all_needed(kind), cancel, partial(on_compile, kind.name))
