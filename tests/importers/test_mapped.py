"""Instances from tables of somebody's own by a mapping file, and what is wrong with one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import mast_opt
from mast_opt.core.errors import SourceError
from mast_opt.planner.importers.mapped.dumps import kubectl, prometheus, sinfo
from mast_opt.planner.importers.mapped.instance import preview
from mast_opt.planner.importers.notices import SourceWarning
from mast_opt.planner.io.faults import Faults
from tests.cli.conftest import call as call

DATA = Path(__file__).parent / "data"
MAPPING = """
kind = "data-placement"
name = "mine"
[rules]
days = 3
[sources]
nodes = { csv = "nodes.csv" }
db = { sqlite = "inventory.db" }
[tables.regions]
query = "select Site, sum(Cores) as cores from nodes group by Site order by Site"
columns = { region = "Site", cpu_cores = "cores", storage_tb = { value = 100 } }
[tables.gpu_supply]
query = "select Site as region, GPU as gpu_type, sum(Count) as gpus from nodes group by Site, GPU order by Site"
[tables.datasets]
database = "db"
query = "select name, size from files order by name"
columns = { dataset = "name", size_tb = { column = "size", times = 0.001 } }
[tables.replicas]
database = "db"
query = "select name as dataset, site as region from files"
[tables.workloads]
query = "select 'train' as workload, 0 as tier, 64 as cpu_cores"
[tables.gpu_demand]
query = "select 'train' as workload, 'H100' as gpu_type, 16 as gpus"
[tables.reads]
query = "select 'train' as workload, 'clicks' as dataset, 3.5 as tb_per_day"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text("Site,GPU,Count,Cores\neast,H100,48,1000\neast,H100,16,24\nwest,A100,32,512\n")
    database = sqlite3.connect(tmp_path / "inventory.db")
    database.execute("create table files (name text, size real, site text)")
    database.executemany("insert into files values (?, ?, ?)", [("clicks", 20_000, "east"), ("images", 12_500, "west")])
    database.commit()
    database.close()
    (tmp_path / "mapping.toml").write_text(MAPPING)
    return tmp_path


def test_files_and_a_database_become_an_instance(folder: Path) -> None:
    problem: Any = mast_opt.import_instance("tables", folder / "mapping.toml")
    assert problem.name == "mine"
    assert problem.days == 3
    assert problem.regions.labels == ("east", "west")
    np.testing.assert_array_equal(problem.regions.cpu_mcores, [1_024_000, 512_000])
    assert problem.regions.supply_mgpu[0, problem.gpu_types.index("H100")] == 64_000
    np.testing.assert_array_equal(problem.datasets.size_mb, [20_000_000, 12_500_000])
    np.testing.assert_array_equal(problem.datasets.stored, [[True, False], [False, True]])


def test_the_mapping_is_shown_before_it_is_used(folder: Path, call: Any) -> None:
    shown = preview([folder / "mapping.toml"])
    assert shown[0] == "mine (data-placement)"
    assert '    size_tb ← "size" × 0.001' in shown
    assert "    storage_tb ← always 100" in shown
    (folder / "inventory.db").unlink()
    ended = call("import", "tables", folder / "mapping.toml", folder / "out")
    assert ended.code == 2
    assert 'size_tb ← "size" × 0.001' in ended.err
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('kind = "data-placement"', 'kind = "data"', "column kind: found 'data'; expected one of: data-placement"),
        ("[tables.reads]", "[tables.read]", "did you mean 'reads'?"),
        ("size_tb = {", "size_gb = {", "did you mean 'size_tb'?"),
        ("times = 0.001", "times = -1", "expected a column, { column ="),
        ('column = "size"', 'column = "bytes"', "found 'bytes'; expected a column of the query: name, size"),
        ("select name, size from files", "select name, size from file", "no such table: file"),
        ('"select Site, sum', '"selec Site, sum', "a query that the source answers"),
        ('csv = "nodes.csv"', 'csv = "gone.csv"', "a csv file that can be read"),
        ('csv = "nodes.csv"', 'txt = "nodes.csv"', "one of csv, parquet, json, excel, kubectl"),
        ('database = "db"', 'database = "dbs"', "one of the databases of [sources]: db"),
        ('column = "size"', 'column = "name"', "a column of numbers, as it is multiplied"),
        ('name = "mine"', "title = 1", "expected some of: kind, name"),
        ("3.5 as tb_per_day", "-1 as tb_per_day", "found '-1'"),
        (
            'sqlite = "inventory.db"',
            'postgresql = "host=127.0.0.1 port=1 connect_timeout=1"',
            "a query that the source",
        ),
    ],
)
def test_what_is_wrong_is_named(folder: Path, before: str, after: str, words: str) -> None:
    assert before in MAPPING
    (folder / "mapping.toml").write_text(MAPPING.replace(before, after))
    with pytest.raises(SourceError) as raised:
        mast_opt.import_instance("tables", folder / "mapping.toml")
    assert words in str(raised.value)


