"""Failures and changed quotas of a trace as events of servers and tenants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mast_opt.live.loop import events as ev
from mast_opt.live.simulation.traces.surroundings import Happening
from mast_opt.problems.job_placement.live_fleet.types import Server


def happenings_as_events(
    happenings: Iterable[Happening], servers: Sequence[Server], switchboards: Mapping[str, str]
) -> list[tuple[int, ev.Event]]:
    """(time in ms, event) of everything that happens, in order.

    A server is out of service as long as itself, its switchboard or its region is.
    """
    reasons: dict[str, set[tuple[str, str]]] = {server.name: set() for server in servers}
    events: list[tuple[int, ev.Event]] = []
    for one in happenings:
        if one.of == "quota":
            events.append((one.at_ms, ev.QuotaSet(one.name, one.mgpu)))
            continue
        for server in servers:
            part = {"server": server.name, "region": server.region}.get(one.of, switchboards.get(server.name))
            if part != one.name:
                continue
            was_down, known = bool(reasons[server.name]), reasons[server.name]
            (known.add if one.down else known.discard)((one.of, one.name))
            if known and not was_down:
                events.append((one.at_ms, ev.ServerDown(server.name, f"{one.of} {one.name}")))
            elif was_down and not known:
                events.append((one.at_ms, ev.ServerUp.of(server)))
    return events
