"""The state that a store leads to: a snapshot, and the events after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mast_opt.loop.replay import replay
from mast_opt.loop.state import CorruptLog, State
from mast_opt.store.errors import CorruptStore, StoreError
from mast_opt.store.protocol import Store
from mast_opt.store.records import Snapshot
from mast_opt.store.state_format import OtherState, state_bytes, state_from


@dataclass(frozen=True)
class Recovered:
    """A state, and how it was come by."""

    state: State
    snapshot_seq: int
    """The event after which events were read; 0 without a snapshot."""
    events: int
    """How many were read."""


def recovered(store: Store, opening: Callable[[], State]) -> Recovered:
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
        if state.seq == snapshot.seq and state.digest() == snapshot.digest:
            return _replayed(store, state)
    if store.first_seq() > 1:
        raise StoreError(
            f"events are kept from {store.first_seq()} on, and no snapshot can be read by this version of mast-opt; "
            "start the version that wrote it"
        )
    return _replayed(store, opening())


def _replayed(store: Store, state: State) -> Recovered:
    begun = state.seq
    try:
        replay(state, store.read(begun))
    except CorruptLog as error:
        raise CorruptStore(f"event {error.seq} does not fit those before it: {error}") from error
    state.take_startable()  # their commands are in the store, with the events that led to them
    state.take_never_started()
    return Recovered(state, begun, state.seq - begun)


def snapshot_of(state: State) -> Snapshot:
    """A state as a store keeps it."""
    return Snapshot(state.seq, state.digest(), state_bytes(state))
