"""Jobs of several parts in the loop: random traces, restarts, the checker, and tables of traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import InstanceError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.event_log import LogError, log_lines, read_log
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.past_state import PastState
from mast_opt.live.loop.place_metrics import place_metrics
from mast_opt.live.loop.speeds import REFERENCE, Speeds
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.live.store.codec import body_of, event_from
from mast_opt.live.store.errors import CorruptStore
from mast_opt.live.store.state_format import state_bytes, state_from
from mast_opt.problems.job_placement.live_fleet.types import Part, Share
from tests.simulation import test_driver
from tests.simulation.test_driver import POLICIES, fresh, logs_of
from tests.simulation.traces.test_trace import written

SIMULATED = ("fifo", "mast", "mast-runner-up", "mast-packed", "hydra")


def trace(seed: int, jobs: int = 60, faults: bool = True) -> tuple[list[Happening], dict[str, Work]]:
    """The driver's random trace in which a third of the jobs have several parts."""
    happenings, work = test_driver.trace(seed, jobs=jobs, faults=faults)
    rng = np.random.default_rng(seed)
    for number, (at_ms, event) in enumerate(happenings):
        if isinstance(event, ev.Submitted) and rng.random() < 1 / 3:
            kinds = None if rng.random() < 0.5 else {"H100": 1000}
            parts = (
                Part("trainers", int(rng.integers(1, 4)), int(rng.choice([1, 2, 4])) * 1000),
                Part("readers", int(rng.integers(1, 4)), int(rng.choice([0, 500, 1000])), gpu_types=kinds),
                *(Part(f"p{at}", within="server") for at in range(int(rng.integers(0, 2)))),
            )
            within = str(rng.choice(["region", "cluster", "rack"]))
            spec = replace(event.spec, tasks=1, mgpu=1000, parts=parts, within=within)
            happenings[number] = at_ms, ev.Submitted(event.job, spec)
    return happenings, work


@pytest.mark.parametrize("name", SIMULATED)
def test_random_traces_restart_from_log_and_snapshot(name: str) -> None:
    happenings, work = trace(1 if name.startswith("mast") else 2)
    engine, replayed, log = Engine(fresh(), POLICIES[name]()), fresh(), list[ev.Stored]()

    def compare(turn: Turn) -> None:
        if not turn.events:
            return
        log.extend(turn.events)
        for stored in turn.events:
            replayed.apply(stored.seq, stored.at_ms, stored.event)
        assert replayed.digest() == engine.state.digest()
        if len(log) % 20 == 0:
            restored = state_from(state_bytes(engine.state))
            assert restored.digest() == engine.state.digest()
            assert {one.name: one.job for one in restored.jobs.values()} == {
                one.name: one.job for one in engine.state.jobs.values()
            }

    simulate(engine, SimulatedHost(work), happenings, on_turn=compare)
    assert not engine.state.jobs
    data = {"logs": ["west", "east"], "images": ["west"]}
    assert check_log(log, replicas=data, limited=["ads", "search"], all_end=True, durations=True) == ()
    of_parts = {one.event.job for one in log if isinstance(one.event, ev.Submitted) and one.event.spec.parts}
    placed = [one.event for one in log if isinstance(one.event, ev.Placed) and one.event.job in of_parts]
    assert len(placed) > 10
    if name.startswith("mast"):
        assert any(event.attempt > 1 for event in placed)
        assert any(event.victims for event in placed)
        assert any(victim in of_parts for one in log for victim in getattr(one.event, "victims", ()))
    assert list(read_log(log_lines(log))) == log
    assert [event_from((one.seq, one.at_ms, 1, *_row(one))) for one in log] == log
    assert metrics(job_log(log)).jobs == 60
    place_metrics(log)


def _row(stored: ev.Stored) -> tuple[str, str, str]:
    kind, _, body = body_of(stored)
    return kind, body, ""


@pytest.mark.parametrize("seed", range(3))
def test_no_job_of_parts_that_could_be_placed_sleeps(seed: int) -> None:
    logs = logs_of(*trace(seed, jobs=100), MastParams(), seed == 0)
    assert logs[0] == logs[1]


PARTS = (Part("t", 2, 4000, within="server"), Part("r", 3, 0, 1000))
SPEC = JobSpec(parts=PARTS, within="region")
UP = [
    *(ev.ServerUp(f"s{at}", "a", f"c{at % 2}", f"k{at}", kind, 8, 8000) for at, kind in enumerate(["h", "h", "v"])),
    ev.ServerUp("far", "b", "d", "k", "h", 8, 8000),
]
PLACED = (Share("s0", 2, dict.fromkeys(range(8), 1000), "t"), Share("s0", 1, {}, "r"), Share("s2", 2, {}, "r"))


def faults_of(*shares: Share, spec: JobSpec = SPEC) -> set[str]:
    events = [*UP, ev.Submitted("a", spec), ev.Placed("a", 1, "a", "c0", shares), ev.Started("a", 1)]
    found = check_log([ev.Stored(seq, seq, event) for seq, event in enumerate(events, start=1)])
    return {one.what for one in found}


