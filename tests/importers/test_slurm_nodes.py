"""Nodes as Slurm prints them: GPU types, what is reserved, and what is down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.planner.importers.mapped.dumps import sinfo
from mast_opt.planner.importers.notices import SourceWarning
from mast_opt.planner.importers.slurm_nodes import gpus_of, node_in
from mast_opt.planner.io.faults import Faults

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gpu:a100:4(S:0-1),gpu:v100:2,shard:a100:8", {"a100": 4, "v100": 2}),
        ("gpu:tesla:2(S:0),gpu:kepler:2(S:1)", {"tesla": 2, "kepler": 2}),
        ("gpu:(null):4", {"gpu": 4}),
        ("gpu:(null):4(S:0,2)", {"gpu": 4}),
        ("gpu:4", {"gpu": 4}),
        ("gpu", {"gpu": 1}),
        ("gpu:a100", {"a100": 1}),
        ("gpu:a100:2(S:0),gpu:a100:2(S:1)", {"a100": 4}),
        ("gpu:nvidia_h200_nvl_4g.71gb:2", {"nvidia_h200_nvl_4g.71gb": 2}),
        ("gpu:a100:0,gpu:t4:2K", {"t4": 2048}),
        ("gpumem:80,craynetwork:4", {}),
        ("(null)", {}),
        ("", {}),
    ],
)
def test_generic_resources(text: str, wanted: dict[str, int]) -> None:
    assert gpus_of(text) == wanted


def test_what_slurm_24_11_prints() -> None:
    """Two types on n3; n4 keeps a core of two threads and 2,000 MB for itself, as sinfo and scontrol say it alike."""
    faults = Faults()
    rows = {name: sinfo(DATA / f"{name}-24.11.json", faults)["nodes"] for name in ("sinfo", "scontrol")}
    assert not faults
    columns = ["node", "partition", "gpu_type", "gpus", "cpu_cores", "memory_gib", "available", "host"]
    assert (
        rows["sinfo"]
        .select(columns)
        .sort("node", "partition")
        .equals(rows["scontrol"].select(columns).sort("node", "partition"))
    )
    found = {row["node"]: row for row in rows["scontrol"].filter(partition="mixed").rows(named=True)}
    assert {name: (row["gpus"], row["cpu_cores"], row["host"]) for name, row in found.items()} == {
        "n3/a100": (2, 4, "n3"),
        "n3/v100": (2, 4, "n3"),
    }
    cpu = rows["sinfo"].filter(partition="cpu").row(0, named=True)
    assert (cpu["cpu_cores"], cpu["memory_gib"], cpu["gpu_type"]) == (6, 14_000 / 1024, None)


NODE: dict[str, Any] = {"name": "n1", "gres": "gpu:a100:4", "cpus": 64, "real_memory": 1024, "partitions": ["p"]}


@pytest.mark.parametrize(
    ("more", "cores", "memory"),
    [
        ({}, 64, 1024),
        ({"specialized_cores": 2, "threads": 2}, 60, 1024),
        ({"specialized_cpus": "0-3,63"}, 59, 1024),
        ({"specialized_cores": 2, "threads": 2, "specialized_cpus": "0-3", "effective_cpus": 60}, 60, 1024),
        ({"specialized_memory": 24}, 64, 1000),
        ({"specialized_memory": {"set": True, "number": 24}}, 64, 1000),
    ],
)
def test_what_is_reserved_is_no_capacity(more: dict[str, Any], cores: int, memory: int) -> None:
    (node,) = node_in({**NODE, **more})
    assert (node.cores, node.memory_mib) == (cores, memory)


@pytest.mark.parametrize(
    ("state", "flags", "available"),
    [
        ("idle", [], True),
        ("idle", ["DRAIN"], False),
        (["IDLE", "DRAIN"], None, False),
        (["MIXED", "CLOUD", "POWERED_DOWN"], None, True),
        (["DOWN", "NOT_RESPONDING"], None, False),
        ("drained*", None, False),
        ("IDLE+DRAIN", None, False),
        ("MIXED+PLANNED", None, True),
        ("future", None, False),
        (["ALLOCATED", "FAIL"], None, False),
    ],
)
def test_states(state: object, flags: object, available: bool) -> None:
    (node,) = node_in({**NODE, "state": state, "state_flags": flags})
    assert node.available is available


MAPPING = """
kind = "data-placement"
[sources]
s = {{ sinfo = "nodes.json" }}
[tables.regions]
query = "select 'r' as region, 1 as storage_tb, sum(cpu_cores) as cpu_cores from s_nodes {where}"
[tables.gpu_supply]
query = "select 'r' as region, gpu_type, sum(gpus) as gpus from s_nodes {where} group by gpu_type"
[tables.datasets]
query = "select 'd' as dataset, 1 as size_tb"
[tables.replicas]
query = "select 'd' as dataset, 'r' as region"
[tables.workloads]
query = "select 'w' as workload, 0 as tier, 1 as cpu_cores"
[tables.gpu_demand]
query = "select 'w' as workload, 'v100' as gpu_type, 2 as gpus"
[tables.reads]
query = "select 'w' as workload, 'd' as dataset, 1 as tb_per_day"
"""


def test_a_job_on_the_second_type_of_a_node_fits(tmp_path: Path) -> None:
    down = {**NODE, "name": "n2", "state": ["IDLE", "DRAIN"]}
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": [{**NODE, "gres": "gpu:a100:2,gpu:v100:2"}, down]}))
    (tmp_path / "m.toml").write_text(MAPPING.format(where=""))
    with pytest.warns(SourceWarning, match=r"s_nodes, column available: 'n2': this node takes no jobs now"):
        problem: Any = mast_opt.import_instance("tables", tmp_path / "m.toml")
    assert problem.regions.supply_mgpu[0, problem.gpu_types.index("v100")] == 2000
    assert problem.regions.cpu_mcores.tolist() == [128_000]
    (tmp_path / "m.toml").write_text(MAPPING.format(where="where available"))
    problem = mast_opt.import_instance("tables", tmp_path / "m.toml")
    assert problem.regions.supply_mgpu[0, problem.gpu_types.index("a100")] == 2000
    assert mast_opt.solve(problem).plan is not None


def test_groups_of_unequal_nodes_are_refused() -> None:
    group = {
        "nodes": {"nodes": ["a", "b"]},
        "cpus": {"minimum": 32, "maximum": 64},
        "memory": {"minimum": 1, "maximum": 1},
        "partition": {"name": "p"},
    }
    with pytest.raises(ValueError, match="nodes a, b are not equal; print them with sinfo --Node --json"):
        node_in(group)
