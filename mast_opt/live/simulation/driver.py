"""Virtual time: jumps from one thing that happens to the next, and lets an engine take its turn there."""

from collections.abc import Callable, Iterable

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.simulation.host import SimulatedHost

Happening = tuple[int, ev.Event]
"""Virtual time in ms, and what is reported then."""
PATIENCE = 7
_OF_PLANS = (ev.SolveAsked, ev.SolveEnded, ev.PlanAdopted, ev.StepDropped)
"""Events that change nothing by themselves."""


def simulate(
    engine: Engine,
    host: SimulatedHost,
    trace: Iterable[Happening],
    *,
    until_ms: int | None = None,
    on_turn: Callable[[Turn], None] | None = None,
    ended: Callable[[], bool] = bool,
) -> int:
    """Run an engine until nothing more happens: no report is due, and the policy, if it was due, decided nothing. Where
    there are slow paths, ``PATIENCE`` of their periods have to pass in which plans change nothing.

    Args:
        trace: what comes from outside, such as jobs, in ascending order of time.
        until_ms: when to stop at the latest.
        on_turn: called with every turn, to keep its events.
        ended: called before every turn; the run stops where it is true.

    Returns:
        The virtual time of the last turn.

    Raises:
        UsageError: the trace goes back in time.
    """
    coming = iter(trace)
    following = next(coming, None)
    wake_ms: int | None = None
    idle = False
    now_ms = changed_ms = engine.state.now_ms
    patience_ms = PATIENCE * max((path.every_ms for path in engine.slow.values()), default=0)
    while True:
        due = _earlier(host.next_ms(), None if following is None else following[0])
        if due is not None or not idle or engine.slow:
            due = _earlier(due, wake_ms)
        if due is None or (until_ms is not None and due > until_ms) or ended():
            return now_ms
        if engine.slow and following is None and not host.works and due > changed_ms + patience_ms:
            return now_ms
        if due < now_ms:
            raise UsageError(f"the trace goes back in time, from {now_ms} to {due} ms")
        now_ms = due
        inbox = [*engine.state.opening(), *host.answers(now_ms)] if engine.state.seq == 0 else host.answers(now_ms)
        while following is not None and following[0] == now_ms:
            inbox += host.reported(now_ms, following[1])
            following = next(coming, None)
        turn = engine.advance(now_ms, inbox)
        for command in turn.commands:
            host.carry_out(now_ms, command)
        if on_turn is not None:
            on_turn(turn)
        wake_ms, idle = turn.next_wake_ms, not turn.events
        if engine.slow and any(not isinstance(stored.event, _OF_PLANS) for stored in turn.events):
            changed_ms = now_ms


def _earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two times in a simulation; None stands for never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
