"""Targets of the fuzzer: the sources of importers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from mast_opt.planner.importers import IMPORTERS
from tests.fuzz.common import texts, use
from tests.importers import test_gavel as gavel
from tests.importers import test_gpu_fleet as gpu_fleet
from tests.importers import test_importers
from tests.importers import test_mapped as mapped
from tests.task_reassignment import hand


def read_gap(folder: Path) -> None:
    use(IMPORTERS["gap"].run([folder / "i.gap"], {}, 0))


def make_gavel(folder: Path) -> None:
    gavel.files(folder)


def read_gavel(folder: Path) -> None:
    given = {"gpus": "v100=1,p100=1,k80=1", "packing": "1"}
    use(IMPORTERS["gavel"].run([folder / "throughputs.json", folder / "two.trace"], given, 0))


def make_roadef(folder: Path) -> None:
    texts(folder, {"model.txt": hand.MODEL})
    (folder / "assignment.txt.gz").write_bytes(gzip.compress(hand.TODAY.encode()))


def read_roadef(folder: Path) -> None:
    use(IMPORTERS["roadef"].run([folder / "model.txt", folder / "assignment.txt.gz"], {}, 0))


def make_cloud_regions(folder: Path) -> None:
    plain = {
        "regions.csv": test_importers.REGIONS,
        "region_pairs.csv": test_importers.PAIRS,
        "openb_node_list_all_node.csv": test_importers.NODES,
        "openb_pod_list_default.csv": test_importers.PLAIN,
    }
    texts(folder, plain)
    packed = {"openb_pod_list_gpuspec33.csv.gz": test_importers.CHOOSY, "philly.csv.gz": test_importers.JOBS}
    for name, text in packed.items():
        (folder / name).write_bytes(gzip.compress(text.encode()))


def read_cloud_regions(folder: Path) -> None:
    given = {"regions": "3", "datasets": "10", "part": "32", "machines": "2"}
    IMPORTERS["cloud-regions"].run([folder] * 3, given, 0)


def make_gpu_fleet(folder: Path) -> None:
    texts(folder, {"openb_node_list_all_node.csv": gpu_fleet.NODES, "openb_pod_list_gpuspec33.csv": gpu_fleet.PODS})
    texts(folder, {"node_info_df.csv": gpu_fleet.NEWER})
    (folder / "philly.csv.gz").write_bytes(gzip.compress(gpu_fleet.JOBS.encode()))


def read_gpu_fleet(folder: Path) -> None:
    given = {"regions": "2", "clusters": "2", "pods": "10", "gangs": "4"}
    for nodes in (folder, folder / "node_info_df.csv"):
        IMPORTERS["gpu-fleet"].run([nodes, folder, folder], given, 0)


def make_mapped(folder: Path) -> None:
    dumps = """
cluster = { kubectl = "cluster.json" }
use = { prometheus = "use.json" }
slurm = { sinfo = "sinfo.json" }
"""
    files = mapped.MAPPING.replace('db = { sqlite = "inventory.db" }', dumps + 'files = { csv = "files.csv" }')
    files = files.replace('database = "db"\n', "")
    texts(folder, {"mapping.toml": files, "nodes.csv": "Site,GPU,Count,Cores\neast,H100,64,1024\nwest,A100,32,512\n"})
    texts(folder, {"files.csv": "name,size,site\nclicks,20000,east\nimages,12500,west\n"})
    series = {"metric": {"job": "train"}, "values": [[0, "1"], [60, "2"]]}
    texts(
        folder,
        {
            "cluster.json": json.dumps({"items": [mapped.NODE, mapped.POD]}),
            "use.json": json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}}),
            "sinfo.json": json.dumps({"sinfo": [mapped.SINFO]}),
        },
    )


def read_mapped(folder: Path) -> None:
    use(IMPORTERS["tables"].run([folder / "mapping.toml"], {}, 0))
