"""Refusal to use the table library in a forked child, where it would wait forever.

The table library (Polars) keeps a pool of threads. A fork copies the process without its threads, so in the child the
first operation that needs the pool never returns.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from mast_opt.core.errors import UsageError


@dataclass
class _Process:
    """State of the table library's threads in this process."""

    started: bool = False
    """Whether they have been started here."""
    lost: bool = False
    """Whether they were started in a process that this one was forked from."""


_process = _Process()


def use_tables(what: str) -> None:
    """Note that the table library is about to be used.

    Args:
        what: what it is used for, to complete "cannot …".

    Raises:
        UsageError: this process was forked from one that had started the table library's threads.
    """
    if _process.lost:
        raise UsageError(
            f"cannot {what} in a forked process: its parent has used tables before, and the threads for that do not "
            'survive a fork. Start the process with the method "spawn" or "forkserver" '
            '(multiprocessing.get_context("spawn")), or do it in the parent, before the fork'
        )
    _process.started = True


def _before_fork() -> None:
    """Note, before a fork, whether the table library has threads."""
    _process.started |= _threads_run()


def _in_child() -> None:
    """Note, in a forked child, that the table library's threads are lost."""
    _process.lost |= _process.started
    _process.started = False


def _threads_run() -> bool:
    """Whether other code has started the table library's threads; False where the system does not show threads."""
    try:
        names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return False
    return any(name.startswith("polars-") for name in names)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
