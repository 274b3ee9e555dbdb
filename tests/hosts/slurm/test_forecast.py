"""Starts and victims of jobs, on texts that Slurm 22.05.8 printed (``real_slurm.occupied``), shortened to what is read.

a0 has 12 CPUs and 4 GPUs left, a1 4 and 8, a2 14 and 4; a3 is another's alone for 20 minutes; h0 and h1 have CPUs and
no GPUs for 90 minutes, h2 and h3 two GPUs each. A job waits for all of a0 to a3, from an hour on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.slurm.forecast import forecast
from mast_opt.live.hosts.slurm.reading import PROGRAMS, Cluster, cluster_of, texts_of
from mast_opt.live.hosts.slurm.request import ask_of

DATA = Path(__file__).parent / "data"
NOW_S = 1795943705
TEXTS = {name: (DATA / name).read_text() for name in PROGRAMS if (DATA / name).exists()}
BUSY = cluster_of(TEXTS, NOW_S)


def changed(name: str, *changes: tuple[str, str]) -> Cluster:
    """The cluster with other text in one file."""
    text = TEXTS.get(name, "")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return cluster_of({**TEXTS, name: text}, NOW_S)


def first(
    options: str, cluster: Cluster = BUSY, priority: int | None = None
) -> tuple[int, str, tuple[int, ...]] | None:
    """Minutes from now, nodes and victims of the best start; None for never."""
    starts = forecast(cluster, ask_of(["-p", "batch", *options.split()]), priority).starts
    return (round((starts[0].at_s - NOW_S) / 60), " ".join(starts[0].nodes), starts[0].stops) if starts else None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-n 1 -t 10", (0, "a2", ())),
        ("-n 12 -t 30", (0, "a2", ())),
        ("-p batch,hopper -N 2 --gres=gpu:h100:2 -t 10", (0, "h2 h3", ())),
        ("-p hopper -N 1 --gpus-per-node=h100:4 -t 60", (90, "h0", ())),
        ("-N 1 --exclusive -t 10", (20, "a3", ())),
        ("-N 1 --exclusive -t 90", (90, "h0", ())),
        ("-N 2 -n 8 --gres=gpu:a100:4 -t 30", (0, "a0 a1", ())),
        ("-n 2 --gpus-per-task=2 -c 2 -t 20", (0, "a2", ())),
        ("-G a100:8 -n 1 -t 15", (0, "a1", ())),
        ("-N 1 --mem=100G -t 30", (0, "h0", ())),
        ("-C h100 -n 20 -t 30", (0, "h0 h1", ())),
        ("-p urgent -N 1 --exclusive", (0, "a0", (1,))),
        ("-p urgent -N 3 --gres=gpu:a100:6 -t 20", (0, "a0 a1 a3", (1, 5))),
        ("-p urgent -N 8 --exclusive -t 30", (0, "a0 a1 a2 a3 h0 h1 h2 h3", (1, 2, 3, 4, 5, 6))),
        ("-N 5 -n 5 --gres=gpu:h100:1", None),
    ],
)
def test_jobs_start_as_slurm_really_started_them(options: str, expected: object) -> None:
    assert first(options) == expected


def test_nodes_are_kept_for_the_job_that_waits() -> None:
    assert first("-n 1 -t 70 -C a100") == (120, "a0", ())
    assert first("-n 1 -t 70 -C a100", priority=2**32) == (0, "a2", ())


def test_nodes_that_cannot_be_had() -> None:
    drained = json.loads(TEXTS["sinfo.json"])
    drained["nodes"][2]["state_flags"] = ["DRAIN"]
    assert first("-n 1 -t 10", cluster_of({**TEXTS, "sinfo.json": json.dumps(drained)}, NOW_S)) == (0, "a0", ())
    assert first("-n 1 -t 10 -x a2") == (0, "a0", ())
    assert first("-n 1 -t 10 -w h3") == (0, "h3", ())


def test_time_limits_and_partitions_that_start_nothing() -> None:
    found = forecast(BUSY, ask_of(["-t", "1800", "-n", "1"]))
    assert [one.partition for one in found.starts] == ["batch"]
    assert found.reasons == (
        "hopper: 1,800 minutes asked for, partition hopper allows 1,440",
        "urgent: 1,800 minutes asked for, partition urgent allows 240",
    )
    stopped = changed("partitions.txt", ("State=UP", "State=DRAIN"))
    assert forecast(stopped, ask_of(["-n", "1"])).starts == ()


def test_the_smallest_switch_or_block_is_named_and_preferred() -> None:
    ask = ask_of(["-p", "hopper", "-N", "2"])
    (start,) = forecast(BUSY, ask).starts
    assert (start.nodes, start.within) == (("h0", "h1"), "s2")
    blocks = "BlockName=b1 BlockIndex=0 Nodes=h[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=h[0,3] BlockSize=2\n"
    (start,) = forecast(cluster_of({**TEXTS, "topology.txt": blocks}, NOW_S), ask).starts
    assert (start.nodes, start.within) == (("h1", "h2"), "b1")
    assert forecast(cluster_of({**TEXTS, "topology.txt": ""}, NOW_S), ask).starts[0].within == ""


def test_who_may_be_stopped() -> None:
    job = "-p urgent -N 1 --exclusive"
    assert first(job, changed("config.txt", ("00:00:00", "01:00:00"))) == (20, "a3", ())
    assert first(job, changed("partitions.txt", ("PreemptMode=REQUEUE", "PreemptMode=OFF"))) == (20, "a3", ())
    assert first(job, changed("config.txt", ("preempt/partition_prio", "preempt/none"))) == (20, "a3", ())
    qos = {
        **TEXTS,
        "config.txt": TEXTS["config.txt"].replace("partition_prio", "qos"),
        "qos.txt": "low|1||\nhigh|9|low|2:00:00\n",
        "squeue.json": TEXTS["squeue.json"].replace('"partition":', '"qos":"low","partition":'),
    }
    cluster = cluster_of(qos, NOW_S)
    assert first("-N 1 --exclusive -t 30 --qos high", cluster) == (0, "a0", (1,))
    assert first("-N 1 --exclusive -t 30 --qos low", cluster) == (20, "a3", ())
    assert first("-N 1 --exclusive -t 180 --qos high", cluster) is None
    with pytest.raises(InputError, match="qos other"):
        first("-n 1 --qos other", cluster)


def test_a_core_is_as_many_cpus_as_it_has_threads() -> None:
    two = json.loads(TEXTS["sinfo.json"])
    for node in two["nodes"]:
        node["threads"] = 2
    held = cluster_of({**TEXTS, "sinfo.json": json.dumps(two)}, NOW_S).running
    assert [(a.amounts[:, 0] == 2 * b.amounts[:, 0]).all() for a, b in zip(held, BUSY.running)] == [True] * 6


def test_newer_records_of_jobs_read_the_same() -> None:
    jobs = json.loads(TEXTS["squeue.json"])["jobs"]

    def number(value: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": value}

    for job in jobs:
        for key, value in job.items():
            if isinstance(value, int) and not isinstance(value, bool) and key != "job_id":
                job[key] = number(value)
        job["job_state"] = [job["job_state"]]
        if "job_resources" in job:
            job["job_resources"] = {"nodes": {"allocation": [
                {
                    "name": one["nodename"],
                    "memory": {"allocated": one["memory_allocated"]},
                    "cpus": {"count": len(one["sockets"])},
                }
                for one in job["job_resources"]["allocated_nodes"]
            ]}}  # fmt: skip
    newer = cluster_of({**TEXTS, "squeue.json": json.dumps({"jobs": jobs})}, NOW_S)
    for mine, other in zip(newer.running, BUSY.running, strict=True):
        assert (mine.amounts == other.amounts).all()
        assert (mine.number, mine.end_s) == (other.number, other.end_s)
    assert newer.waiting == BUSY.waiting


def test_jobs_that_wait_for_something_else_are_counted_apart_and_arrays_as_often_as_they_have_tasks() -> None:
    held = changed("squeue.json", ('"state_reason":"Resources"', '"state_reason":"JobHeldUser"'))
    assert (len(held.waiting), held.idle_waiting) == (0, 1)
    array = changed(
        "squeue.json", ('"state_reason":"Resources"', '"state_reason":"Resources","array_task_string":"1-3,7%2"')
    )
    assert (len(array.waiting), array.idle_waiting) == (4, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [("-p x", "partition x"), ("-w z9", "node z9"), ("--gres=gpu:b200:1", "GPU type b200"), ("-C [a|b]", "constraint")],
)
def test_what_the_cluster_does_not_have(options: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        first(options)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"config.txt", "topology.txt"}))
def test_texts_that_slurm_does_not_print(name: str) -> None:
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        cluster_of({**TEXTS, name: '{"jobs": 3}\nNodes=a' if name != "qos.txt" else "x"}, NOW_S)


def test_a_folder_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sinfo --all --Node --json prints it"):
        texts_of(tmp_path)
    assert texts_of(DATA)[0] == TEXTS
