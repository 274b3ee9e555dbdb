"""Slow paths end to end: data in one region, jobs that wait for it, copies that take days; lost switchboards."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.event_log import log_lines
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.policies.mast import Mast
from mast_opt.live.simulation.engine_run import opening_state, what_comes
from mast_opt.live.simulation.run import SimulatedRun, run_trace
from mast_opt.live.simulation.slow_runs import PATHS, slow_run
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from tests.simulation.data_trace import COMMITTED, HEADER, REGIONS, write_data_trace

DAY_MS = 86_400_000
QUICK = {"slow.data.iterations": "5", "slow.servers.iterations": "5", "slow.servers.every_s": "43200"}


@cache
def small() -> JobTrace:
    return read_trace(COMMITTED)


@cache
def run(*slow: str) -> SimulatedRun:
    params = {name: value for name, value in QUICK.items() if name.split(".")[1] in slow}
    return run_trace(small(), "mast", params, slow=slow)


def test_the_committed_trace_is_the_drawn_one(tmp_path: Path) -> None:
    drawn = {path.name: path.read_text() for path in write_data_trace(tmp_path / "t").iterdir()}
    assert drawn == {path.name: path.read_text() for path in COMMITTED.iterdir()}


def found(done: SimulatedRun, *kinds: type[ev.Event]) -> list[ev.Stored]:
    return [stored for stored in done.events() if isinstance(stored.event, kinds)]


@pytest.mark.parametrize("slow", [(), ("data",), PATHS])
def test_logs_pass_the_checker(slow: tuple[str, ...]) -> None:
    log = list(run(*slow).events())
    assert [str(violation) for violation in check_log(log, replicas={}, all_end=True, durations=True)] == []


def test_residency_holds_with_plans(tmp_path: Path) -> None:
    folder = write_data_trace(tmp_path / "t", days=3, jobs=40)
    rows = [f"ads-{n},{region}" for n in range(3) for region in ("east", "north")] + ["search-0,east"]
    (folder / "residency.csv").write_text("\n".join(["dataset,region", *rows]) + "\n")
    trace = read_trace(folder)
    done = run_trace(trace, "mast", {"slow.data.iterations": "5"}, slow=("data",))
    assert [str(one) for one in check_log(done.events(), replicas={}, all_end=True)] == []
    specs = {name: trace.submissions.spec(j) for j, name in enumerate(trace.submissions.labels)}
    allowed = {name: set(where) for name, where in trace.surroundings.residency.items()}
    for stored in found(done, ev.Placed):
        assert isinstance(stored.event, ev.Placed)
        for name in specs[stored.event.job].datasets:
            assert stored.event.region in allowed.get(name, {stored.event.region})
    copies = {(one.event.dataset, one.event.region) for one in found(done, ev.CopyAsked)}  # type: ignore[attr-defined]
    assert copies
    assert all(region in allowed.get(name, {region}) for name, region in copies)


def test_residency_without_sizes_of_data(tmp_path: Path) -> None:
    folder = write_data_trace(tmp_path / "t", days=1, jobs=4)
    (folder / "datasets.csv").unlink()
    rows = [f"{space}-{n},{region}" for space in ("ads", "search") for n in range(3) for region in ("east", "west")]
    (folder / "replicas.csv").write_text("\n".join(["dataset,region", *rows]) + "\n")
    (folder / "residency.csv").write_text("\n".join(["dataset,region", *rows[1::2]]) + "\n")
    done = run_trace(read_trace(folder), "mast")
    assert {one.event.region for one in found(done, ev.Placed)} == {"west"}  # type: ignore[attr-defined]


def test_without_copies_every_job_runs_where_the_data_is() -> None:
    assert {stored.event.region for stored in found(run(), ev.Placed) if isinstance(stored.event, ev.Placed)} == {
        "east"
    }


def test_jobs_start_elsewhere_after_the_first_copies() -> None:
    done = run("data")
    first, last = (found(done, kind)[at] for kind, at in ((ev.SolveAsked, 0), (ev.CopyEnded, -1)))
    assert first.at_ms == DAY_MS
    ended = found(done, ev.SolveEnded)[0]
    assert ended.at_ms == DAY_MS + 18_000_000
    assert isinstance(ended.event, ev.SolveEnded)
    assert ended.event.bound is not None
    assert ended.event.objective is not None
    assert 0 < ended.event.bound <= ended.event.objective
    copies = [stored.event for stored in found(done, ev.CopyAsked)]
    assert copies
    assert all(isinstance(copy, ev.CopyAsked) and copy.source == "east" for copy in copies)
    whole = found(done, ev.CopyEnded)[0]
    assert whole.at_ms == ended.at_ms + DAY_MS // 2  # 2 TB at 4 TB a day
    assert last.at_ms > whole.at_ms
    elsewhere = [stored for stored in found(done, ev.Placed) if getattr(stored.event, "region", "") != "east"]
    assert elsewhere
    assert elsewhere[0].at_ms >= whole.at_ms
    assert found(done, ev.Finished)[-1].at_ms < found(run(), ev.Finished)[-1].at_ms


def test_plans_by_arrivals_do_not_chase_the_backlog(tmp_path: Path) -> None:
    """A queue that grows, and jobs whose data is together nowhere: copies take days."""
    days, spaces = 6, ("ads", "search")
    folder = write_data_trace(tmp_path / "t", seed=3, days=days, jobs=35 * days)
    apart = [f"{space}-{n},{region}" for space in spaces for n, region in enumerate(REGIONS)]
    (folder / "replicas.csv").write_text("\n".join(["dataset,region", *apart]) + "\n")
    slow = [f"{region},8,1" for region in REGIONS]
    (folder / "regions.csv").write_text("\n".join(["region,storage_tb,ingress_tb_per_day", *slow]) + "\n")
    trace, planned = read_trace(folder), {}
    for forecast in ("mean", "arrivals"):
        params = {"slow.data.iterations": "5", "slow.data.forecast": forecast, "tick_s": "600"}
        done = run_trace(trace, "mast", params, slow=("data",), until_ms=days * DAY_MS)
        plans = [one.event for one in found(done, ev.PlanAdopted)]
        planned[forecast] = [plan.ratios[2] for plan in plans if isinstance(plan, ev.PlanAdopted) and plan.ratios]
    jobs, supply_mgpu = trace.submissions, sum(server.gpus for server in trace.servers) * 1000
    offered = (jobs.duration_ms * jobs.gang_mgpu).sum() / (days * DAY_MS * supply_mgpu)
    assert 1.2 < offered < 1.3
    assert max(planned["arrivals"]) < 1.2 * offered
    assert planned["arrivals"][-1] > 0.8 * offered
    assert planned["mean"] == sorted(planned["mean"])
    assert planned["mean"][-1] > 2 * offered


def test_a_plan_says_its_ratios_and_its_waves() -> None:
    plan = found(run("data"), ev.PlanAdopted)[0].event
    assert isinstance(plan, ev.PlanAdopted)
    assert plan.ratios is not None
    assert sorted(plan.ratios) == [0, 1, 2]
    assert 0 < plan.ratios[0] <= plan.ratios[1] <= plan.ratios[2] < 1.2
    assert all(step.does == ev.COPY and step.keep == 2 for step in plan.steps)


@pytest.mark.parametrize("slow", [("data",), PATHS])
def test_replay_leads_to_the_same_state(slow: tuple[str, ...]) -> None:
    from mast_opt.live.loop.engine import Engine, Turn
    from mast_opt.live.simulation.driver import simulate
    from mast_opt.live.simulation.host import SimulatedHost, Work

    trace, jobs = small(), small().submissions
    given = {name: value for name, value in QUICK.items() if name.split(".")[1] in slow}
    parts = slow_run(trace, slow, given)
    work = {name: Work(int(jobs.duration_ms[j]), 3_600_000, 60_000) for j, name in enumerate(jobs.labels)}
    host = SimulatedHost(work, servers=trace.servers, network=parts.network, solver=parts.solver)
    replayed, state = opening_state(trace, "best-fit"), opening_state(trace, "best-fit")
    assert parts.solver is not None

    def compare(turn: Turn) -> None:
        for stored in turn.events:
            replayed.apply(stored.seq, stored.at_ms, stored.event)
        if turn.events:
            assert replayed.digest() == state.digest()

    engine = Engine(state, Mast(), parts.paths, plans=parts.solver.plan)
    simulate(engine, host, what_comes(trace), on_turn=compare, until_ms=3 * DAY_MS)
    assert state.datasets.replicas["ads-0"] == replayed.datasets.replicas["ads-0"]


LOG = """
from mast_opt.live.loop.event_log import log_lines
from tests.simulation.test_slow_paths import run
print("".join(log_lines(run("data", "servers").events())))
"""


@pytest.mark.second_tier
def test_logs_are_equal_under_other_hash_seeds_and_threads() -> None:
    here = "".join(log_lines(run(*PATHS).events())) + "\n"
    env = {**os.environ, "PYTHONHASHSEED": "7", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", LOG], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == here


# One region: the gang of four servers needs one cluster. Six of a's eight servers hang from one switchboard.
GANG = {
    "regions": "region\neast\n",
    "clusters": "cluster,region\na,east\nb,east\n",
    "servers": "server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb\n"
    + "".join(f"s{n},{'a' if n < 8 else 'b'},r,h100,8,1,1\n" for n in range(11)),
    "switchboards": "server,switchboard\n"
    + "".join(f"s{n},msb{0 if n < 6 else 1 if n < 8 else 2}\n" for n in range(11)),
    "submissions": "job,submitted_s,tier,tasks,gpus,duration_s,checkpoint_s,restart_s\ngang,0,0,4,8,259200,3600,60\n",
    "happenings": "at_s,what,name,value\n86400,switchboard_down,msb0,\n172800,switchboard_up,msb0,\n",
}


@pytest.fixture
def gang(tmp_path: Path) -> JobTrace:
    (tmp_path / "instance.toml").write_text(HEADER)
    for name, text in GANG.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return read_trace(tmp_path)


def waits_ms(done: SimulatedRun) -> list[int]:
    """Between each stop (or the submission) of the gang and its next start."""
    since, found_ms = 0, []
    for stored in done.events():
        if isinstance(stored.event, (ev.Submitted, ev.Stopped)):
            since = stored.at_ms
        elif isinstance(stored.event, ev.Started):
            found_ms.append(stored.at_ms - since)
    return found_ms


def test_the_buffer_absorbs_a_lost_switchboard(gang: JobTrace) -> None:
    without = run_trace(gang, "mast")
    assert waits_ms(without) in ([0], [0, DAY_MS])
    params = {"slow.servers.iterations": "5"}
    done = run_trace(gang, "mast", params, slow=["servers"])
    moved = found(done, ev.ServerMoved)
    assert moved
    assert moved[0].at_ms == 1_800_000 + 600_000 + 600_000
    assert set(waits_ms(done)) == {0}
    assert not check_log(done.events(), all_end=True, durations=True)
    stopped = found(without, ev.Stopped)
    assert stopped, "the gang has to be where the switchboard fails"


HAPPENINGS = """at_s,what,name,value
40000,server_down,east-0,
60000,switchboard_down,east-msb0,
90000,quota,ads,4
110000,server_up,east-0,
130000,region_down,north,
150000,switchboard_up,east-msb0,
200000,quota,ads,
250000,region_up,north,
260000,region_down,east,
300000,region_up,east,
"""


def test_failures_and_quotas_under_the_checker(tmp_path: Path) -> None:
    (write_data_trace(tmp_path / "t") / "happenings.csv").write_text(HAPPENINGS)
    submissions = tmp_path / "t" / "submissions.csv"
    head, *rows = submissions.read_text().splitlines()
    submissions.write_text("\n".join([f"{head},tenant", *(f"{row},{row.split(',')[6]}" for row in rows)]) + "\n")
    done = run_trace(read_trace(tmp_path / "t"), "mast", {"slow.data.iterations": "5"}, slow=["data"])
    found_faults = check_log(done.events(), replicas={}, all_end=True, durations=True)
    assert [str(violation) for violation in found_faults] == []
    down = found(done, ev.ServerDown)
    assert len(down) == 2 + 4 + 4  # east-0 is down already when its switchboard fails
    assert len(found(done, ev.ServerUp)) == 12 + len(down)
    assert any(getattr(stored.event, "why", "") == "region east" for stored in down)
    north = [
        stored.at_ms
        for stored in found(done, ev.Started, ev.CopyEnded)
        if getattr(stored.event, "region", "") == "north" and 130_000_000 < stored.at_ms < 250_000_000
    ]
    assert north == []  # no copy ends in a region that is down


def test_parameters_are_recorded() -> None:
    params = run("data").params
    assert params["slow.data.iterations"] == 5
    assert (params["slow.data.takes_s"], params["slow.data.solver"]) == (18_000, "tetris")
    assert "slow.servers.every_s" not in params


@pytest.mark.parametrize(
    ("slow", "params", "words"),
    [
        (["date"], {}, "there is no slow path 'date'"),
        (["data"], {"slow.data.evry_s": "1"}, "there is no parameter slow.data.evry_s; did you mean 'every_s'?"),
        (["data"], {"slow.servers.every_s": "1"}, "is of a slow path that is not on; on are: data"),
        (["data"], {"slow.data.every_s": "0"}, "every_s of the data path is 0"),
        (["data"], {"slow.data.forecast": "exact"}, "forecast of the data path is 'exact'"),
        (["data"], {"slow.data.forecast_error": "-1"}, "the error of a forecast is -1.0"),
        (["servers"], {"slow.servers.iterations": "0"}, "iterations of a solve is 0"),
        (["servers"], {"slow.servers.every_s": "x"}, "parameter slow.servers.every_s is 'x'"),
    ],
)
def test_bad_arguments(slow: list[str], params: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run_trace(small(), "mast", params, slow=slow)
    assert words in str(caught.value)


def test_order_only_policies_have_no_slow_paths() -> None:
    with pytest.raises(UsageError, match="slow paths need mast or federated"):
        run_trace(small(), "fifo", slow=["data"])


def test_what_a_trace_lacks_is_named(gang: JobTrace) -> None:
    with pytest.raises(InstanceError, match="the sizes of datasets"):
        run_trace(gang, "mast", slow=["data"])
