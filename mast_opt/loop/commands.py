"""Commands of the loop to a host. A host may see one twice and carries it out once."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.job_placement.live_fleet.types import Share


@dataclass(frozen=True, slots=True)
class Start:
    """Start an attempt of a job on these servers."""

    job: str
    attempt: int
    shares: tuple[Share, ...]

    @property
    def id(self) -> str:
        """The same for the same command."""
        return f"{self.job}/{self.attempt}/start"


@dataclass(frozen=True, slots=True)
class Stop:
    """Let an attempt of a job write its checkpoint if it can, and stop it."""

    job: str
    attempt: int
    why: str

    @property
    def id(self) -> str:
        """The same for the same command."""
        return f"{self.job}/{self.attempt}/stop"


Command = Start | Stop
