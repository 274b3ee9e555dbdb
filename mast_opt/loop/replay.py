"""A state after a log that was decided before."""

from __future__ import annotations

from collections.abc import Iterable

from mast_opt.core.errors import MastOptError
from mast_opt.loop import events as ev
from mast_opt.loop.state import CorruptLog, State

_WORK = frozenset(
    (
        *(ev.Submitted, ev.Cancelled, ev.Refused, ev.Queued, ev.Bound),
        *(ev.Placed, ev.Started, ev.StopAsked, ev.Stopped, ev.Finished, ev.Failed),
    )
)
"""Events that ask nothing of the fleet but to hold work and to let it go."""


def replay(state: State, log: Iterable[ev.Stored]) -> None:
    """Have a state take in the events that follow, as ``State.apply`` does one by one. Its fleet catches up in the end,
    and where an event needs it, a quota decides, or a server waits until less is held there.

    Raises:
        CorruptLog: an event does not fit, or what jobs hold does not; the state is then of no further use.
    """
    work, inventory, tenants = state.work, state.inventory, state.tenants
    try:
        for stored in log:
            work.defers = type(stored.event) in _WORK and not (
                inventory.shrinking or tenants.quota_mgpu or tenants.typed
            )
            if not work.defers:
                work.catch_up()
            state.apply(stored.seq, stored.at_ms, stored.event)
        work.catch_up()
    except CorruptLog:
        raise
    except MastOptError as error:
        raise CorruptLog(state.seq, str(error)) from error
    finally:
        work.defers = False
