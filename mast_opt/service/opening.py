"""A new log, and the state that a log begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mast_opt.core.errors import UsageError
from mast_opt.job_placement.live_fleet.types import Server
from mast_opt.loop import events as ev
from mast_opt.loop.state import State
from mast_opt.service.requests import TIERS
from mast_opt.store.protocol import Store


def opening_of(store: Store, servers: Iterable[Server] = ()) -> Callable[[], State]:
    """What makes the state before the first event: the servers that the log begins with; for an empty log, these.

    Raises:
        UsageError: the log is empty, and there are no servers.
    """
    found = tuple(servers)
    if store.last_seq() > 0:
        found = tuple(_first_servers(store)) if store.first_seq() == 1 else ()
    elif not found:
        raise UsageError("the log is empty; a fleet to begin with is needed (--fleet)")
    return lambda: State(found, tiers=TIERS)


def _first_servers(store: Store) -> Iterable[Server]:
    for stored in store.read():
        event = stored.event
        if not isinstance(event, ev.ServerUp):
            return
        place = event.region, event.cluster, event.rack, event.gpu_type
        yield Server(event.server, *place, event.gpus, event.cpu_mcores, event.memory_mib)
