"""Room of groups, kept server by server, against a count over all servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from mast_opt.live.loop.reclaimable import Reclaimable
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.group_room import GroupRoom, Size
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.loop.test_reclaimable import TIERS, Holders

PLACES = (("east", "c0", "H100"), ("east", "c0", "A100"), ("west", "c1", "H100"))
SIZES = [Size(tier, mgpu, tasks) for tier in TIERS for mgpu, tasks in ((1000, 1), (2500, 3), (8000, 1), (8000, 2))]
SIZES += [Size(2, 1000, 3, "server"), Size(0, 1000, 3, "rack", 5, 5)]


def server(number: int) -> Server:
    region, cluster, kind = PLACES[number % len(PLACES)]
    return Server(f"s{number}", region, cluster, "r", kind, 8, 0, 0)


def counted(servers: list[Server], kept: Reclaimable, size: Size) -> set[tuple[str, str, str]]:
    fit = dict.fromkeys(((one.region, one.cluster, one.gpu_type) for one in servers), 0)
    for one in servers:
        most = kept.most(one.name, size.tier)
        if size.within == "server":
            fit[one.region, one.cluster, one.gpu_type] += size.tasks * (most >= size.mgpu * size.tasks)
        else:
            fit[one.region, one.cluster, one.gpu_type] += most // size.mgpu
    return {group for group, tasks in fit.items() if tasks >= size.tasks}


@pytest.mark.parametrize("seed", range(5))
def test_against_a_count_over_all_servers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    servers = [server(number) for number in range(7)]
    jobs = Holders(servers)
    kept, inventory = jobs.kept, SimpleNamespace(server_of={one.name: one for one in servers[:-1]})
    snapshot = cast(Snapshot, SimpleNamespace(reclaimable=kept, inventory=inventory))
    room = GroupRoom(snapshot)
    inventory.server_of["s6"] = servers[-1]
    kept.grow("s6")
    for step in range(200):
        if step < len(SIZES):
            assert room.watch(SIZES[step], snapshot) == step
        if jobs.held and rng.random() < 0.5:
            jobs.end(int(rng.integers(len(jobs.held))))
        else:
            jobs.start(f"s{rng.integers(7)}", int(rng.integers(1, 9)), [None, *TIERS][int(rng.integers(4))])
        if step == 50:  # it moves to another cluster
            servers[0] = inventory.server_of["s0"] = Server("s0", "west", "c1", "r", "H100", 8, 0, 0)
            kept.grow("s0")
        assert room.follow(snapshot)
        for number, size in enumerate(SIZES[: step + 1]):
            able = {place for place in PLACES if room.groups((place[0],), (place[2],)) & room.able[number]}
            assert able == counted(servers, kept, size)


def test_a_new_group_is_counted_from_the_beginning() -> None:
    known = {"s0": server(0)}
    kept = Holders([server(0), server(2)]).kept
    snapshot = cast(Snapshot, SimpleNamespace(reclaimable=kept, inventory=SimpleNamespace(server_of=known)))
    room = GroupRoom(snapshot)
    known["s2"] = server(2)
    kept.grow("s2")
    assert not room.follow(snapshot)


def test_tasks_without_gpus_may_fit_everywhere() -> None:
    kept = Holders([server(0)]).kept
    snapshot = cast(Snapshot, SimpleNamespace(reclaimable=kept, inventory=SimpleNamespace(server_of={"s0": server(0)})))
    room = GroupRoom(snapshot)
    assert room.able[room.watch(Size(0, 0, 50), snapshot)] & room.groups(("east",), None)
