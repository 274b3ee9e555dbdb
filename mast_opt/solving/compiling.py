"""Kernels are compiled, or loaded from the cache, before the clock of a search starts.

A solver says with rehearsals which kernels it needs. Once one of them really has to be compiled, further processes
compile others at the same time, as many as there are processors: within one process numba compiles one kernel at a
time. They share the cache on disk.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from mast_opt import backends
from mast_opt.backends.base import interruptibly
from mast_opt.kind import Kind
from mast_opt.kinds import kind_named
from mast_opt.search import MipSolver, Rehearsal, Stop, Tools, Watch

PROGRAMS = "programs"
"""The rehearsal for what states programs to MIP solvers."""
SMALLEST = 6
"""Sizes, at most, of the instance that is stated there."""
MOST_PROCESSES = 4
"""Processes that compile at the same time; there are no more long kernels than that."""

_ready: set[tuple[str, str]] = set()
"""(kind, rehearsal) of those that are done: what is loaded stays loaded for as long as the process lives."""
_lock = threading.RLock()


def needed(kind: Kind[Any, Any], solver: str, problem: Any | None = None) -> tuple[Rehearsal, ...]:
    """The rehearsals for a solver on a problem; without a problem, on any."""
    own = kind.rehearsals(solver, problem) if solver in kind.heuristics else ()
    if solver in kind.constructive:
        return own
    return (*own, Rehearsal(PROGRAMS, partial(_state_program, kind)))


def all_needed(kind: Kind[Any, Any]) -> tuple[Rehearsal, ...]:
    """The rehearsals for every solver and every live object of a kind."""
    every = [rehearsal for solver in kind.heuristics for rehearsal in needed(kind, solver)]
    return tuple({rehearsal.name: rehearsal for rehearsal in (*every, *kind.live())}.values())


def rehearse(
    kind: Kind[Any, Any],
    rehearsals: Sequence[Rehearsal],
    cancel: threading.Event | None = None,
    on_compile: Callable[[], None] = lambda: None,
    helpers: bool = True,
) -> None:
    """Run the rehearsals that this process has not run yet.

    Args:
        cancel: set it from any thread to stop after the rehearsal that is under way.
        on_compile: called once, if and when something has to be compiled.
        helpers: may other processes help?
    """
    cancel = cancel or threading.Event()
    with _lock:
        left = [rehearsal for rehearsal in rehearsals if (kind.name, rehearsal.name) not in _ready]
        if not left:
            return
        children: list[subprocess.Popen[bytes]] = []

        def begin() -> None:
            on_compile()
            if helpers:
                children.extend(_helpers(kind, [rehearsal.name for rehearsal in left]))

        def run() -> None:
            for rehearsal in left:
                if cancel.is_set():
                    return
                rehearsal.run(_tools())
                _ready.add((kind.name, rehearsal.name))

        try:
            with _noticing(begin):
                interruptibly(run, cancel)
        finally:
            for child in children:
                child.terminate()
                child.wait()


def help_out(kind_name: str, names: Sequence[str]) -> None:
    """What a helping process does: run these rehearsals, in this order, until it is told to end (SIGTERM).

    It does not end while it writes to the cache: numba writes the index first, and an entry without its file would be
    compiled again.
    """
    from numba.core.caching import IndexDataCacheFile

    writing = threading.Lock()
    save: Callable[[Any, Any, Any], None] = IndexDataCacheFile.save

    def save_whole(file: Any, key: Any, data: Any) -> None:
        with writing:
            save(file, key, data)

    def end(number: int, frame: FrameType | None) -> None:
        writing.acquire()
        os._exit(0)

    IndexDataCacheFile.save = save_whole  # type: ignore[method-assign]
    signal.signal(signal.SIGTERM, end)
    kind = kind_named(kind_name)
    by_name = {rehearsal.name: rehearsal for rehearsal in all_needed(kind)}
    rehearse(kind, [by_name[name] for name in names], helpers=False)


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _helpers(kind: Kind[Any, Any], names: list[str]) -> list[subprocess.Popen[bytes]]:
    """Processes that compile what this one comes to last, each from another place on."""
    others = names[:0:-1]
    count = min(processors() - 1, MOST_PROCESSES - 1, len(others))
    code = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from mast_opt.solving.compiling import help_out; "
    code += "help_out(sys.argv[2], sys.argv[3:])"
    started = []
    for number in range(count):
        at = number * len(others) // count
        command = [sys.executable, "-c", code, json.dumps(sys.path), kind.name, *others[at:], *others[:at]]
        nothing = subprocess.DEVNULL
        with suppress(OSError):  # this process then does all of it
            started.append(subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing))
    return started


@contextmanager
def _noticing(begin: Callable[[], None]) -> Iterator[None]:
    """Within the block, call ``begin`` when the first kernel has to be compiled, before that is done."""
    from numba.core import event

    class Listener(event.Listener):
        def __init__(self) -> None:
            self.first = True

        def on_start(self, event: Any) -> None:
            if self.first:
                self.first = False
                begin()

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


def _tools() -> Tools:
    """What a heuristic is given in a rehearsal: one round on one thread."""
    return Tools(np.random.default_rng(0), Watch(Stop(iterations=1)), 1, _solve_with("highs"), _solve_with("cpsat"))


def _solve_with(backend: str) -> MipSolver:
    return lambda mip, params: backends.get(backend).solve(mip, params)


def _state_program(kind: Kind[Any, Any], tools: Tools) -> None:
    """State a small instance in every formulation, and scale it as backends do."""
    from mast_opt.mip.scaling import scale

    for formulation in kind.formulations.values():
        scale(formulation(smallest(kind)).mip)


def smallest(kind: Kind[Any, Any]) -> Any:
    """An instance of the kind's first family, as small as does not matter."""
    (family, *_) = kind.families.values()
    sizes = {size: min(default, SMALLEST) for size, default in family.sizes.items()}
    return family.generate(np.random.default_rng(0), **sizes)