def test_the_checker_knows_parts() -> None:
    t, r0, r2 = PLACED
    only = (replace(PARTS[0], gpu_types={"h": 4000}), PARTS[1])
    assert faults_of(t, replace(r0, tasks=3)) == set()
    assert faults_of(*PLACED) == {"gpu"}  # readers on two types
    assert faults_of(t) == {"gang"}
    assert faults_of(t, r0) == {"gang"}
    assert faults_of(t, replace(r0, tasks=3), replace(r0, server="s1", tasks=1)) == {"gang", "level"}
    assert faults_of(t, replace(r0, tasks=3, part="x")) == {"gang", "capacity"}
    assert faults_of(t, r0, replace(r2, server="s1")) == {"level"}  # another cluster, where one part stays in one
    assert faults_of(t, replace(r0, server="far", tasks=3)) == {"region"}
    assert faults_of(t, replace(r0, server="s1", tasks=3)) == set()
    assert faults_of(t, replace(r0, server="s1", tasks=3), spec=replace(SPEC, within="cluster")) == {"region"}
    assert faults_of(t, replace(r2, tasks=3), spec=replace(SPEC, within="rack")) == {"level"}
    halves = (replace(t, tasks=1, gpus={0: 4000}), replace(t, server="s2", tasks=1, gpus={0: 4000}))
    assert faults_of(*halves, replace(r0, tasks=3)) >= {"level", "gpu"}
    assert faults_of(replace(t, server="s2"), replace(r0, tasks=3), spec=replace(SPEC, parts=only)) == {"gpu"}
    assert faults_of(replace(t, gpus={0: 1000}), replace(r0, tasks=3)) == {"gpu"}
    assert faults_of(t, replace(r0, tasks=3), spec=replace(SPEC, parts=(PARTS[0], Part("r", 3, 0, 9000)))) == {
        "capacity"
    }


def test_regions_with_room_are_those_where_each_part_fits() -> None:
    past = PastState()
    for event in (*UP, ev.Submitted("a", SPEC), ev.Submitted("b", replace(SPEC, parts=(Part("t", 9, 4000), PARTS[1])))):
        past.take(0, event)
    assert past.regions_with_room(past.jobs["a"]) == ("a", "b")
    assert past.regions_with_room(past.jobs["b"]) == ()
    past.take(1, ev.Placed("a", 1, "a", "c0", PLACED))
    assert past.servers["s0"].free == [0, 7000, 0]
    assert past.servers["s2"].free == [8000, 6000, 0]


def test_needs_of_all_parts() -> None:
    kinds = (Part("t", 2, 4000, gpu_types={"h": 4000, "v": 2000}), Part("u", 1, 1000, gpu_types={"w": 500}), PARTS[1])
    spec = JobSpec(parts=kinds)
    assert (spec.asked_mgpu, spec.stated_mgpu, spec.accepted) == (4500, 9000, ("h", "v", "w"))
    assert JobSpec(parts=PARTS).accepted is None
    assert Speeds({("m", "h", 1): 1}).rate(spec, "h", tasks=5) == REFERENCE
    assert spec.shape != JobSpec(parts=kinds[:2]).shape


@pytest.mark.parametrize("quick", [True, False])
def test_parts_that_cannot_be_are_faults_of_a_log(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not quick:
        monkeypatch.setattr("mast_opt.live.store.codec.msgspec", None)
    body = '{"job":"a","spec":{"parts":[{"name":"t","tasks":0}]}}'
    with pytest.raises(CorruptStore, match="event 1 cannot be read"):
        event_from((1, 0, 1, "Submitted", body, ""))
    lines = ['{"format": "mast-opt-log/1"}\n', '{"seq": 1, "at_ms": 0, "event": "Submitted", ' + body[1:] + "\n"]
    with pytest.raises(LogError, match="tasks is 0"):
        list(read_log(lines))


TABLES: dict[str, Any] = {
    "submissions": "job,submitted_s,tier,tasks,gpus,duration_s,within\ny,2,1,,,50,region\nx,1,0,1,2,30,\n",
    "job_parts": "job,part,tasks,gpus,cpu_cores,memory_gb,within\ny,t,2,4,1,2,server\ny,r,1,0,8,0,\n",
    "job_gpu_types": "job,gpu_type,gpus,part\ny,h100,,t\nx,h100,,\n",
    "job_datasets": "",
    "replicas": "",
}


def test_a_trace_with_parts(tmp_path: Path) -> None:
    read = read_trace(written(tmp_path, **TABLES))
    trainers = Part("t", 2, 4000, 1000, 2048, {"h100": 4000}, "server")
    spec = read.submissions.spec(1)
    assert (spec.within, spec.parts) == ("region", (trainers, Part("r", 1, 0, 8000)))
    assert read.submissions.spec(0).gpu_types == {"h100": 2000}
    assert read.submissions.gang_mgpu.tolist() == [2000, 8000]
    for policy in ("mast", "easy", "federated"):
        run = run_trace(read, policy)
        assert check_log(run.events(), all_end=True, durations=True) == ()
        assert all(one.file == "quotas" for one in run.warnings)
        assert run.rows.mgpu.tolist() == [2000, 8000]
    for policy in ("gavel", "pai", "fifo", "tiresias"):
        with pytest.raises(InstanceError, match="no jobs of several parts"):
            run_trace(read, policy)


@pytest.mark.parametrize(
    ("table", "old", "new", "words"),
    [
        ("submissions", "y,2,1,,,50", "y,2,1,3,,50", "row 1, column tasks: .*the parts of the job say that"),
        ("submissions", "x,1,0,1,2", "x,1,0,,2", "row 2, column tasks: .*not an empty cell"),
        ("submissions", "30,\n", "30,region\n", "row 2, column within.*region is for jobs in job_parts"),
        ("job_gpu_types", ",t\n", ",u\n", "row 1, column part: found 'u'; expected a part of y"),
        ("job_gpu_types", "x,h100,,\n", "x,h100,,t\n", "row 2, column part: found 't'; expected a part of x"),
        ("job_parts", "y,t,2,4", "y,t,2,4.5", "row 1, column gpus.*whole GPUs"),
    ],
)
def test_faults_of_parts(tmp_path: Path, table: str, old: str, new: str, words: str) -> None:
    assert old in TABLES[table]
    with pytest.raises(InstanceError, match=words):
        read_trace(written(tmp_path, **{**TABLES, table: TABLES[table].replace(old, new)}))
