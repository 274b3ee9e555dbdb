"""Compilation (or loading from the cache) of what simulations run, before the clock of a run begins (decision 27)."""

import threading
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.live.simulation.kernel import replay
from mast_opt.live.simulation.replay_state import QueueJobs
from mast_opt.live.simulation.run import ENGINE_POLICIES
from mast_opt.planner.solving.kernel_compilation import rehearse
from mast_opt.problems.registry import kind_named
from mast_opt.problems.search.interface import Rehearsal, SearchContext

KIND = "job-placement"
"""The kind whose live fleet the engine uses."""


def warm_up_simulation(
    policies: Sequence[str] = (*ORDER_ONLY, *ENGINE_POLICIES.own),
    on_compile: Callable[[], None] = lambda: None,
    cancel: threading.Event | None = None,
) -> None:
    """Compile every kernel that these policies need, or load it from the cache.

    Args:
        on_compile: called once, if and when something has to be compiled.
        cancel: set it from any thread to stop compiling; Ctrl-C does the same.

    Raises:
        Interrupted: cancelled before everything was compiled.
    """
    kind = kind_named(KIND)
    replays = tuple(
        Rehearsal(f"simulation {policy}", partial(_replay, policy)) for policy in policies if policy in ORDER_ONLY
    )
    if replays:  # a second or two each, too little for further processes
        rehearse(kind, replays, cancel, on_compile, helpers=False)
    if any(policy not in ORDER_ONLY for policy in policies):
        rehearse(kind, kind.solvers.live(), cancel, on_compile)


def _replay(policy: str, tools: SearchContext) -> None:
    """Replay three jobs on two servers, to compile a policy's kernels: one waits, and one takes several servers."""
    times, needs = np.array([0, 1, 2], np.int64), np.array([2, 4, 1], np.int64)
    replay(QueueJobs(times, times + 1, needs, np.zeros(3, np.int64), times), 2, 2, policy)
