"""Values that are allowed and were probably not meant: each kind's warnings, and none on sound instances."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from types import NoneType
from typing import get_type_hints

import numpy as np
import openpyxl
import pytest

import mast_opt
from mast_opt.planner.io import validate
from mast_opt.problems.kind.plausibility import Plausibility, similar, thousandfold
from mast_opt.problems.registry import kind_named, kind_names, kind_of
from tests.cli.conftest import write_tables

ROOT = Path(__file__).parents[2] / "instances"
COMMITTED = sorted(
    path
    for path in ROOT.glob("*/*")
    if path.parent.name != "traces"
    and path.name != "best_known"
    and (path.suffix == ".json" or (path / "instance.toml").exists())
)
FAMILIES = [(kind, family) for kind in kind_names() for family in kind_named(kind).generate.families]


GENERAL = {"outliers"}
"""Methods of ``Plausibility`` that warn of any column for one reason, which is a row of the page of its own."""
WARN = {
    name
    for name, method in vars(Plausibility).items()
    if callable(method) and get_type_hints(method).get("return") is NoneType and "table" in get_type_hints(method)
} - GENERAL | {"InputWarning"}


def found(path: Path) -> list[str]:
    return [str(warning) for warning in validate(path).warnings]


def warned() -> set[str]:
    """The tables of which some problem's code warns for a reason of their own."""
    tables = set()
    for path in ROOT.parent.glob("mast_opt/problems/*/tables/input_warnings.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if name in WARN:
                assert isinstance(node, ast.Call)
                assert isinstance(node.args[0], ast.Constant)
                tables.add(str(node.args[0].value))
    return tables


def test_the_page_has_a_row_for_every_table_that_is_warned_of_and_no_other() -> None:
    page = (ROOT.parent / "docs/how-to/warnings.md").read_text(encoding="utf-8")
    places = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ")][1:]
    assert {table for place in places for table in re.findall(r"`(\w+)`", place)} == warned()


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_none_on_committed_instances(path: Path) -> None:
    assert found(path) == []


@pytest.mark.parametrize(("kind", "family"), FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_none_on_generated_instances(kind: str, family: str, seed: int) -> None:
    problem = mast_opt.generate(kind, family, seed=seed)
    _, tables = kind_of(problem).tables.problem_to_tables(problem)
    assert kind_of(problem).tables.warnings(tables) == ()


@pytest.mark.parametrize("kind", kind_names())
def test_none_on_templates(kind: str, tmp_path: Path) -> None:
    mast_opt.write_template(kind, tmp_path / "template.xlsx")
    assert found(tmp_path / "template.xlsx") == []


def test_a_gpu_type_that_is_spelt_differently_in_supply(tmp_path: Path) -> None:
    demand = "workload,gpu_type,gpus\nrank,A100,8\nrank,a-100,8\nspam,A100,4\nspam,a-100,4\n"
    [warning] = validate(write_tables(tmp_path / "i", {"gpu_demand.csv": demand})).warnings
    assert (warning.file, warning.row, warning.column, warning.value) == ("gpu_demand.csv", 2, "gpu_type", "a-100")
    assert warning.suggestion == "did you mean 'A100'?"
    assert warning.count == 2


def test_a_gpu_type_that_supply_spells_in_two_ways(tmp_path: Path) -> None:
    supply = "region,gpu_type,gpus\neast,A100,8\nwest,a100,8\n"
    words = found(write_tables(tmp_path / "i", {"gpu_supply.csv": supply}))
    assert words == [
        "gpu_supply.csv, row 2, column gpu_type: 'a100': counts as another type than 'A100'; did you mean 'A100'?"
    ]


def test_another_gpu_type_beside_one_that_there_is(tmp_path: Path) -> None:
    demand = "workload,gpu_type,gpus\nrank,A100,8\nrank,H100,8\nspam,A100,4\n"
    assert found(write_tables(tmp_path / "i", {"gpu_demand.csv": demand})) == []


def test_a_type_that_nobody_has_and_all_of_a_workload_needs(tmp_path: Path) -> None:
    demand = "workload,gpu_type,gpus\nrank,TPU,8\nspam,A100,4\n"
    [words] = found(write_tables(tmp_path / "i", {"gpu_demand.csv": demand}))
    assert words == "gpu_demand.csv, row 1, column gpu_type: 'TPU': no region supplies GPUs of this type"


def test_more_gpus_than_all_regions_have(tmp_path: Path) -> None:
    demand = "workload,gpu_type,gpus\nrank,A100,8\nspam,A100,17\n"
    [words] = found(write_tables(tmp_path / "i", {"gpu_demand.csv": demand}))
    assert words.startswith("gpu_demand.csv, row 2, column gpus: '17': more than the 16 A100 of all regions together")


def test_sizes_in_gb(tmp_path: Path) -> None:
    sizes = "dataset,size_tb\nclicks,3000\nlogs,2000\n"
    [words] = found(write_tables(tmp_path / "i", {"datasets.csv": sizes}))
    assert "far more data than storage: 5,000 TB for one copy of everything, 20 TB of storage" in words
    assert "GB" in words


def test_storage_in_gb(tmp_path: Path) -> None:
    storage = "region,storage_tb,cpu_cores\neast,10000,10\nwest,10000,10\n"
    [words] = found(write_tables(tmp_path / "i", {"regions.csv": storage}))
    assert words.startswith("regions.csv, column storage_tb: far more storage than data")


def test_one_region_in_gb(tmp_path: Path) -> None:
    rows = "".join(f"r{n},{size},10\n" for n, size in enumerate((12, 8, 20, 15000)))
    [words] = found(
        write_tables(
            tmp_path / "i",
            {
                "regions.csv": "region,storage_tb,cpu_cores\neast,10,10\nwest,10,10\n" + rows,
                "datasets.csv": "dataset,size_tb\nclicks,30\nlogs,20\n",
            },
        )
    )
    assert words.startswith("regions.csv, row 6, column storage_tb: '15000': about a thousand times the others")
    assert "GB" in words


def test_rows_of_a_workbook_are_numbered_as_excel_does(tmp_path: Path) -> None:
    demand = "workload,gpu_type,gpus\nrank,A100,8\nspam,A100,17\n"
    problem = mast_opt.read(write_tables(tmp_path / "i", {"gpu_demand.csv": demand}))
    mast_opt.write(problem, tmp_path / "book.xlsx")
    [warning] = validate(tmp_path / "book.xlsx").warnings
    assert (warning.file, warning.row) == ("book.xlsx: gpu_demand", 3)


@pytest.mark.parametrize(
    ("values", "large", "small"),
    [
        ([3, 5, 8, 4000], [3], []),
        ([3000, 5000, 8000, 4], [], [3]),
        ([3, 5, 8, 400], [], []),
        ([3, 5, 8, 4000, 5000, 6000], [], []),
        ([3, 5, 4000], [2], []),
        ([3, 50, 40000], [], []),
        ([3, 4000], [], []),
        ([80, 60, 100000], [2], []),
        ([80000, 60000, 100], [], [2]),
        ([4, 4, 4, 4, 4, 4000], [5], []),
        ([1, 2, 3, 5, 9, 14, 30, 5000], [7], []),
        ([1, 2, 3, 5, 9, 14, 600, 5000], [], []),
        ([0, 0, 0, 3], [], []),
        ([1, 30, 900, 27000, 810000], [], []),
        ([], [], []),
    ],
)
def test_thousandfold(values: list[int], large: list[int], small: list[int]) -> None:
    high, low = thousandfold(np.array(values, np.int64))
    assert (np.flatnonzero(high).tolist(), np.flatnonzero(low).tolist()) == (large, small)


def test_one_dataset_in_gb_among_sizes_that_differ_widely() -> None:
    """Every third dataset a thousand times as large, one at a time: of the middling and larger ones most are found."""
    sizes = np.sort(np.random.default_rng(1).lognormal(10, 1.4, 100)).astype(np.int64)
    hits = []
    for at in range(40, 100, 3):
        typed = sizes.copy()
        typed[at] *= 1000
        high, low = thousandfold(typed)
        assert not low.any()
        assert set(np.flatnonzero(high).tolist()) <= {at}
        hits.append(bool(high[at]))
    assert sum(hits) >= 0.9 * len(hits)


def test_one_region_of_three_in_gb(tmp_path: Path) -> None:
    mast_opt.write_template("data-placement", tmp_path / "template.xlsx")
    problem = mast_opt.read(tmp_path / "template.xlsx")
    storage = problem.regions.storage_mb.copy()
    storage[1] *= 1000
    mast_opt.write(problem.with_columns({"regions.storage_mb": storage}), tmp_path / "i")
    words = found(tmp_path / "i")
    assert any("row 2, column storage_tb: '80000': about a thousand times the others" in one for one in words)


def test_thousandfold_never_takes_a_long_tail_for_a_mistake() -> None:
    for seed in range(200):
        values = np.random.default_rng(seed).lognormal(10, 2.0, 50 + seed).astype(np.int64) + 1
        high, low = thousandfold(values)
        assert not high.any()
        assert not low.any()


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("h100", ["H100"], "H100"),
        ("H-100", ["A100", "H100"], "H100"),
        ("NVIDIA H100", ["H100"], "H100"),
        ("HlOO", ["H100"], "H100"),
        ("trainium", ["trainuim"], "trainuim"),
        ("A100", ["H100"], None),
        ("A10", ["A100"], None),
        ("L4", ["L40"], None),
        ("V100-16G", ["V100-32G"], None),
        ("tpu-v4", ["tpu-v5"], None),
        ("T4", [], None),
    ],
)
def test_similar(name: str, known: list[str], meant: str | None) -> None:
    assert similar(name, known) == meant


