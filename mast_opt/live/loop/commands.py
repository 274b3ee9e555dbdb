"""Commands of the loop to a host. A host may see one twice and carries it out once."""

from dataclasses import dataclass
from typing import Any

from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.kind.problem import Problem


@dataclass(frozen=True, slots=True)
class _OfAttempt:
    """A command about an attempt of a job."""

    job: str
    attempt: int

    @property
    def id(self) -> str:
        """Identifier, equal for equal commands."""
        return f"{self.job}/{self.attempt}/{type(self).__name__.lower()}"


@dataclass(frozen=True, slots=True)
class _OfEvent:
    """A command that follows from an event."""

    seq: int
    """Number of the event that decided it."""

    @property
    def id(self) -> str:
        """Identifier, equal for equal commands."""
        return f"{self.seq}/{type(self).__name__.lower()}"


@dataclass(frozen=True, slots=True)
class Start(_OfAttempt):
    """Start an attempt of a job on these servers."""

    shares: tuple[Share, ...]
    partner: str = ""
    """The job that has the same GPUs; empty for none."""


@dataclass(frozen=True, slots=True)
class Stop(_OfAttempt):
    """Let an attempt of a job write its checkpoint if it can, and stop it."""

    why: str


@dataclass(frozen=True, slots=True)
class Resize(_OfEvent):
    """Save the work of an attempt of a job, and let it go on with these tasks."""

    job: str
    attempt: int
    shares: tuple[Share, ...]
    """All of them."""


@dataclass(frozen=True, slots=True)
class Copy(_OfEvent):
    """Copy a dataset to a region."""

    dataset: str
    source: str
    region: str
    size_mb: int


@dataclass(frozen=True, slots=True)
class Drop(_OfEvent):
    """Delete a replica."""

    dataset: str
    region: str


@dataclass(frozen=True, slots=True)
class Move(_OfEvent):
    """Make a server part of another cluster of its region."""

    server: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Solve(_OfEvent):
    """Solve an instance for a slow path; the answer is ``SolveEnded``."""

    path: str
    checksum: str
    problem: Problem[Any]


Command = Start | Stop | Resize | Copy | Drop | Move | Solve
