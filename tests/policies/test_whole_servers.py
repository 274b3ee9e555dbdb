"""Packing of jobs that need a part of a server: what is stopped for them, and what gangs find afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.policies.whole_servers import NEVER, PACKINGS, WholeServers
from mast_opt.problems.job_placement.live_fleet.types import Part, Server
from tests.loop.test_reclaimable import TIERS, Holders

SERVERS = tuple(Server(name, "east", "east-1", "rack", "H100", 8, 0, 0) for name in ("s1", "s2"))
OLD = {"firm": (0, 4), "dear": (1, 4), "cheap": (2, 8)}
"""Name → tier and GPUs: s1 has firm and dear, s2 has cheap."""


def spec(tier: int, gpus: int) -> JobSpec:
    return JobSpec(tier=tier, mgpu=gpus * 1000, preemptible=tier > 0, checkpoint_ms=10**9)


def placed(pack: str, *newcomers: JobSpec, old: dict[str, tuple[int, int]]) -> dict[str, tuple[str, ...]]:
    """Newcomer → its servers, of those that start at once; the servers are full of ``old``."""
    engine = Engine(State(SERVERS, tiers=(0, 1, 2), placement="best-fit"), Mast(MastParams(pack=pack)))
    now_ms, found = 0, dict[str, tuple[str, ...]]()
    engine.advance(0, engine.state.opening())
    arrivals = {**{name: spec(*size) for name, size in old.items()}, **{f"new-{n}": s for n, s in enumerate(newcomers)}}
    for name, one in arrivals.items():
        now_ms += 600_000
        turn = engine.advance(now_ms, [ev.Submitted(name, one)])
        for stored in turn.events:
            if isinstance(stored.event, ev.StopAsked):
                turn = engine.advance(now_ms, [ev.Stopped(stored.event.job, stored.event.attempt, 0, 0)])
        for record in engine.state.jobs.values():
            if record.shares and name == record.name:
                engine.advance(now_ms, [ev.Started(name, record.attempt)])
                found[name] = tuple(share.server for share in record.shares)
    return {name: servers for name, servers in found.items() if name.startswith("new")}


@pytest.mark.parametrize(("pack", "server"), [("never", "s2"), ("same-tier", "s2"), ("always", "s1")])
def test_a_small_job_stops_more_important_work_only_where_it_packs_always(pack: str, server: str) -> None:
    assert placed(pack, spec(0, 4), old=OLD) == {"new-0": (server,)}


@pytest.mark.parametrize("pack", PACKINGS)
def test_a_gang_finds_a_whole_server_where_small_jobs_are_packed(pack: str) -> None:
    """Both servers have work of the lowest tier; stopping that of the second one loses less."""
    old = {"firm": (0, 4), "long": (2, 4), "recent": (2, 4), "last": (2, 4)}
    gang = {} if pack == NEVER else {"new-1": ("s2",)}
    assert placed(pack, spec(0, 4), spec(0, 8), old=old) == {"new-0": ("s2" if pack == NEVER else "s1",), **gang}


@pytest.mark.parametrize(("pack", "server"), [("never", "s2"), ("same-tier", "s2"), ("always", "s1")])
def test_parts_are_packed_like_other_small_jobs(pack: str, server: str) -> None:
    """A part that takes a whole server has no other place, so the job keeps its best bid."""
    parts = (Part("a", 1, 2000), Part("b", 2, 1000))
    assert placed(pack, JobSpec(parts=parts), old=OLD) == {"new-0": (server, server)}
    large = (Part("a", 1, 8000), Part("b", 1, 2000))
    assert placed(pack, JobSpec(parts=large), old={"cheap": (2, 8), "dear": (1, 8)}) == {"new-0": ("s1", "s2")}


def test_whole_servers_are_broken_where_there_is_no_other_room() -> None:
    assert placed("always", spec(0, 4), old={"firm": (0, 8), "cheap": (2, 8)}) == {"new-0": ("s2",)}


def test_wrong_packing_is_named() -> None:
    with pytest.raises(UsageError, match="pack is 'often'"):
        MastParams(pack="often")
    with pytest.raises(UsageError, match="runner_up"):
        MastParams(pack="always", runner_up=True)


@pytest.mark.parametrize("seed", range(5))
def test_whole_servers_against_a_look_at_every_server(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = [(region, kind, gpus) for region in ("east", "west") for kind, gpus in (("H100", 8), ("A100", 4))]
    servers = {
        f"s{n}": Server(f"s{n}", region, f"{region}-1", "rack", kind, gpus, 0, 0)
        for n, (region, kind, gpus) in enumerate([*places, *places, ("east", "CPU", 0)])
    }
    jobs, whole = Holders(servers.values()), WholeServers()
    kept = jobs.kept
    snapshot = cast(Snapshot, SimpleNamespace(reclaimable=kept, inventory=SimpleNamespace(server_of=servers)))
    for step in range(300):
        name = f"s{rng.integers(8)}"
        if jobs.held and (rng.random() < 0.55 or jobs.room(name) + servers[name].gpus < 10):
            jobs.end(int(rng.integers(len(jobs.held))))
        else:
            jobs.start(name, int(rng.integers(1, 3)), [None, *TIERS][int(rng.integers(4))])
        if step == 150:  # a server that nobody uses comes back in another region, with another size
            for number in reversed([n for n, (_, at, *_) in enumerate(jobs.held) if at == "s7"]):
                jobs.end(number)
            servers["s7"] = Server("s7", "east", "east-1", "rack", "A100", 8, 0, 0)
            jobs.fleet.replace_server(servers["s7"])
            kept.grow("s7")
        tier, task_mgpu = TIERS[int(rng.integers(3))], int(rng.integers(1, 9)) * 1000
        region, kinds = str(rng.choice(["east", "west"])), (None, ("H100",))[int(rng.integers(2))]
        expected = {
            one.name
            for one in servers.values()
            if task_mgpu < one.gpus * 1000 == kept.most(one.name, tier)
            and one.region == region
            and (kinds is None or one.gpu_type in kinds)
        }
        assert whole.broken_by(task_mgpu, tier, [region], kinds, snapshot) == expected
        for name in expected:
            assert whole.breaks(task_mgpu, tier, [name], snapshot)
