"""Places for tasks of SkyPilot, with tasks as SkyPilot 0.14.1 writes them and prices of three regions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.skypilot.advice import Prices, Tables, advise, placed, read_tables
from mast_opt.live.hosts.skypilot.rest import answered

EAST, WEST, IOWA = "aws/us-east-1", "aws/us-west-2", "gcp/us-central1"
NODE = {(EAST, "H100"): 60.0, (WEST, "H100"): 50.0, (IOWA, "H100"): 40.0, (WEST, "A100"): 30.0}
PRICES = Prices(
    lambda place, kind, count, spot: NODE.get((place, kind)) and NODE[place, kind] / (2 if spot else 1),
    {"aws": 0.09, "gcp": 0.12}.__getitem__,
)
QUOTA = {("quota", place, kind): 64 for place, kind in NODE}
CORPUS = {"s3://corpus": (frozenset({EAST}), 1000.0)}
TABLES = Tables(CORPUS, QUOTA, {("aws", "aws"): 0.02})


def task(**resources: Any) -> dict[str, Any]:
    return {
        "file_mounts": {"/data": "s3://corpus/train", "/code": "./"},
        "num_nodes": 2,
        "resources": {"accelerators": {"H100": 8}, "labels": {"mast-opt-hours": "3"}, **resources},
    }


def costs(found: Any) -> list[tuple[str, float, float]]:
    return [(one.infra, one.gpu_usd, round(one.transfer_usd, 6)) for one in found.choices]


def test_places_are_ranked_by_gpus_and_transfer() -> None:
    assert costs(advise(task(), TABLES, PRICES)) == [(WEST, 300.0, 20.0), (IOWA, 240.0, 90.0), (EAST, 360.0, 0.0)]


def test_transfers_inside_a_cloud_are_free_where_no_table_says_otherwise() -> None:
    assert costs(advise(task(), Tables(CORPUS, QUOTA, {}), PRICES))[0] == (WEST, 300.0, 0.0)


def test_volumes_of_the_task_count_instead_of_the_tables() -> None:
    stated = {**task(), "inputs": {"s3://corpus/train": 10_000}}
    assert costs(advise(stated, TABLES, PRICES))[0] == (EAST, 360.0, 0.0)


def test_infra_and_spot_are_kept() -> None:
    assert costs(advise(task(infra="aws", use_spot=True), TABLES, PRICES)) == [(WEST, 150.0, 20.0), (EAST, 180.0, 0.0)]
    (only,) = advise(task(infra="aws/us-east-1/us-east-1a"), TABLES, PRICES).choices
    assert only.infra == "aws/us-east-1/us-east-1a"


def test_quotas_and_what_a_plan_reserved() -> None:
    gpus = {**QUOTA, ("running", WEST, "H100"): 56, ("reserved", EAST, "H100"): 16}
    found = advise(task(), Tables(CORPUS, gpus, TABLES.transfers), PRICES)
    assert [(one.infra, one.reserved) for one in found.choices] == [(EAST, True), (IOWA, False), (EAST, False)]
    assert f"{WEST}: 16 H100 asked for, 8 left of the quota" in found.reasons
    running = {**gpus, ("running", EAST, "H100"): 1}
    assert not any(one.reserved for one in advise(task(), Tables(CORPUS, running, {}), PRICES).choices)


def test_labels_name_datasets_and_unknown_ones_are_named() -> None:
    labels = {"mast-opt-datasets": "logs__clicks"}
    tables = Tables({"logs": (frozenset({IOWA}), 500.0)}, QUOTA, {})
    found = advise({**task(labels=labels), "file_mounts": {}}, tables, PRICES)
    assert found.choices[0].infra == IOWA
    assert costs(found)[1][2] == 60.0
    assert found.reasons[0] == "clicks: data.csv does not say where it is; not counted"


def test_alternatives_are_kept_and_a_second_call_changes_nothing() -> None:
    given = task()
    given["resources"] = {
        "any_of": [{"accelerators": {"H100": 8}, "disk_size": 100}, {"accelerators": "A100:8", "infra": "aws"}]
    }
    once = answered(given, "launch", TABLES, PRICES)
    ordered = once["resources"]["ordered"]
    assert ordered[0] == {"infra": WEST, "accelerators": {"A100": 8}}
    assert {"disk_size": 100, "infra": WEST, "accelerators": {"H100": 8}} in ordered
    assert answered(once, "launch", TABLES, PRICES) == once == answered(once, "optimize", TABLES, PRICES)
    assert once["file_mounts"] == given["file_mounts"]


def test_tasks_without_gpus_and_running_clusters_stay_as_they_are() -> None:
    plain = {"run": "x", "resources": {"cpus": "8+"}}
    assert answered(plain, "launch", TABLES, PRICES) == plain == placed(plain, advise(plain, TABLES, PRICES))
    assert answered(task(), "exec", TABLES, PRICES) == task()


def test_no_place_is_refused_with_reasons() -> None:
    with pytest.raises(InputError, match=r"aws/us-west-2: the catalogue has no node with 8 H100"):
        answered(task(infra="aws/us-west-2"), "launch", TABLES, Prices(lambda *_: None, PRICES.egress))
    with pytest.raises(InputError, match=r"gpus\.csv has no place"):
        answered(task(infra="azure"), "launch", TABLES, PRICES)
    with pytest.raises(InputError, match="label mast-opt-hours"):
        answered(task(labels={"mast-opt-hours": "soon"}), "launch", TABLES, PRICES)


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_tables_are_read(tmp_path: Path) -> None:
    head = "kind,infra,accelerator,gpus\n"
    tables = read_tables(write(tmp_path, gpus=f"{head}quota,{EAST},H100,8\nquota,{EAST},H100,8\n"))
    assert (tables.gpus, tables.data) == ({("quota", EAST, "H100"): 16}, {})
    write(
        tmp_path,
        data=f"dataset,infra,gb\nlogs,{EAST},5\nlogs,{WEST},5\n",
        transfers="from,to,usd_per_gb\naws,gcp,0.05\n",
    )
    assert read_tables(tmp_path).data == {"logs": (frozenset({EAST, WEST}), 5.0)}
    assert read_tables(tmp_path).transfers == {("aws", "gcp"): 0.05}
    for wrong, words in (
        ("kind,infra\n", "expected a first line"),
        (f"{head}quota,aws,H100,8\n", "expected cloud/region"),
        (f"{head}spare,{EAST},H100,8\n", "expected one of"),
        (f"{head}quota,{EAST},H100,-8\n", "expected one of"),
    ):
        with pytest.raises(InputError, match=words):
            read_tables(write(tmp_path, gpus=wrong))


def test_10000_running_jobs_are_answered_well_within_skypilots_limit_of_30_s(tmp_path: Path) -> None:
    rows = "".join(f"running,aws/r-{n % 50},H100,8\n" for n in range(10_000))
    quota = "".join(f"quota,aws/r-{n},H100,2000\n" for n in range(50))
    folder = write(tmp_path, gpus=f"kind,infra,accelerator,gpus\n{quota}{rows}")
    expensive = Prices(lambda *_: 50.0, PRICES.egress)
    advise(task(), TABLES, PRICES)  # kernels compile
    began = time.process_time()
    assert len(advise(task(), read_tables(folder), expensive).choices) == 50
    assert time.process_time() - began < 5
