"""Interface of a host to a live loop."""

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.commands import Command, Copy, Drop, Move, Resize, Stop
from mast_opt.live.loop.events import Event
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import SIZES, Policy, not_for

Attempt = tuple[str, int]
"""A job, and the number of its attempt."""


class Can(enum.Enum):
    """Abilities of a host. A loop gives no command that its host cannot carry out."""

    STOP = "stop"
    COPY = "copy"
    """The host copies datasets between regions, and deletes replicas."""
    MOVE_SERVERS = "move-servers"
    RESIZE = "resize"
    """The host gives a running job other tasks. A loop over another host has no policy that changes sizes."""
    MAKE_ROOM = "make-room"
    """The host chooses and stops victims itself when a job starts, perhaps others than the loop would. The loop
    therefore starts a job before the victims have stopped. A command to stop a job is only a hint for such a host."""


_NEEDS: Mapping[type[Command], frozenset[Can]] = {
    Stop: frozenset({Can.STOP, Can.MAKE_ROOM}),
    Copy: frozenset({Can.COPY}),
    Drop: frozenset({Can.COPY}),
    Move: frozenset({Can.MOVE_SERVERS}),
    Resize: frozenset({Can.RESIZE}),
}
"""Command → abilities, of which one is enough."""


class Host(Protocol):
    """Host that carries out commands and reports what happens. A command may come twice, after a restart of the loop or
    where an answer was lost: the host carries it out once, and reports the end of an attempt again. It may report the
    same thing twice."""

    name: str
    can: frozenset[Can]

    def resume(self, jobs: Iterable[JobRecord]) -> None:
        """Let the host take over the jobs of a log before anything else is asked: when a loop begins, and when it has
        read its log again. Raises MastOptError if the host cannot be reached.
        """
        ...

    def listen(self, call: Callable[[], None]) -> None:
        """Let the host call this function whenever there are reports before ``next_ms``; from any thread."""
        ...

    def close(self) -> None:
        """Stop the host's threads and close connections of this process; jobs go on."""
        ...

    def carry_out(self, now_ms: int, command: Command) -> None:
        """Begin to carry out a command; its outcome is reported. This may not block for long. Nothing is reported of a
        ``Drop`` or a ``Resize``: the host has carried it out when this returns."""
        ...

    def reports(self, now_ms: int) -> Sequence[Event]:
        """Reports of the host: events that have happened since the last call."""
        ...

    def happened(self, now_ms: int, event: Event) -> Sequence[Event]:
        """Reports of the host on what ran on a server when another source takes it out of service or back into service,
        where the host does not see that for itself.
        """
        ...

    def next_ms(self) -> int | None:
        """Time to ask the host for reports again; None if nothing is under way."""
        ...

    def unenforced(self) -> str:
        """Reason why the host does not end all jobs at their time limits, with the grace of ``JobSpec``; empty if it
        does. Asked once, after ``resume``."""
        ...

    def observe(self) -> Collection[Attempt]:
        """Attempts of jobs that hold servers now, whoever started them. The loop compares its state with them when it
        begins and from time to time.
        """
        ...


def within_abilities(host: Host, commands: Iterable[Command]) -> list[Command]:
    """Commands that a host is able to carry out. The others are left to people: a host that copies no data neither
    makes nor deletes a replica."""
    return [one for one in commands if type(one) not in _NEEDS or not host.can.isdisjoint(_NEEDS[type(one)])]


def check_policy(policy: Policy, host: Host, jobs: Iterable[JobRecord]) -> None:
    """Raises UsageError for a policy that changes the sizes of running jobs over a host that cannot, and for one that
    would never place one of these jobs."""
    if Can.RESIZE not in host.can and not SIZES.isdisjoint(policy.reads):
        raise UsageError(
            f"the policy {policy.name} changes the tasks of running jobs, and the host {host.name} cannot; "
            "expected a policy that leaves jobs the tasks that they ask for, such as mast"
        )
    for job in jobs:
        if words := not_for(policy, job.name, job.spec):
            raise UsageError(f"{words}; expected a policy that does, such as mast, until it has ended")