def test_a_database_is_only_read(folder: Path) -> None:
    (folder / "mapping.toml").write_text(
        MAPPING.replace("select name, size from files order by name", "delete from files")
    )
    with pytest.raises(SourceError, match="readonly database"):
        mast_opt.import_instance("tables", folder / "mapping.toml")


NODE = {
    "kind": "Node",
    "metadata": {
        "name": "n1",
        "labels": {"topology.kubernetes.io/region": "east", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    },
    "spec": {},
    "status": {
        "allocatable": {"cpu": "95500m", "memory": "1056Gi", "nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
POD = {
    "kind": "Pod",
    "metadata": {"name": "p1", "namespace": "ml", "ownerReferences": [{"name": "train"}]},
    "spec": {
        "nodeName": "n1",
        "priority": 10,
        "containers": [
            {"resources": {"limits": {"nvidia.com/gpu": "4"}, "requests": {"cpu": "2"}}},
            {"resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}},
            {},
        ],
    },
    "status": {"phase": "Running"},
}


def test_kubectl(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [NODE, POD]}))
    faults = Faults()
    found = kubectl(path, faults)
    assert not faults
    assert found["nodes"].row(0) == ("n1", "east", None, "NVIDIA-H100-80GB-HBM3", 8.0, 95.5, 1056.0, True)
    assert found["pods"].row(0) == ("ml", "p1", "n1", "train", "Running", 10, 4.0, 2.5, 0.5)
    path.write_text(
        json.dumps({"items": [{"kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"cpu": "many"}}}]})
    )
    assert kubectl(path, faults)["nodes"].is_empty()
    assert "cpu is 'many'; expected an amount of Kubernetes" in str(faults.found[0])


def test_kubectl_of_a_real_api_server() -> None:
    """See ``data/README.md``. A node that is cordoned or not ready is not ready; a pod has its containers' sums."""
    faults = Faults()
    found = kubectl(DATA / "kubectl-1.32.json", faults)
    assert not faults
    assert found["nodes"].rows() == [
        ("cpu-1", "us-east", "us-east-a", None, 0.0, 15.89, 63.0, False),
        ("gpu-1", "eu-central", "eu-central-a", "NVIDIA-H100-80GB-HBM3", 8.0, 95.5, 1056.0, True),
        ("gpu-2", "eu-central", "eu-central-a", "NVIDIA-A100-SXM4-80GB", 8.0, 95.0, 1056.0, False),
    ]
    assert found["pods"].rows() == [
        ("ml", "clean-9-fghij", "cpu-1", "clean-9", "Running", 1000, 0.0, 4.25, 64.25),
        ("ml", "eval-1-abcde", None, "eval-1", "Pending", 1000, 2.0, 0.75, 64.25),
        ("ml", "train-0-x7k2p", "gpu-1", "train-0", "Running", 1000, 4.0, 4.25, 64.25),
    ]


def test_prometheus(tmp_path: Path) -> None:
    path, faults = tmp_path / "use.json", Faults()
    series = {"metric": {"__name__": "gpus", "job": "train"}, "values": [[0, "1"], [60, "2"], [120, "6"]]}
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}}))
    assert prometheus(path, faults)["series"].to_dicts() == [
        {"metric": "gpus", "job": "train", "mean": 3.0, "max": 6.0, "last": 6.0, "points": 3}
    ]
    assert not faults
    path.write_text(json.dumps({"status": "error", "error": "bad query"}))
    assert prometheus(path, faults) == {}
    assert "query_range" in str(faults.found[0])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"values": [[0, "NaN"], [60, "2"]]}, "1 point of 2 is nan"),
        ({"values": [[0, "+Inf"], [60, "-Inf"]]}, "2 points of 2 are inf"),
        ({"values": []}, "it has no numbers"),
        ({"values": None, "histograms": [[0, {"count": "1"}]]}, "it is a histogram"),
    ],
)
def test_a_series_without_figures_is_left_out_by_name(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    series = [
        {"metric": {"__name__": "use", "job": "a"}, "values": [[0, "1"]]},
        {"metric": {"__name__": "use", "job": "b"}, **change},
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}, "warnings": ["a store is away"]}
    (tmp_path / "use.json").write_text(json.dumps(answer))
    faults = Faults()
    with pytest.warns(SourceWarning) as found:
        frame = prometheus(tmp_path / "use.json", faults)["series"]
    assert not faults
    assert frame["job"].to_list() == ["a"]
    assert "Prometheus says: a store is away" in str(found[0].message)
    assert """'{metric="use", job="b"}': this series is left out: """ + why in str(found[1].message)


