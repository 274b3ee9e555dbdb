"""Records that a store keeps in addition to events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mast_opt.live.loop.commands import Command, Solve
from mast_opt.live.loop.event_log import fields_of
from mast_opt.live.loop.events import Stored


@dataclass(frozen=True, slots=True)
class OpenCommand:
    """A command that has not been answered, as it is stored."""

    id: str
    kind: str
    """Name of its class."""
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, command: Command) -> "OpenCommand":
        """The stored record of a command. The problem of a solve is not kept."""
        fields = (
            {"seq": command.seq, "path": command.path, "checksum": command.checksum}
            if isinstance(command, Solve)
            else fields_of(command)
        )
        return cls(command.id, type(command).__name__, fields)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a client, kept so that a repeated request gets the same."""

    principal: str
    """Client that made the request."""
    key: str
    """The client's own name for the request."""
    digest: str
    """Digest of the request."""
    status: int
    body: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state as bytes."""

    seq: int
    """Number of its last event."""
    digest: str
    """Digest of the state."""
    blob: bytes


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan that a solve has brought, and where its files are."""

    id: str
    path: str
    """The slow path that it is for."""
    folder: str
    """Folder of its files, relative to the folder of all plans."""
    checksum: str
    """Checksum of its files."""
    instance: str
    """Checksum of the instance that it is for."""
    status: str
    objective: float
    bound: float | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Lead:
    """Leader of a store and its epoch."""

    holder: str
    epoch: int
    """Counted from 1; every leader has another one."""
    renewals: int
    """Grows while the holder is alive."""
    released: bool


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that are written together, all of them or none."""

    after_seq: int
    """Number of the last event before it."""
    events: Sequence[Stored] = ()
    commands: Sequence[OpenCommand] = ()
    settled: Sequence[str] = ()
    """Commands that have been answered, by id; unknown ones are ignored."""
    answers: Sequence[Answer] = field(default=())
