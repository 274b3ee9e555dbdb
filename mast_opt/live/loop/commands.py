"""Commands of the loop to a host. A host may see one twice and carries it out once."""

from dataclasses import dataclass
from typing import Any

from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.kind.problem import Problem


@dataclass(frozen=True, slots=True)
class Start:
    """Start an attempt of a job on these servers."""

    job: str
    attempt: int
    shares: tuple[Share, ...]
    partner: str = ""
    """The job that has the same GPUs; empty for none."""

    @property
    def id(self) -> str:
        """Identifier of a command to start a job, equal for equal commands."""
        return f"{self.job}/{self.attempt}/start"


@dataclass(frozen=True, slots=True)
class Stop:
    """Let an attempt of a job write its checkpoint if it can, and stop it."""

    job: str
    attempt: int
    why: str

    @property
    def id(self) -> str:
        """Identifier of a command to stop a job, equal for equal commands."""
        return f"{self.job}/{self.attempt}/stop"


@dataclass(frozen=True, slots=True)
class Resize:
    """Save the work of an attempt of a job, and let it go on with these tasks."""

    seq: int
    """Number of the event that decided it."""
    job: str
    attempt: int
    shares: tuple[Share, ...]
    """All of them."""

    @property
    def id(self) -> str:
        """Identifier of a command to resize a job, equal for equal commands."""
        return f"{self.seq}/resize"


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a dataset to a region."""

    seq: int
    """Number of the event that decided it."""
    dataset: str
    source: str
    region: str
    size_mb: int

    @property
    def id(self) -> str:
        """Identifier of a command to copy a dataset, equal for equal commands."""
        return f"{self.seq}/copy"


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete a replica."""

    seq: int
    """Number of the event that decided it."""
    dataset: str
    region: str

    @property
    def id(self) -> str:
        """Identifier of a command to drop a replica, equal for equal commands."""
        return f"{self.seq}/drop"


@dataclass(frozen=True, slots=True)
class Move:
    """Make a server part of another cluster of its region."""

    seq: int
    """Number of the event that decided it."""
    server: str
    cluster: str

    @property
    def id(self) -> str:
        """Identifier of a command to move a server, equal for equal commands."""
        return f"{self.seq}/move"


@dataclass(frozen=True, slots=True)
class Solve:
    """Solve an instance for a slow path; the answer is ``SolveEnded``."""

    seq: int
    """Number of the event ``SolveAsked``."""
    path: str
    checksum: str
    problem: Problem[Any]

    @property
    def id(self) -> str:
        """Identifier of a command to solve for a plan, equal for equal commands."""
        return f"{self.seq}/solve"


Command = Start | Stop | Resize | Copy | Drop | Move | Solve
