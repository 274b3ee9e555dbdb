"""Commands about data and servers that a host was given and has not done yet. They bear the number of the event that
decided them, which reports do not name; so what is still to be done is read from the state."""

from collections.abc import Iterable

from mast_opt.live.loop.commands import Command, Copy, Drop, Move
from mast_opt.live.loop.state import State

Step = Copy | Drop | Move


class OpenSteps:
    """Copies, deletions and moves without an answer, one for each dataset and region, and one for each server.

    Nothing is reported of a deletion: it is done when the host has taken its command.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], Step] = {}
        self._done: list[str] = []

    def add(self, commands: Iterable[Command]) -> None:
        """Note commands that the host is given; the last one about a replica or a server counts."""
        for command in commands:
            if not isinstance(command, (Copy, Drop, Move)):
                continue
            of = (command.server,) if isinstance(command, Move) else (command.dataset, command.region)
            earlier = self._open.get(of)
            if earlier is not None and earlier.id != command.id:
                self._done.append(earlier.id)
            self._open[of] = command

    def taken(self, command: Command) -> None:
        """Note that the host has taken a command."""
        if isinstance(command, Drop) and self._open.get((command.dataset, command.region)) == command:
            del self._open[command.dataset, command.region]
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


def is_wanted(state: State, step: Step) -> bool:
    """Whether a state still asks for a step: the copy or move is under way, the replica has not come back."""
    if isinstance(step, Move):
        return state.inventory.moving.get(step.server) == step.cluster
    under_way = (step.dataset, step.region) in state.datasets.copying
    if isinstance(step, Copy):
        return under_way
    return not under_way and step.region not in state.datasets.whole_in(step.dataset)
