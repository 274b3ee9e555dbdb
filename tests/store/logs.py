"""A real log, its states, and batches of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from mast_opt.live.loop.events import Stored
from mast_opt.live.loop.state import State
from mast_opt.live.simulation.engine_run import opening_state
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from mast_opt.live.store.records import Batch, OpenCommand
from tests.simulation.data_trace import COMMITTED


@cache
def trace() -> JobTrace:
    return read_trace(COMMITTED)


@cache
def log() -> tuple[Stored, ...]:
    """Jobs that wait for data, copies, moves of servers, victims."""
    params = {"slow.data.iterations": "5", "slow.servers.iterations": "5", "slow.servers.every_s": "43200"}
    return tuple(run_trace(trace(), "mast", params, slow=("data", "servers")).events())


def opening() -> State:
    return opening_state(trace(), "fragmentation")


def replayed(events: Sequence[Stored]) -> State:
    state = opening()
    for stored in events:
        state.apply(stored.seq, stored.at_ms, stored.event)
    state.take_startable()
    state.take_never_started()
    return state


def batches(events: Sequence[Stored], size: int, after: int = 0) -> Iterator[Batch]:
    for first in range(after, len(events), size):
        some = events[first : first + size]
        yield Batch(first, some, (OpenCommand(f"c{first}", "Stop", {"job": "a", "attempt": 1, "why": "x"}),))
