"""Copies in virtual time, and failures of servers, switchboards and regions as events."""

from __future__ import annotations

from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Copy
from mast_opt.live.simulation.engine_run import happenings_as_events
from mast_opt.live.simulation.host import SimulatedHost
from mast_opt.live.simulation.network import DAY_MS, SimulatedNetwork
from mast_opt.live.simulation.traces.surroundings import Happening
from mast_opt.problems.job_placement.live_fleet.types import Server


def ends(network: SimulatedNetwork, until: int = 100 * DAY_MS) -> dict[str, float]:
    """Dataset → days until its copy has ended."""
    found = {}
    while (now := network.next_ms()) is not None and now < until:
        for report in network.reports(now):
            if isinstance(report, ev.CopyEnded):
                found[report.dataset] = now / DAY_MS
    return found


def test_a_region_takes_one_copy_after_another() -> None:
    network = SimulatedNetwork({"b": 10})
    network.begin(0, Copy(1, "d", "a", "b", 20))
    network.begin(0, Copy(2, "e", "a", "b", 10))
    network.begin(0, Copy(3, "f", "a", "c", 7))
    assert ends(network) == {"f": 0, "d": 2, "e": 3}


def test_links_bind_and_leave_the_rest_to_others() -> None:
    network = SimulatedNetwork({"b": 10}, {("a", "b"): 4, ("c", "b"): 8})
    network.begin(0, Copy(1, "d", "a", "b", 8))
    network.begin(0, Copy(2, "e", "c", "b", 20))
    assert ends(network) == {"d": 2, "e": 3}  # 6 a day as long as d is copied, then 8


def test_progress_comes_once_a_day() -> None:
    network = SimulatedNetwork({"b": 10})
    network.begin(DAY_MS // 2, Copy(1, "d", "a", "b", 20))
    assert network.next_ms() == DAY_MS
    assert network.reports(DAY_MS) == [ev.CopyProgress("d", "b", 5)]
    assert network.reports(2 * DAY_MS) == [ev.CopyProgress("d", "b", 15)]
    assert network.reports(5 * DAY_MS // 2) == [ev.CopyEnded("d", "b")]
    assert network.next_ms() is None


def test_copies_of_a_region_that_is_down_wait() -> None:
    servers = [Server(name, name, name, "r", "h100", 8, 0, 0) for name in "ab"]
    network = SimulatedNetwork({"b": 10})
    host = SimulatedHost({}, servers=servers, network=network)
    host.carry_out(0, Copy(1, "d", "a", "b", 20))
    host.reported(DAY_MS, ev.ServerDown("a"))
    assert not host.works
    host.reported(3 * DAY_MS, ev.ServerUp("a", "a", "a", "r", "h100", 8))
    assert ends(network) == {"d": 4}


def test_a_server_is_down_as_long_as_anything_of_it_is() -> None:
    servers = [Server(name, "east" if name < "c" else "west", "c", "r", "h100", 8, 0, 0) for name in "abc"]
    happenings = [
        Happening(1, "switchboard_down", "m"),
        Happening(2, "server_down", "a"),
        Happening(3, "region_down", "east"),
        Happening(4, "switchboard_up", "m"),
        Happening(5, "region_up", "east"),
        Happening(6, "server_up", "a"),
        Happening(7, "server_up", "a"),
        Happening(8, "quota", "ads", 5000),
    ]
    found = [
        (at, getattr(event, "server", None))
        for at, event in happenings_as_events(happenings, servers, {"a": "m"}, Quotas())
    ]
    assert found == [(1, "a"), (3, "b"), (5, "b"), (6, "a"), (8, None)]
