"""One solve that was asked for: its limits, its record, and its process."""

import fcntl
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mast_opt.live.service import solve_files as files
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.requests import SolveRequest

RUNNING, STOPPING = "RUNNING", "STOPPING"
"""States of a solve before its end."""


@dataclass(frozen=True)
class SolveLimits:
    """Limits of a solve that somebody asks for over HTTP."""

    time_s: float = 3600.0
    threads: int = os.cpu_count() or 1
    memory_mib: int = 8192
    """Address space of its process."""
    file_mib: int = 2048
    """Size of a file that it writes."""

    def check(self, asked: SolveRequest) -> None:
        """Refuse a request that asks for more. Raises Problem (422)."""
        most = (("time_limit_s", asked.time_limit_s, self.time_s), ("threads", asked.threads, self.threads))
        for name, value, limit in most:
            if value > limit:
                raise Problem(422, "fault", f"{name} is {value:g}; this service allows at most {limit:g}")


class Outcome(msgspec.Struct):
    """End of a solve as its process states it."""

    status: str
    objective: float | None
    bound: float | None
    error: str


@dataclass
class Solve:
    """A solve, from being asked for to its end."""

    id: str
    path: str
    solver: str
    by: str
    """Client that asked for it."""
    checksum: str
    """Checksum of its instance."""
    asked_ms: int
    status: str = RUNNING
    objective: float | None = None
    bound: float | None = None
    error: str = ""
    plan: str = ""
    """Empty unless there is one."""

    @classmethod
    def read(cls, path: Path) -> "Solve":
        """The solve that a file describes; what a later version adds is passed over. Raises OSError, ValueError,
        TypeError."""
        found = json.loads(path.read_text())
        if not isinstance(found, dict) or found.get("id") != path.parent.name:
            raise ValueError("it does not describe the solve of its folder")
        solve = cls(**{name: value for name, value in found.items() if name in cls.__dataclass_fields__})
        if not (isinstance(solve.path, str) and isinstance(solve.checksum, str) and isinstance(solve.asked_ms, int)):
            raise TypeError("its fields have other types")
        return solve

    @property
    def ended(self) -> bool:
        """Whether the end of a solve is in the log."""
        return self.status not in (RUNNING, STOPPING)


def begin_process(folder: Path) -> subprocess.Popen[bytes]:
    """A process that solves the instance in a folder. It holds the lock on a file there, which is taken before it
    begins.
    """
    with (folder / files.ALIVE).open("wb") as alive, (folder / files.ERRORS).open("wb") as errors:
        fcntl.flock(alive, fcntl.LOCK_EX)
        return subprocess.Popen(
            [sys.executable, "-m", "mast_opt.live.service.solve_child", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, pass_fds=(alive.fileno(),),
            start_new_session=True,
        )  # fmt: skip


def wait_for(alive: Path) -> None:
    """Wait until no process of a solve holds a lock."""
    if alive.exists():
        descriptor = os.open(alive, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        finally:
            os.close(descriptor)
