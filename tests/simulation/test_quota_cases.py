"""Quotas under the policy ``mast``, by hand: who starts when, and who is stopped for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.core.errors import InstanceError
from mast_opt.live.loop import events as ev
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import read_trace

HEADER = 'format = "mast-opt/1"\nkind = "job-trace"\nname = "case"\n'
JOBS = "job,submitted_s,tier,tasks,gpus,duration_s,tenant,preemptible,checkpoint_s\n"
TYPED = "a,0,0,1,8,1000,A,true,3600\nb,100,1,1,8,100,B,true,3600\n"
INVERTED = "small,0,2,1,1,100,A,true,3600\nother,0,2,1,7,100,B,true,3600\nlarge,1,0,1,8,10,A,true,3600\n"
AGAIN = (
    "A,0,0,1,4,1000,t,false,3600\nB,1,0,1,4,3000,t,false,3600\nC,100,1,1,4,500,u,true,3600\n"
    "D,1200,1,1,8,100,u,true,3600\nE,9000,2,1,1,10,u,true,3600\n"
)
Starts = dict[str, list[int]]


def run(folder: Path, jobs: str, quotas: str) -> tuple[Starts, Starts]:
    """Job → seconds at which it started, and at which it was stopped, on one server of 8 GPUs."""
    tables = {
        "instance.toml": HEADER,
        "regions.csv": "region\nr\n",
        "clusters.csv": "cluster,region\nc,r\n",
        "servers.csv": "server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb\ns,c,b,h100,8,64,512\n",
        "submissions.csv": JOBS + jobs,
        "quotas.csv": quotas,
    }
    for name, text in tables.items():
        (folder / name).write_text(text)
    started, stopped = Starts(), Starts()
    for stored in run_trace(read_trace(folder), "mast").events():
        if isinstance(stored.event, ev.Started | ev.Stopped):
            found = started if isinstance(stored.event, ev.Started) else stopped
            found.setdefault(stored.event.job, []).append(stored.at_ms // 1000)
    return started, stopped


@pytest.mark.parametrize("quotas", ["tenant,gpus,gpu_type\nA,4,h100\n", "tenant,gpus\nA,4\n"])
def test_a_quota_of_a_type_is_one_as_that_of_all_types_is(tmp_path: Path, quotas: str) -> None:
    started, stopped = run(tmp_path, TYPED, quotas)
    assert started == {"a": [0, 200], "b": [100]}
    assert stopped == {"a": [100]}


def test_own_less_important_work_is_over_the_quota_first(tmp_path: Path) -> None:
    """The large job of tenant A is exactly as large as its quota, while A runs a less important one."""
    started, _ = run(tmp_path, INVERTED, "tenant,gpus\nA,8\nB,8\n")
    assert started["large"] == [1]


def test_a_job_that_its_quota_covers_again_is_not_stopped(tmp_path: Path) -> None:
    """B borrows and is stopped for C; once A has ended, the quota covers it, and D waits until it ends."""
    started, stopped = run(tmp_path, AGAIN, "tenant,gpus\nt,4\n")
    assert stopped == {"B": [100]}
    assert started == {"A": [0], "B": [1, 600], "C": [100], "D": [3660], "E": [9000]}


LENT = "a,0,0,1,4,200,A,true,0\nb,1,1,1,3,100,A,true,0\nc,2,1,1,2,300,A,true,0\nown,100,1,1,4,50,B,true,0\n"


def test_a_tree_of_quotas_in_a_trace(tmp_path: Path) -> None:
    """A holds 4 GPUs of its own and borrows 2 of B, never 3; B takes back what it has lent."""
    tree = "tenant,gpus,parent,borrowing_limit,lending_limit\nlab,0,,,\nA,4,lab,2,\nB,4,lab,,3\n"
    started, stopped = run(tmp_path, LENT, tree)
    assert started == {"a": [0], "b": [200], "c": [2, 150], "own": [100]}
    assert stopped == {"c": [100]}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("A,4,B,,\nB,4,A,,\n", "no circle: A below B below A"),
        ("A,4,lab,,\n", "a quota of its own"),
        ("A,4,,,5\n", "at most the 4 GPUs of the quota"),
    ],
)
def test_trees_that_contradict_themselves_are_refused(tmp_path: Path, rows: str, words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        run(tmp_path, LENT, f"tenant,gpus,parent,borrowing_limit,lending_limit\n{rows}")


def test_a_quota_that_changes_keeps_its_limits(tmp_path: Path) -> None:
    (tmp_path / "happenings.csv").write_text("at_s,what,name,value\n10,quota,A,1\n")
    tree = "tenant,gpus,parent,borrowing_limit,lending_limit\nlab,0,,,\nA,4,lab,2,2\nB,4,lab,,\n"
    run(tmp_path, LENT, tree)
    events = [stored.event for stored in run_trace(read_trace(tmp_path), "mast").events()]
    assert [one for one in events if isinstance(one, ev.QuotaSet)] == [ev.QuotaSet("A", 1000, "", 2000, 1000)]
