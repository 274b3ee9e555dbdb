"""Commands about data, servers and sizes of jobs that a host was given and has not done yet. They bear the number of
the event that decided them, which reports do not name; so what is still to be done is read from the state."""

from collections.abc import Iterable

from mast_opt.live.loop.commands import Command, Copy, Drop, Move, Resize
from mast_opt.live.loop.state import State

Step = Copy | Drop | Move | Resize


class OpenSteps:
    """Copies, deletions, moves and resizes without an answer, one for each dataset and region, server, or job.

    Nothing is reported of a deletion and of a resize: they are done when the host has taken the command.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], Step] = {}
        self._done: list[str] = []

    def add(self, commands: Iterable[Command]) -> None:
        """Note commands that the host is given; the last one about a replica, a server or a job counts."""
        for command in commands:
            if not isinstance(command, Step):
                continue
            of = _about(command)
            earlier = self._open.get(of)
            if earlier is not None and earlier.id != command.id:
                self._done.append(earlier.id)
            self._open[of] = command

    def taken(self, command: Command) -> None:
        """Note that the host has taken a command."""
        if isinstance(command, (Drop, Resize)) and self._open.get(_about(command)) == command:
            del self._open[_about(command)]
            self._done.append(command.id)

    def settled(self, state: State) -> list[str]:
        """Ids of the host's commands that are done, or that the state does not ask for any more; they are forgotten
        once the log says so (``written``).
        """
        for of, step in list(self._open.items()):
            if not is_wanted(state, step):
                del self._open[of]
                self._done.append(step.id)
        return list(self._done)

    def written(self) -> None:
        """Forget the commands that were settled: it is in the store."""
        self._done.clear()


def _about(step: Step) -> tuple[str, ...]:
    """Dataset and region, server, or job of which the last step counts."""
    if isinstance(step, Resize):
        return "job", step.job, ""
    return (step.server,) if isinstance(step, Move) else (step.dataset, step.region)


def is_wanted(state: State, step: Step) -> bool:
    """Whether a state still asks for a step: the copy or move is under way, the replica has not come back, the job has
    those servers."""
    if isinstance(step, Resize):
        record = state.jobs.get(step.job)
        return record is not None and (record.attempt, record.shares) == (step.attempt, step.shares)
    if isinstance(step, Move):
        return state.inventory.moving.get(step.server) == step.cluster
    under_way = (step.dataset, step.region) in state.datasets.copying
    if isinstance(step, Copy):
        return under_way
    return not under_way and step.region not in state.datasets.whole_in(step.dataset)
