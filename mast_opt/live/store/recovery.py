"""The state that a store leads to: a snapshot, and the events after it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mast_opt.core.errors import MastOptError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.events import CorruptLog
from mast_opt.live.loop.state import State
from mast_opt.live.store.errors import CorruptStore, StoreError
from mast_opt.live.store.records import Snapshot
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.state_format import OtherState, state_bytes, state_from

_WORK = frozenset(
    (
        *(ev.Submitted, ev.Cancelled, ev.Refused, ev.Queued, ev.Bound),
        *(ev.Placed, ev.Shared, ev.Resized, ev.Started, ev.StopAsked, ev.Stopped, ev.Finished, ev.Failed),
    )
)
"""Events that ask nothing of the fleet but to hold work and to let it go."""


@dataclass(frozen=True)
class Recovered:
    """A state, and how it was come by."""

    state: State
    snapshot_seq: int
    """The event after which events were read; 0 without a snapshot."""
    events: int
    """Number of events that were read."""


def recovered(store: SqlStore, opening: Callable[[], State]) -> Recovered:
    """The state after the last event of a store.

    Args:
        opening: the state before the first event.

    Raises:
        CorruptStore: an event is not what was written, or does not fit those before it.
        StoreError: the first events are not kept any more, and no snapshot can be read.
    """
    for snapshot in store.snapshots():
        try:
            state = state_from(snapshot.blob)
        except OtherState:
            continue
        if state.seq == snapshot.seq:
            return _replayed(store, state)
    if store.first_seq() > 1:
        raise StoreError(
            f"events are kept from {store.first_seq()} on, and no snapshot can be read by this version of mast-opt; "
            "start the version that wrote it"
        )
    return _replayed(store, opening())


def _replayed(store: SqlStore, state: State) -> Recovered:
    """The state of a snapshot after it has taken in the later events of the store. Raises CorruptStore."""
    begun = state.seq
    try:
        replay(state, store.read(begun))
    except CorruptLog as error:
        raise CorruptStore(f"event {error.seq} does not fit those before it: {error}") from error
    state.take_startable()  # their commands are in the store, with the events that led to them
    state.take_never_started()
    return Recovered(state, begun, state.seq - begun)


def replay(state: State, log: Iterable[ev.Stored]) -> None:
    """Have a state take in the events that follow, as ``State.apply`` does one by one. Its fleet catches up in the end,
    and where an event needs it, a quota decides, or a server waits until less is held there.

    Raises:
        CorruptLog: an event does not fit, or what jobs hold does not; the state is then of no further use.
    """
    work, inventory = state.work, state.inventory
    try:
        for stored in log:
            work.defers = type(stored.event) in _WORK and not (inventory.shrinking or state.quotas)
            if not work.defers:
                state.catch_up()
            state.apply(stored.seq, stored.at_ms, stored.event)
        state.catch_up()
    except CorruptLog:
        raise
    except MastOptError as error:
        raise CorruptLog(state.seq, str(error)) from error
    finally:
        work.defers = False


def snapshot_of(state: State) -> Snapshot:
    """A snapshot of the loop's state as a store keeps it."""
    return Snapshot(state.seq, state.digest(), state_bytes(state))
