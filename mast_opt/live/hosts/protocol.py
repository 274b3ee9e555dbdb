"""Interface of a host to a live loop."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from mast_opt.live.loop.commands import Command, Copy, Drop, Move, Stop
from mast_opt.live.loop.events import Event
from mast_opt.live.loop.jobs import JobRecord

Attempt = tuple[str, int]
"""A job, and the number of its attempt."""


class Can(enum.Enum):
    """Abilities of a host. A loop gives no command that its host cannot carry out."""

    DICTATE_SERVERS = "dictate-servers"
    """It starts jobs on exactly the servers that it is given."""
    STOP = "stop"
    CHECKPOINT = "checkpoint"
    """Work is saved when a job stops."""
    COPY = "copy"
    """It copies datasets between regions, and deletes replicas."""
    MOVE_SERVERS = "move-servers"
    MAKE_ROOM = "make-room"
    """It stops whom it has to for a job that is to start, and may choose others than the loop. So it is asked to start
    a job before the victims have stopped; where it is asked to stop one, it notes that, and may let it go on."""


_NEEDS: Mapping[type[Command], frozenset[Can]] = {
    Stop: frozenset({Can.STOP, Can.MAKE_ROOM}),
    Copy: frozenset({Can.COPY}),
    Drop: frozenset({Can.COPY}),
    Move: frozenset({Can.MOVE_SERVERS}),
}
"""Command → abilities, of which one is enough."""


class Host(Protocol):
    """Carries out commands and reports what happens. It may see a command again, after a restart of the loop or where
    an answer is missing: it carries it out once, and says again what has become of an attempt that has ended. It may
    report the same thing twice."""

    name: str
    can: frozenset[Can]

    def resume(self, jobs: Iterable[JobRecord]) -> None:
        """Jobs as a log has them, before anything else is asked: when a loop begins, and when it has read its log
        again. Raises MastOptError if the host cannot be reached."""
        ...

    def listen(self, call: Callable[[], None]) -> None:
        """Call this function whenever there are reports before ``next_ms``; from any thread."""
        ...

    def close(self) -> None:
        """End what goes on in this process for the host; jobs go on."""
        ...

    def carry_out(self, now_ms: int, command: Command) -> None:
        """Begin to do what a command says; what comes of it is reported. It may not block for long. Nothing is reported
        of a ``Drop``: the host has taken care of it when this returns."""
        ...

    def reports(self, now_ms: int) -> Sequence[Event]:
        """Events that have happened since the last call."""
        ...

    def happened(self, now_ms: int, event: Event) -> Sequence[Event]:
        """Events that follow when somebody else says that a server is out of service or in service again: reports of
        what ran there, where the host does not see that for itself."""
        ...

    def next_ms(self) -> int | None:
        """Time to ask for reports again; None if nothing is under way."""
        ...

    def observe(self) -> Collection[Attempt]:
        """The attempts that hold servers now, whoever started them: the truth, with which a loop compares its state
        when it begins and now and then."""
        ...


def within_abilities(host: Host, commands: Iterable[Command]) -> list[Command]:
    """The commands that a host is able to carry out. The others are for people to do and to report: a host that copies
    no data neither makes nor deletes a replica."""
    return [one for one in commands if type(one) not in _NEEDS or not host.can.isdisjoint(_NEEDS[type(one)])]