def test_a_label_that_is_called_like_a_figure_keeps_its_value(tmp_path: Path) -> None:
    series = {"metric": {"max": "yes", "job": "a"}, "values": [[0, "1"]]}
    (tmp_path / "use.json").write_text(
        json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}})
    )
    row = prometheus(tmp_path / "use.json", Faults())["series"].row(0, named=True)
    assert (row["label_max"], row["max"]) == ("yes", 1.0)


SINFO = {
    "nodes": {"nodes": ["g1", "g2"]},
    "node": {"state": ["IDLE"]},
    "partition": {"name": "gpu"},
    "cluster": "main",
    "gres": {"total": "gpu:a100:8(S:0-1)"},
    "cpus": {"maximum": 128},
    "memory": {"maximum": 1_048_576},
}


def test_sinfo(tmp_path: Path) -> None:
    path, faults = tmp_path / "sinfo.json", Faults()
    path.write_text(json.dumps({"sinfo": [SINFO]}))
    frame = sinfo(path, faults)["nodes"]
    assert frame.height == 2
    assert frame.row(0) == ("g1", "gpu", "main", "a100", 8.0, 128.0, 1024.0, "IDLE", True, "g1")
    path.write_text("[")
    assert sinfo(path, faults) == {}
    assert "JSON" in str(faults.found[0])
    assert isinstance(frame, pl.DataFrame)


def test_what_slurm_22_05_prints() -> None:
    faults = Faults()
    frame = sinfo(DATA / "sinfo-22.05.json", faults)["nodes"]
    assert not faults
    assert frame.rows() == [
        ("e0", "east", None, "h100", 8.0, 16.0, 62.5, "MIXED", True, "e0"),
        ("e1", "east", None, "h100", 8.0, 16.0, 62.5, "IDLE", True, "e1"),
        ("w0", "west", None, "a100", 8.0, 16.0, 62.5, "MIXED", True, "w0"),
        ("w1", "west", None, "a100", 8.0, 16.0, 62.5, "IDLE", True, "w1"),
    ]


def test_what_prometheus_answers() -> None:
    faults = Faults()
    rows = prometheus(DATA / "prometheus-range.json", faults)["series"].to_dicts()
    assert not faults
    assert [(row["workload"], row["region"], row["mean"], row["max"], row["points"]) for row in rows] == [
        ("ranking", "east", 5.2, 6.0, 5),
        ("vision", "west", 16.0, 16.0, 5),
    ]
    for name in ("instant", "error"):
        assert prometheus(DATA / f"prometheus-{name}.json", faults) == {}
    assert len(faults.found) == 2
    assert all("query_range" in str(fault) for fault in faults.found)


def test_slurm_and_prometheus_together_become_an_instance(tmp_path: Path) -> None:
    mapping = f"""
kind = "data-placement"
[sources]
cluster = {{ sinfo = "{(DATA / "sinfo-22.05.json").as_posix()}" }}
use = {{ prometheus = "{(DATA / "prometheus-range.json").as_posix()}" }}
[tables.regions]
query = '''select partition as region, 10 as storage_tb, sum(cpu_cores) as cpu_cores from cluster_nodes
    group by partition order by partition'''
[tables.gpu_supply]
query = '''select partition as region, gpu_type, sum(gpus) as gpus from cluster_nodes
    group by partition, gpu_type order by partition'''
[tables.datasets]
query = "select 'clicks' as dataset, 1 as size_tb"
[tables.replicas]
query = "select 'clicks' as dataset, 'east' as region"
[tables.workloads]
query = "select workload, 0 as tier, 4 as cpu_cores from use_series"
[tables.gpu_demand]
query = "select workload, case region when 'east' then 'h100' else 'a100' end as gpu_type, max as gpus from use_series"
[tables.reads]
query = "select workload, 'clicks' as dataset, 1 as tb_per_day from use_series"
"""
    (tmp_path / "mapping.toml").write_text(mapping)
    problem = mast_opt.import_instance("tables", tmp_path / "mapping.toml")
    assert isinstance(problem, mast_opt.DataPlacement)
    assert problem.regions.supply_mgpu.sum() == 32_000
    solution = mast_opt.solve(problem)
    assert solution.verdict is not None
    assert solution.verdict.metrics["overload_gpus"] == 0
