"""``mast-opt simulate``: figures, files, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mast_opt.live.loop.event_log import read_log
from mast_opt.live.loop.log_checker import check_log
from tests.cli.conftest import Call

TRACES = Path(__file__).parents[2] / "instances" / "traces"
SMALL = str(TRACES / "philly-small")


def record(call: Call, *options: str) -> dict[str, Any]:
    ended = call("simulate", SMALL, "--json", *options)
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


@pytest.mark.parametrize(("policy", "waits"), [("fifo", 226_773), ("sjf", 39_944), ("mast", 0)])
def test_figures(call: Call, policy: str, waits: int) -> None:
    found = record(call, "--policy", policy)
    assert found["sum_queue_s"] == found["metrics"]["sum_queue_s"] == waits
    assert found["metrics"]["finished"] == 500
    assert found["events"] == (2000 if policy == "mast" else 1500)
    assert found["makespan_s"] == 1_288_614
    assert found["mean_jct_s"] == found["metrics"]["jct_s"]["mean"]


def test_files(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert call("simulate", SMALL, "--policy", "srtf", "--out", str(out)).code == 0
    with (out / "events.jsonl").open() as file:
        assert check_log(read_log(file), all_end=True, durations=True) == ()
    assert json.loads((out / "metrics.json").read_text())["policy"] == "srtf"
    again = call("simulate", SMALL, "--policy", "fifo", "--out", str(out))
    assert again.code == 2
    assert "exists already" in again.err
    assert call("simulate", SMALL, "--policy", "fifo", "--out", str(out), "--force").code == 0
    (out / "mine.txt").write_text("")
    kept = call("simulate", SMALL, "--policy", "fifo", "--out", str(out), "--force")
    assert "no folder of an earlier run" in kept.err


def test_longest_wait_of_each_size(call: Call) -> None:
    ended = call("simulate", SMALL, "--policy", "pai", "--param", "tick_s=600")
    assert "Longest wait of each size of jobs" in ended.out
    rows = record(call, "--policy", "pai", "--param", "tick_s=600")["longest_waits"]
    sizes = [row["gpus_up_to"] for row in rows]
    assert sizes == sorted(set(sizes)) != []
    assert all(row["waited_ms"] > 0 and row["why"] and row["job"] in ended.out for row in rows)


def test_starts_are_compared_with_what_was_said(call: Call, tmp_path: Path) -> None:
    """Of sixty jobs one after the other, with limits twice too long, all start by the times that were promised."""
    shutil.copytree(TRACES / "tiresias-60", tmp_path / "trace")
    rows = [f"j{at},{10 * at},0,1,8,100,200" for at in range(60)]
    table = tmp_path / "trace" / "submissions.csv"
    table.write_text("\n".join(["job,submitted_s,tier,tasks,gpus,duration_s,limit_s", *rows, ""]))
    options = str(tmp_path / "trace"), "--policy", "mast", "--param", "estimates=20"
    ended = call("simulate", *options, "--out", str(tmp_path / "run"))
    assert "Starts as they were said" in ended.out
    starts = json.loads(call("simulate", *options, "--json").out)["starts"]
    assert starts.keys() == {"promised", "usually_by", "expected"}
    assert starts["promised"]["started_by_then"] == 1
    assert starts["promised"]["too_long_h_p50"] > 0
    page = tmp_path / "run.html"
    assert call("report", str(tmp_path / "run"), "--out", str(page)).code == 0
    assert "Starts as they were said" in page.read_text()


def test_parameters_and_window(call: Call) -> None:
    found = record(call, "--policy", "las", "--param", "thresholds_gpu_s=60,600", "--until", "500000")
    assert found["params"] == {"thresholds_gpu_s": [60, 600]}
    assert found["makespan_s"] is None
    late = record(call, "--policy", "fifo", "--warm-up", "500000")
    assert 0 < late["metrics"]["jobs"] < 500
    home = record(call, "--policy", "federated", "--param", "rule=home", "--param", "placement=best-fit")
    assert home["sum_queue_s"] == 226_773
    stated = {"rule": "home", "age_ms": 0, "seed": 0, "alpha": 1.0, "high_gpus": 1000.0, "placement": "best-fit"}
    stated |= {"tick_s": 0, "estimates": 0, "limit_grace_s": 0}
    assert home["params"] == stated


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "fifi"), "there is no policy called 'fifi'"),
        (("--policy", "fifo", "--param", "x=1"), "fifo has no parameter 'x'; it has none"),
        (("--policy", "mast", "--param", "scop=global"), "did you mean 'scope'"),
        (("--policy", "mast", "--param", "runner_up=1"), "expected true or false"),
        (("--policy", "federated", "--param", "age_ms=soon"), "parameter age_ms is 'soon'; expected a whole number"),
        (("--policy", "mast", "--param", "placement=tight"), "fragmentation or best-fit"),
        (("--policy", "las", "--param", "thresholds_gpu_s=9,3"), "expected ascending whole numbers"),
        (("--policy", "las", "--param", "thresholds_gpu_s"), "expected NAME=VALUE"),
        (("--policy", "mast", "--param", "scope=a", "--param", "scope=b"), "scope is given twice"),
    ],
)
def test_refused(call: Call, options: tuple[str, ...], words: str) -> None:
    ended = call("simulate", SMALL, *options)
    assert ended.code == 2
    assert words in " ".join(ended.err.split())


def test_a_problem_is_no_trace(call: Call) -> None:
    ended = call("simulate", str(Path(SMALL).parents[1] / "job_placement" / "tiny-quota.json"), "--policy", "fifo")
    assert ended.code == 2
    assert "expected kind = 'job-trace'" in " ".join(ended.err.split())


def test_a_run_is_drawn_and_compared(call: Call, tmp_path: Path) -> None:
    first, second = tmp_path / "fifo", tmp_path / "sjf"
    for policy in (first, second):
        assert call("simulate", SMALL, "--policy", policy.name, "--out", policy).code == 0
    page = tmp_path / "run.html"
    drawn = call("report", first, "--out", page, "--json").record
    assert (drawn["kind"], drawn["violations"], page.is_file()) == ("run", [], True)
    assert "exists already" in call("report", first, "--out", page).err
    assert "--png is for plans" in call("report", first, "--out", page, "--png", "x.png", "--force").err
    assert "is no folder of a run" in call("report", tmp_path, "--out", page).err
    found = call("diff", first, second, "--json").record
    assert found["changes"]["sum_queue_s"] == {"before": 226_773, "after": 39_944, "by": -186_829}
    assert found["jobs"] == {"longer": 0, "shorter": 6, "same": 494}
    assert found["changed_jobs"][0]["job"] == "390"
    shown = call("diff", first, second).out
    assert "Waits that differ most" in shown
    assert "leave out the third path" in call("diff", first, second, first).err
    assert "is no folder of a run" in call("diff", first, tmp_path).err


@pytest.mark.second_tier
def test_a_sweep(call: Call, tmp_path: Path) -> None:
    options = ("--policy", "fifo,sjf", "--seed", "0..1", "--load", "4", "--out", tmp_path / "sweep", "--processes", "1")
    found = call("simulate", SMALL, *options, "--json").record
    assert (found["runs"], found["sweep"]["missing"]) == ({"there already": 0, "new": 4}, 0)
    rows = (tmp_path / "sweep" / "results.csv").read_text().splitlines()
    assert rows[0] == "policy,load,metric,seeds,mean,low,high"
    assert json.loads((tmp_path / "sweep" / "results.json").read_text()) == found["sweep"]["results"]
    again = call("simulate", SMALL, *options)
    assert again.code == 0
    assert "Mean over seeds" in again.out
    assert call("simulate", SMALL, *options, "--json").record["runs"] == {"there already": 4, "new": 0}
    assert "leave out --force" in call("simulate", SMALL, *options, "--force").err
    (tmp_path / "sweep" / "mine.txt").write_text("")
    assert "no folder of an earlier sweep" in call("simulate", SMALL, *options).err


def test_one_run_at_another_load(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "run"
    found = record(call, "--policy", "fifo", "--load", "4", "--seed", "2", "--out", str(out))
    assert found["complete"] is True
    stated = json.loads((out / "metrics.json").read_text())
    assert (stated["trace"], stated["load"], stated["seed"]) == ("philly-small", 4.0, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--load", "0"), "expected numbers above 0"),
        (("--load", "fast"), "expected numbers above 0"),
        (("--seed", "a"), "expected whole numbers or ranges"),
        (("--seed", "3..1"), "the smaller one first"),
        (("--seed", "1,1"), "expected each value once"),
        (("--seed", "1..999999"), "at most 10,000 seeds"),
        (("--processes", "2"), "is for sweeps"),
    ],
)
def test_lists_that_cannot_be(call: Call, options: tuple[str, ...], words: str) -> None:
    ended = call("simulate", SMALL, "--policy", "fifo", *options)
    assert ended.code == 2
    assert words in " ".join(ended.err.split())


def _trace(folder: Path, *jobs: str) -> str:
    tables = {
        "regions": ["region", "r"],
        "clusters": ["cluster,region", "c,r"],
        "servers": ["server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb", "s0,c,k,h100,8,0,0", "s1,c,k,h100,8,0,0"],
        "submissions": ["tier,job,submitted_s,tasks,gpus,duration_s,max_tasks", *jobs],
    }
    folder.mkdir()
    (folder / "instance.toml").write_text('format = "mast-opt/1"\nkind = "job-trace"\nname = "never"\n')
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return str(folder)


def test_jobs_that_can_never_run_are_said_and_counted_apart(call: Call, tmp_path: Path) -> None:
    path = _trace(tmp_path / "trace", "1,huge,0,3,8,100,6", "1,small,1,1,8,10,1", "1,next,2,2,8,10,2")
    ended = call("simulate", path, "--policy", "mast", "--out", str(tmp_path / "run"))
    assert ended.code == 0
    err, out = " ".join(ended.err.split()), " ".join(ended.out.split())
    assert "no region can ever hold this job: it needs 24 GPUs of one type in one cluster" in err
    assert "column max_tasks: '6': mast does not look at it" in err
    assert "1 wait (1 can never run)" in out
    assert "1 can never run – – – – –" in out
    assert "wait 4.5 4.5" in out
    found = json.loads(call("simulate", path, "--policy", "mast", "--json").out)
    assert list(found["impossible_jobs"]) == ["huge"]
    assert {warning["column"] for warning in found["warnings"]} == {"max_tasks", "job"}
    assert found["metrics"]["impossible"] == 1
    refused = call("simulate", path, "--policy", "fifo")
    assert refused.code == 2
    assert "job huge" in refused.err


@pytest.mark.second_tier
def test_a_sweep_says_what_is_not_read_and_what_never_runs(call: Call, tmp_path: Path) -> None:
    path = _trace(tmp_path / "trace", "1,huge,0,3,8,100,6", "1,small,1,1,8,10,1")
    sweep = call("simulate", path, "--policy", "mast,pai", "--processes", "1")
    assert "pai does not look at it" in sweep.err
    found = json.loads(call("simulate", path, "--policy", "mast,pai", "--processes", "1", "--json").out)
    never = [row["mean"] for row in found["sweep"]["results"] if row["metric"] == "impossible"]
    assert never == [1, 1]


def test_a_trace_of_nothing_possible_has_no_wait(call: Call, tmp_path: Path) -> None:
    ended = call("simulate", _trace(tmp_path / "trace", "1,huge,0,3,8,100,"), "--policy", "mast")
    out = " ".join(ended.out.split())
    assert "wait – – – – –" in out
    assert "sum of all waits, s –" in out


def test_waits_that_go_on_are_marked_in_a_comparison(call: Call, tmp_path: Path) -> None:
    path = _trace(tmp_path / "trace", "1,small,1,2,8,100,", "1,next,2,2,8,10,")
    for name, until in (("cut", "50"), ("whole", "500")):
        assert call("simulate", path, "--policy", "mast", "--until", until, "--out", str(tmp_path / name)).code == 0
    ended = call("diff", str(tmp_path / "cut"), str(tmp_path / "whole"))
    assert "+: the job still waits at the end of the run" in " ".join(ended.out.split())
    found = json.loads(call("diff", str(tmp_path / "cut"), str(tmp_path / "whole"), "--json").out)
    assert [job["still_waits"] for job in found["changed_jobs"]] == [[True, False]]