def edited(tmp_path: Path, name: str, table: str, row: int, **values: object) -> Path:
    """A committed or generated instance as JSON, some cells changed."""
    problem = mast_opt.read(ROOT / name)
    mast_opt.write(problem, tmp_path / "instance.json")
    content = json.loads((tmp_path / "instance.json").read_text(encoding="utf-8"))
    content[table][row].update(values)
    (tmp_path / "instance.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path / "instance.json"


def test_a_task_larger_than_any_server(tmp_path: Path) -> None:
    [words] = found(edited(tmp_path, "job_placement/tiny-packing.json", "jobs", 0, cpu_cores=100_000))
    assert "column cpu_cores: '100000': one task needs more than the largest server has" in words


def test_a_gang_larger_than_the_fleet(tmp_path: Path) -> None:
    [words] = found(edited(tmp_path, "job_placement/tiny-packing.json", "jobs", 0, tasks=1000))
    assert "column tasks: '1000': its tasks need far more GPUs together than all servers" in words


def test_memory_in_mib(tmp_path: Path) -> None:
    path = edited(tmp_path, "job_placement/tiny-packing.json", "servers", 0, memory_gb=2_000_000)
    assert any("'2000000'" in words and "MiB" in words for words in found(path))


def test_a_type_that_no_server_has_is_a_fault_with_what_was_meant(tmp_path: Path) -> None:
    problem = mast_opt.generate("job-placement", seed=1)
    mast_opt.write(problem, tmp_path / "i.json")
    content = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))
    name = content["job_gpu_types"][0]["gpu_type"]
    content["job_gpu_types"][0]["gpu_type"] = name + "x"
    (tmp_path / "i.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(mast_opt.InstanceError, match=f"did you mean '{name}'"):
        mast_opt.read(tmp_path / "i.json")


def test_a_reservation_that_asks_more_than_the_fleet(tmp_path: Path) -> None:
    path = edited(tmp_path, "server_assignment/shared-pool", "reservations", 0, rru=1e6)
    assert any("more than all servers together are worth to it" in words for words in found(path))


def test_values_of_a_type_that_no_server_has(tmp_path: Path) -> None:
    problem = mast_opt.generate("server-assignment", seed=1)
    mast_opt.write(problem, tmp_path / "i.json")
    content = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))
    name = content["values"][0]["type"]
    content["values"].append({**content["values"][0], "type": name.upper(), "rru": 1})
    (tmp_path / "i.json").write_text(json.dumps(content), encoding="utf-8")
    [words] = found(tmp_path / "i.json")
    assert f"'{name.upper()}': no server is of this type; did you mean '{name}'?" in words


