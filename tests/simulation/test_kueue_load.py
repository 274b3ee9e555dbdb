"""One cohort of Kueue's scheduler performance test (``baseline``) under ``mast``: Kueue's own rules are the answer.

The load is made as in ``test/performance/scheduler/configs`` of kubernetes-sigs/kueue (commit ff69552e): six queues of
20 CPUs that may borrow 100, in each of which every class of workloads is a stream with a constant interval. Waits are
those of Kueue's rules without any latency: the queue's own quota first, then priority and age; who borrows is stopped.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import read_trace

CLASSES = {"large": (0, 20, 1000, 1200, 50), "medium": (1, 5, 500, 500, 100), "small": (2, 1, 200, 100, 350)}
"""Class → tier, CPUs, time that it runs, interval, workloads of each queue; times in milliseconds."""
QUEUES = range(6)


def write_load(folder: Path, checkpoint_s: int) -> None:
    """The load as a trace: a CPU is a GPU, a queue a tenant, the cohort one server and a group of tenants."""
    rows = sorted(
        ((number + 1) * every_ms, kind, queue, number)
        for kind, (_, _, _, every_ms, each) in CLASSES.items()
        for queue in QUEUES
        for number in range(each)
    )
    jobs = ["job,submitted_s,tier,tasks,gpus,duration_s,preemptible,checkpoint_s,restart_s,tenant"]
    for at_ms, kind, queue, number in rows:
        tier, cpus, run_ms, _, _ = CLASSES[kind]
        jobs.append(
            f"{kind}-{queue}-{number},{at_ms / 1000},{tier},1,{cpus},{run_ms / 1000},true,{checkpoint_s},0,q{queue}"
        )
    tables = {
        "instance.toml": 'format = "mast-opt/1"\nkind = "job-trace"\nname = "kueue"\n',
        "regions.csv": "region\nr\n",
        "clusters.csv": "cluster,region\nc,r\n",
        "servers.csv": "server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb\ns,c,b,cpu,120,0,0\n",
        "quotas.csv": "tenant,gpus,parent,borrowing_limit\ncohort,0,,\n"
        + "".join(f"q{n},20,cohort,100\n" for n in QUEUES),
        "submissions.csv": "\n".join([*jobs, ""]),
    }
    for name, text in tables.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("checkpoint_s", "expected", "end_s"),
    [
        (3600, {"large": (0, 0, 0), "medium": (38.673, 41.025, 1176), "small": (54.225, 54.229, 6)}, 76.8),
        (0, {"large": (0, 0, 0), "medium": (10.921, 12.789, 954), "small": (44.670, 44.848, 12)}, 67.0),
    ],
)
def test_waits_are_those_of_the_rules_of_kueue(
    tmp_path: Path, checkpoint_s: int, expected: dict[str, tuple[float, float, int]], end_s: float
) -> None:
    """Mean wait until the first and the last start, and stops, of each class. Work that is stopped begins again, as in
    Kueue, or (``checkpoint_s`` 0) loses nothing, so that the same load is 9.8 s shorter."""
    write_load(tmp_path, checkpoint_s)
    came, first, last, stops, ended = dict[str, int](), dict[str, int](), dict[str, int](), Counter[str](), 0
    for one in run_trace(read_trace(tmp_path), "mast").events():
        if isinstance(one.event, ev.Submitted):
            came[one.event.job] = one.at_ms
        elif isinstance(one.event, ev.Started):
            first.setdefault(one.event.job, one.at_ms)
            last[one.event.job] = one.at_ms
        elif isinstance(one.event, ev.Stopped):
            stops[one.event.job.split("-")[0]] += 1
        elif isinstance(one.event, ev.Finished):
            ended = one.at_ms
    for kind, (_, _, _, _, each) in CLASSES.items():
        names = [name for name in came if name.startswith(kind)]
        assert len(names) == each * len(QUEUES)
        waits = (sum(when[name] - came[name] for name in names) / len(names) / 1000 for when in (first, last))
        assert (*(round(wait, 3) for wait in waits), stops[kind]) == expected[kind]
    assert ended == 1000 * end_s
