"""Slurm behind the protocol of hosts: what only Slurm has. The rest is in the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.slurm.host import Programs, SlurmHost
from mast_opt.live.hosts.slurm.reading import cluster_of
from mast_opt.live.hosts.slurm.specs import servers_of, spec_of
from mast_opt.live.loop.commands import Drop
from mast_opt.live.loop.events import Submitted
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import open_sqlite
from tests.hosts.slurm.stand_in import SlurmStandIn
from tests.hosts.test_conformance import SlurmWorld

KIND = "h100 batch"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    made = open_sqlite(tmp_path)
    yield made
    made.close()


def spec(**job: object) -> JobSpec | None:
    slurm = SlurmStandIn()
    slurm.submit(1, 4, **job)  # type: ignore[arg-type]
    return spec_of(cluster_of(*slurm.texts()), slurm.jobs[1])


def test_what_a_job_asks_for() -> None:
    assert spec() == JobSpec(1, 1, 4000, 1000, 0, {KIND: 4000}, prefer="rack", preemptible=True)
    assert spec(comment="mast-opt", requeue=False) == JobSpec(9, 1, 4000, 1000, 0, {KIND: 4000}, prefer="rack")
    pair = spec(nodes=2, time_limit=60)
    assert pair is not None
    assert (pair.tasks, pair.cpu_mcores, pair.limit_ms, pair.limit_grace_ms) == (2, 33_000, 3_600_000, 61_000)
    assert spec(nodes=1, tasks=100, max_nodes=2) is not None
    for nothing in ({"max_nodes": 1, "tasks": 100}, {"partition": "none"}, {"required_nodes": "east"}):
        assert spec(**nothing) is None
    assert spec(tres_per_node="gres:gpu:a100:1") is None


@pytest.mark.parametrize(
    ("cluster", "partition", "grace_s"),
    [
        ("", "", 61),
        ("OverTimeLimit = 5 min\n", " OverTimeLimit=NONE", 361),
        ("OverTimeLimit = 5 min\n", " OverTimeLimit=2", 181),
        ("OverTimeLimit = UNLIMITED\n", " OverTimeLimit=2", 181),
        ("OverTimeLimit = UNLIMITED\n", " OverTimeLimit=NONE", None),
        ("", " OverTimeLimit=UNLIMITED", None),
    ],
)
def test_the_grace_is_what_slurm_gives(cluster: str, partition: str, grace_s: int | None) -> None:
    slurm = SlurmStandIn()
    slurm.submit(1, 4, time_limit=60)
    slurm.submit(2, 4, time_limit=60, comment="")
    slurm.start(2, "east")
    slurm.config += cluster
    slurm.partition += partition
    host = SlurmHost(slurm)
    host.resume(())
    specs = [one.spec for one in host.reports(0) if isinstance(one, Submitted)]
    grace_ms = None if grace_s is None else 1000 * grace_s
    assert [(one.limit_ms, one.limit_grace_ms) for one in specs] == [(3_600_000, grace_ms)] * 2
    words = "OverTimeLimit of partition batch is UNLIMITED"
    assert host.unenforced() == ("" if grace_s is not None else words)


@pytest.mark.parametrize(
    ("topology", "cluster", "rack"),
    [
        ("", "demo/demo", "demo/demo/demo"),
        (
            "SwitchName=s0 Nodes=east\nSwitchName=s1 Nodes=west\nSwitchName=top Switches=s[0-1]",
            "demo/top",
            "demo/top/s0",
        ),
        ("BlockName=b0 BlockIndex=0 Nodes=east\nBlockName=b1 BlockIndex=1 Nodes=west", "demo/b0", "demo/b0/b0"),
    ],
)
def test_switches_and_blocks_are_levels_of_the_interconnect(topology: str, cluster: str, rack: str) -> None:
    slurm = SlurmStandIn()
    slurm.topology = topology
    east = servers_of(cluster_of(*slurm.texts()))["east"]
    assert (east.region, east.cluster, east.rack, east.gpus) == ("demo", cluster, rack, 8)


def test_what_is_stopped_is_held_and_no_longer_pinned(store: SqlStore) -> None:
    world = SlurmWorld()
    world.begin(store)
    for name in ("low", "other"):
        world.submit(name, 8)
    world.slurm.jobs[1]["comment"] = "mast-opt tier=8"
    world.settle()
    assert set(world.runs()) == {"low", "other"}
    world.numbers["high"] = 3
    world.slurm.submit(3, 8, "mast-opt tier=0")
    world.settle(8)
    assert set(world.runs()) == {"high", "other"}
    assert ("scontrol", "requeuehold", "1") in world.slurm.calls
    job = world.slurm.jobs[1]
    assert (job["job_state"], job["priority"], job["required_nodes"]) == ("PENDING", 0, "")
    world.live.close()


def test_work_of_others_counts_and_is_left_alone(store: SqlStore) -> None:
    world = SlurmWorld()
    world.slurm.submit(7, 8, "somebody's", requeue=True)
    world.slurm.start(7, "east")
    world.begin(store)
    world.slurm.submit(8, 8, "held by its user")
    world.submit("a", 8)
    world.settle()
    assert world.records()["slurm:7"].state is JobState.RUNNING
    assert world.runs()["a"] == "west"
    world.submit("b", 8)
    world.slurm.drained.add("west")
    world.settle()
    assert "b" not in world.runs()
    assert not any({"7", "8"} & set(words) for words in world.slurm.calls)
    world.live.close()


def test_trouble_ends_in_a_message_and_leaves_jobs_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: SqlStore
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="sinfo is missing; expected Slurm's programs here"):
        SlurmHost(Programs()).servers()
    with pytest.raises(InputError, match="scontrol is missing"):
        Programs().call("scontrol", "release", "1")
    world = SlurmWorld()
    world.begin(store)
    world.submit("a", 8)
    world.settle(1)
    before = list(world.slurm.calls)
    world.slurm.down = "sinfo has not answered within 20 s; nothing was changed"
    with pytest.raises(InputError, match="not answered"):
        world.of.step()
    assert world.slurm.calls == before
    with pytest.raises(Exception, match="it got Drop"):
        world.of.carry_out(0, Drop(1, "data", "demo"))
    world.live.close()
