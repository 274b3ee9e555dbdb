"""Requests about servers and datasets as events: what is accepted is used, anything else is refused."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.state import State
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.requests import SERVER_COLUMNS, SIZE, base_units
from mast_opt.problems.job_placement.live_fleet.types import Server
from mast_opt.problems.job_placement.units import WHOLE

_PLACE = ("region", "cluster", "rack", "gpu_type")


def server_event(state: State, name: str, one: Mapping[str, Any]) -> tuple[ev.Event, list[str]]:
    """Event that makes a server what is asked, and the jobs whose end that waits for. Raises Problem."""
    inventory = state.inventory
    known, moves_to = inventory.server_of.get(name), inventory.moving.get(name)
    now = inventory.shrinking.get(name, known)
    new = _server(name, now, one)
    if one["state"] == "down":
        if new != now:
            raise Problem(422, "fault", f"server {name} goes down as it is; say what it is when it comes back")
        return ev.ServerDown(name, one["why"]), []
    if moves_to is not None:
        assert now is not None
        if new != replace(now, cluster=moves_to):
            words = f"server {name} moves to cluster {moves_to}; say so when it is there, and change it then"
            raise Problem(409, "moves", words)
        return ev.ServerMoved(name, new.region, moves_to), []
    jobs = [record.name for record in state.jobs.values() if any(share.server == name for share in record.shares)]
    if known is None or _place(new) != _place(known):
        if name in inventory.up:
            raise Problem(409, "in-service", f"server {name} is in service; take it down before it becomes another one")
        if jobs:
            raise Problem(409, "not-empty", f"server {name} still holds {jobs[0]}; ask again when that has stopped")
        _check_place(state, new)
    elif name in inventory.up and new != now:
        smaller = any(before > after for before, after in zip(known.amounts, new.amounts, strict=True))
        return ev.CapacitySet(name, new.gpus, new.cpu_mcores, new.memory_mib), jobs if smaller else []
    return ev.ServerUp.of(new), []


def _server(name: str, known: Server | None, one: Mapping[str, Any]) -> Server:
    """The server that a request describes; what it does not say stays. Raises Problem."""
    required = (*_PLACE, "gpus")
    if known is None and (one["state"] == "down" or None in (one[field] for field in required)):
        raise Problem(422, "fault", f"there is no server {name}; expected state up, {', '.join(required)}")
    mgpu, *others = (base_units(column, one[column.name]) for column in SERVER_COLUMNS)
    if mgpu is not None and mgpu % WHOLE:
        raise Problem(422, "fault", f"gpus is {one['gpus']}; expected a whole number")
    given = dict(zip(("gpus", "cpu_mcores", "memory_mib"), (None if mgpu is None else mgpu // WHOLE, *others)))
    said = {field: value for field, value in {**{at: one[at] for at in _PLACE}, **given}.items() if value is not None}
    try:
        return replace(known or Server(name, "", "", "", "", 0, 0, 0), **said)
    except UsageError as error:
        raise Problem(422, "fault", str(error)) from None


def _place(server: Server) -> tuple[str, str, str, str]:
    """Region, cluster, rack and GPU type of a server, in that order, as a request may state them."""
    return server.region, server.cluster, server.rack, server.gpu_type


def _check_place(state: State, new: Server) -> None:
    """Check that a server in a request keeps a cluster in one region and a rack in one cluster. Raises Problem."""
    for other in state.inventory.server_of.values():
        if other.name != new.name and (
            (other.cluster == new.cluster and other.region != new.region)
            or (other.rack == new.rack and other.cluster != new.cluster)
        ):
            words = f"the cluster or rack of {new.name} is elsewhere already, see server {other.name}"
            raise Problem(422, "fault", words)


def drain_events(state: State, one: Mapping[str, Any], now_ms: int) -> tuple[tuple[ev.Event, ...], dict[str, Any]]:
    """Events that close or open servers, and the answer: those servers, and the jobs that they still hold. Raises
    Problem."""
    inventory, attribute = state.inventory, "name" if one["of"] == "server" else one["of"]
    names = [name for name, server in inventory.server_of.items() if getattr(server, attribute) == one["name"]]
    if not names:
        raise Problem(404, f"no-{one['of']}", f"there is no {one['of']} {one['name']}")
    answer = {"state": one["state"], "servers": names, "waits_for": jobs_on(state, names)}
    if one["state"] == "open":
        return tuple(ev.ServerOpened(name) for name in names if name in inventory.closed), {**answer, "waits_for": []}
    after_s = one["stop_after_s"]
    stop_ms = None if after_s is None else now_ms + round(1000 * after_s)
    return tuple(ev.ServerClosed(name, stop_ms, one["why"]) for name in names), answer


def jobs_on(state: State, servers: Collection[str]) -> list[str]:
    """Jobs that hold a part of these servers."""
    there = set(servers)
    return [record.name for record in state.jobs.values() if any(share.server in there for share in record.shares)]


def dataset_events(state: State, name: str, one: Mapping[str, Any]) -> tuple[ev.Event, ...]:
    """Events that make a dataset what is asked. Raises Problem."""
    regions, known = tuple(dict.fromkeys(one["regions"])), state.datasets.replicas.get(name)
    was = state.datasets.residency.get(name, frozenset())
    allowed = tuple(sorted(was if one["residency"] is None else set(one["residency"])))
    for region in (*regions, *allowed):
        if region not in state.inventory.supply_mgpu:
            raise Problem(422, "fault", f"there is no region {region}")
    size_mb = base_units(SIZE, one["size_tb"])
    if known is None:
        return (ev.DatasetCreated(name, size_mb or 0, regions, one["namespace"] or "", allowed),)
    events: list[ev.Event] = []
    now = state.datasets.size_mb.get(name), state.datasets.namespace.get(name, "")
    then = now[0] if size_mb is None else size_mb, now[1] if one["namespace"] is None else one["namespace"]
    if then != now or set(allowed) != was:
        events.append(ev.DatasetCreated(name, then[0] or 0, tuple(sorted(known)), then[1], allowed))
    events += (ev.CopyEnded(name, region) for region in regions if region not in known)
    events += (ev.ReplicaDropped(name, region) for region in sorted(known - set(regions)))
    return tuple(events)
