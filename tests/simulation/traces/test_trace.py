"""Reading and writing of job traces: what is wrong is named by file, row and column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import InputError, InstanceError, SourceError, UsageError
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.simulation.traces.philly import PHILLY
from mast_opt.live.simulation.traces.surroundings import Dataset, Happening, Surroundings
from mast_opt.live.simulation.traces.trace import read_trace, write_trace

HEADER = 'format = "mast-opt/1"\nkind = "job-trace"\nname = "t"\n'
TABLES = {
    "regions": "region\na\nb\n",
    "clusters": "cluster,region\nc,a\nd,b\n",
    "servers": "server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb\ns,c,k,h100,8,64,512\nt,d,k,,0,1,1\n",
    "submissions": "job,submitted_s,tier,tasks,gpus,duration_s,preemptible,min_tasks,home_region\n"
    "y,7.5,2,1,1,,,,\nx,0.25,0,4,8,60,true,2,a\nz,7.5,1,1,0.5,1,,,\n",
    "job_gpu_types": "job,gpu_type,gpus\nx,h100,\nz,h100,0.25\n",
    "job_datasets": "job,dataset\nz,e\nz,f\n",
    "replicas": "dataset,region\ne,a\ne,b\nf,a\n",
    "quotas": "tenant,gpus,gpu_type\nteam,4,\nteam,2,h100\n",
}


def written(folder: Path, **changed: str) -> Path:
    (folder / "instance.toml").write_text(changed.pop("header", HEADER))
    for name, text in {**TABLES, **changed}.items():
        if text:
            (folder / f"{name}.csv").write_text(text)
    return folder


def test_a_trace(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path))
    jobs = trace.submissions
    assert (jobs.labels, jobs.submitted_ms.tolist()) == (("x", "y", "z"), [250, 7500, 7500])
    assert jobs.spec(0) == JobSpec(
        tier=0, tasks=4, mgpu=8000, gpu_types={"h100": 8000}, preemptible=True, checkpoint_ms=3_600_000,
        restart_ms=60_000, duration_ms=60_000, home_region="a", min_tasks=2,
    )  # fmt: skip
    assert jobs.spec(1) == JobSpec(tier=2, preemptible=True, checkpoint_ms=3_600_000, restart_ms=60_000)
    assert (jobs.gpu_types[2], jobs.datasets) == ({"h100": 250}, {2: ("e", "f")})
    assert trace.replicas == {"e": ("a", "b"), "f": ("a",)}
    assert trace.quotas == Quotas({"team": {None: Quota(4000), "h100": Quota(2000)}})
    assert [(server.name, server.region, server.rack, server.gpu_type) for server in trace.servers] == [
        ("s", "a", "c/k", "h100"),
        ("t", "b", "d/k", "none"),
    ]
    assert [server.name for server in trace.servers_of["b"]] == ["t"]


def test_optional_tables(tmp_path: Path) -> None:
    missing = dict.fromkeys(("job_gpu_types", "job_datasets", "replicas", "quotas"), "")
    trace = read_trace(written(tmp_path, **missing))
    assert not trace.quotas
    assert (trace.replicas, trace.submissions.gpu_types, trace.submissions.datasets) == ({}, {}, {})


SURROUNDINGS = {
    "regions": "region,storage_tb,ingress_tb_per_day\na,10,\nb,2.5,0.5\n",
    "datasets": "dataset,size_tb,namespace,created_s\ne,1,ads,\nf,0.25,,3600\n",
    "links": "src,dst,tb_per_day\na,b,3\n",
    "switchboards": "server,switchboard\nt,msb\n",
    "happenings": "at_s,what,name,value\n9,switchboard_up,msb,\n2,switchboard_down,msb,\n"
    "3,quota,team,1.5\n4,quota,x,\n",
}


def test_surroundings(tmp_path: Path) -> None:
    found = read_trace(written(tmp_path, **SURROUNDINGS)).surroundings
    assert found.datasets == {"e": Dataset(1_000_000, "ads"), "f": Dataset(250_000, "", 3_600_000)}
    assert (found.storage_mb, found.ingress_mb_per_day) == ({"a": 10_000_000, "b": 2_500_000}, {"b": 500_000})
    assert (found.links, found.switchboards) == ({("a", "b"): 3_000_000}, {"t": "msb"})
    assert found.happenings == (
        Happening(2000, "switchboard_down", "msb"),
        Happening(3000, "quota", "team", 1500),
        Happening(4000, "quota", "x", None),
        Happening(9000, "switchboard_up", "msb"),
    )
    assert [(one.of, one.down) for one in found.happenings[:2]] == [("switchboard", True), ("quota", False)]


def test_a_trace_without_surroundings(tmp_path: Path) -> None:
    assert read_trace(written(tmp_path)).surroundings == Surroundings()


Damage = tuple[dict[str, str], str]
SUBMISSIONS = TABLES["submissions"]
FAULTS: dict[str, Damage] = {
    "kind": (
        {"header": HEADER.replace("job-trace", "job-placement")},
        "kind: found 'job-placement'; expected kind = 'job-",
    ),
    "key": (
        {"header": HEADER + "[rules]\n"},
        "instance.toml: rules: found 'rules'; expected one of the keys format, kind,",
    ),
    "table": ({"velocities": "a\n1\n"}, "velocities.csv: expected a known table"),
    "column": ({"submissions": SUBMISSIONS.replace("tier", "teir")}, "submissions.csv, column teir"),
    "time": (
        {"submissions": SUBMISSIONS.replace("0.25", "-1")},
        "submissions.csv, row 2, column submitted_s: found '-1'",
    ),
    "duration": (
        {"submissions": SUBMISSIONS.replace("8,60", "8,0")},
        "submissions.csv, row 2, column duration_s: found '0'",
    ),
    "gpus": (
        {"submissions": SUBMISSIONS.replace("1,0.5", "1,1.5")},
        "submissions.csv, row 3, column gpus: found '1500'; ex",
    ),
    "twice": ({"submissions": SUBMISSIONS.replace("z,", "y,")}, "submissions.csv, row 3"),
    "tasks": (
        {"submissions": SUBMISSIONS.replace(",2,a", ",5,a")},
        "row 2, column min_tasks: found '5'; expected no more than",
    ),
    "region": (
        {"submissions": SUBMISSIONS.replace(",2,a", ",2,q")},
        "submissions.csv, row 2, column home_region: found 'q'",
    ),
    "server": (
        {"servers": TABLES["servers"].replace("h100,8", "h100,8.5")},
        "servers.csv, row 1, column gpus: found '8500'",
    ),
    "dataset": (
        {"datasets": "dataset,size_tb\ne,1\n", "replicas": "dataset,region\ne,a\n"},
        "job_datasets.csv, row 2, column dataset: found 'f'; expected a dataset of the table datasets",
    ),
    "nowhere": (
        {"datasets": "dataset,size_tb\ne,1\nf,1\ng,1\n"},
        "datasets.csv, row 3, column dataset: found 'g'; expected a dataset with a region in replicas",
    ),
    "link": ({"links": "src,dst,tb_per_day\na,a,1\n"}, "links.csv, row 1, column dst: found 'a'; expected another"),
    "happening": (
        {"happenings": "at_s,what,name,value\n1,server_down,s,\n2,region_down,s,\n"},
        "happenings.csv, row 2, column name: found 's'; expected a region of the trace",
    ),
    "value": (
        {"happenings": "at_s,what,name,value\n1,server_down,s,4\n"},
        "happenings.csv, row 1, column value: found 'a value'; expected no value",
    ),
    "nothing": ({"submissions": "job,submitted_s,tier,tasks,gpus\n"}, "submissions.csv: expected at least one row"),
}


@pytest.mark.parametrize(("changed", "words"), FAULTS.values(), ids=list(FAULTS))
def test_faults(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    with pytest.raises(InstanceError) as caught:
        read_trace(written(tmp_path, **changed))
    assert words in str(caught.value)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="there is nothing at this path"):
        read_trace(tmp_path / "none")


PHILLY_CSV = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-01 00:00:10,5,12,0,v
2017-10-01 00:00:00,7,1,0,v
2017-09-30 23:59:59,7,1,0,v
2017-10-01 00:00:00,8,8,0,w
2017-10-01 00:00:00,8,8,0,elsewhere
"""


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    (tmp_path / "philly.csv").write_text(PHILLY_CSV)
    (tmp_path / "vc.csv").write_text("vc,node num\nv,2\nw,1\n")
    return [tmp_path / "philly.csv", tmp_path / "vc.csv"]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_philly(tmp_path: Path, sources: list[Path], format: str) -> None:
    found = PHILLY.run(sources, {}, 0)
    write_trace(tmp_path / "out", found.name, found.provenance, found.tables, format=format)
    trace = read_trace(tmp_path / "out")
    jobs = trace.submissions
    assert [server.name for server in trace.servers] == ["v-0", "v-1", "w-0"]
    assert (jobs.submitted_ms.tolist(), jobs.home_region) == ([0, 0, 10_000], ("v", "w", "v"))
    assert (jobs.tasks.tolist(), jobs.mgpu.tolist()) == ([1, 1, 3], [1000, 8000, 4000])
    assert (jobs.restart_ms.tolist(), jobs.checkpoint_ms.tolist()) == ([7000, 30_000, 60_000], [0, 0, 0])
    assert jobs.duration_ms.tolist() == [7000, 8000, 5000]
    assert np.all(jobs.preemptible)
    with pytest.raises(InputError, match="exists already"):
        write_trace(tmp_path / "out", found.name, found.provenance, found.tables)