def test_a_process_larger_than_any_machine(tmp_path: Path) -> None:
    path = edited(tmp_path, "task_reassignment/crowded-machine", "needs", 0, amount=10**9)
    assert any("than any machine has" in words for words in found(path))


@pytest.mark.parametrize("name", ["=cmd", "+1", "-x", "@SUM(A1)"])
def test_names_that_a_spreadsheet_takes_for_formulas(tmp_path: Path, name: str) -> None:
    replaced = {
        "datasets.csv": f"dataset,size_tb\n{name},3\nlogs,2\n",
        "replicas.csv": f"dataset,region\n{name},east\nlogs,west\n",
        "reads.csv": f"workload,dataset,tb_per_day\nrank,{name},1\nspam,logs,1\n",
    }
    path = write_tables(tmp_path / "i", replaced)
    [warning] = validate(path).warnings
    assert (warning.file, warning.row, warning.column, warning.value) == ("datasets.csv", 1, "dataset", name)
    assert "formula" in warning.message
    mast_opt.write(mast_opt.read(path), tmp_path / "again")
    assert mast_opt.checksum(mast_opt.read(tmp_path / "again")) == mast_opt.checksum(mast_opt.read(path))
    mast_opt.write(mast_opt.read(path), tmp_path / "book.xlsx")
    cell = openpyxl.load_workbook(tmp_path / "book.xlsx")["datasets"]["A2"]
    assert (cell.data_type, cell.value) == ("s", name)


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\u200f", "\ufeff"])
def test_names_with_characters_that_hide_or_reorder_text(tmp_path: Path, hidden: str) -> None:
    name = f"a{hidden}b"
    replaced = {"datasets.csv": f"dataset,size_tb\nclicks,3\nlogs,2\n{name},1\nz\u00e9,1\nq\u200dq,1\n"}
    [warning] = validate(write_tables(tmp_path / "i", replaced)).warnings
    assert (warning.file, warning.row, warning.column, warning.value) == ("datasets.csv", 3, "dataset", name)
    assert f"U+{ord(hidden):04X}" in warning.message
    assert "hides or reorders" in warning.message


@pytest.mark.parametrize("twin", ["cafe\u0301", "ca\u200bf\u00e9", "\uff43af\u00e9", "caf\u00e9\u2060"])
def test_names_that_look_alike(tmp_path: Path, twin: str) -> None:
    replaced = {"datasets.csv": f"dataset,size_tb\nclicks,3\nlogs,2\ncaf\u00e9,1\n{twin},1\n"}
    [warning] = validate(write_tables(tmp_path / "i", replaced)).warnings
    assert (warning.row, warning.column, warning.value) == (4, "dataset", twin)
    assert "looks like 'caf\u00e9'" in warning.message