def _twice(sources: list[Path]) -> None:
    sources[1].write_text("vc,node num\nv,2\nv,1\n")


def _none(sources: list[Path]) -> None:
    sources[1].write_text("vc,node num\nq,2\n")


@pytest.mark.parametrize(("damage", "words"), [(_twice, "each virtual cluster once"), (_none, "jobs of these virtual")])
def test_philly_that_cannot_be_used(sources: list[Path], damage: Callable[[list[Path]], None], words: str) -> None:
    damage(sources)
    with pytest.raises(SourceError, match=words):
        PHILLY.run(sources, {}, 0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"since": "yesterday"}, "setting since is 'yesterday'; expected a time"),
        ({"until": "2017-09-01"}, "setting until is 2017-09-01; expected a time after"),
        ({"gpus": "0"}, "setting gpus is 0"),
    ],
)
def test_settings_of_philly(sources: list[Path], settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        PHILLY.run(sources, settings, 0)


MODELS = {
    "speeds": "model,gpu_type,tasks,steps_per_s\nlm,h100,4,8\nlm,k80,4,2.5\nlm,p100,4,0\nlm,h100,1,3\n",
    "pair_speeds": "model,other,gpu_type,tasks,steps_per_s\nlm,rl,h100,4,6\nrl,lm,h100,4,1\n",
    "submissions": "job,submitted_s,tier,tasks,gpus,duration_s,model,steps\n"
    "x,0,0,4,1,,lm,100\ny,1,0,4,1,60,lm,\nz,2,0,1,1,60,,\n",
    "job_gpu_types": "job,gpu_type,gpus\ny,k80,2\ny,p100,\n",
    "job_datasets": "",
}


def test_models(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, **MODELS))
    jobs, speeds = trace.submissions, trace.speeds
    assert jobs.duration_ms.tolist() == [12_500, 60_000, 60_000]  # 100 steps at 8 a second
    assert jobs.gpu_types == {0: {"h100": 1000, "k80": 1000}, 1: {"k80": 2000}}
    x, z = jobs.spec(0), jobs.spec(2)
    assert (x.model, z.model) == ("lm", "")
    assert [speeds.rate(x, kind) for kind in ("h100", "k80", "p100", "none")] == [1_000_000, 312_500, 0, 0]
    assert speeds.rate(z, "none") == 1_000_000
    assert speeds.rate(x, "h100", JobSpec(model="rl", tasks=4)) == 750_000
    assert trace.rate()("x", "s", "", 4) == 1_000_000


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x,0,0,4,1,,,7", "row 1, column steps: found '7'; expected no steps for a job without a model"),
        ("x,0,0,4,1,9,lm,7", "row 1, column steps: found '7'; expected steps or duration_s, not both"),
        ("x,0,0,2,1,9,lm,", "row 1, column model: found 'lm'; expected a model of the table speeds"),
        ("x,0,0,4,1,9,rl,", "row 1, column model: found 'rl'; expected a model of the table speeds"),
    ],
)
def test_faults_of_models(tmp_path: Path, row: str, words: str) -> None:
    header = MODELS["submissions"].partition("\n")[0]
    with pytest.raises(InstanceError) as caught:
        read_trace(written(tmp_path, **{**MODELS, "submissions": f"{header}\n{row}\n", "job_gpu_types": ""}))
    assert words in str(caught.value)
