"""Importers on small excerpts written here, in the form of the public files."""

from __future__ import annotations

import gzip
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.planner.importers import IMPORTERS, importer_named
from mast_opt.planner.importers.cloud_regions.instance import CLOUD_REGIONS, LOAD
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.plan import fill_remote, gpu_demand
from mast_opt.problems.data_placement.problem import TERMS
from mast_opt.problems.data_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.problems.data_placement.verification.verifier import verify

REGIONS = """\
region,cloud,note,t4x1_usd_per_hour,a10gx8_usd_per_hour,l4x8_usd_per_hour,v100x8_usd_per_hour,\
a100_40x8_usd_per_hour,a100_80x8_usd_per_hour,h100x8_usd_per_hour
aws:north,aws,,0.7,23.6,,33.5,30.1,,68.8
aws:south,aws,,0.5,,,,,,
aws:west,aws,,0.6,1.2,1.3,,,,
gcp:east,gcp,"Seoul, KR",,,,30.2,,,
gcp:empty,gcp,,,,,,,,
"""
NAMES = ("aws:north", "aws:south", "aws:west", "gcp:east", "gcp:empty")
GBPS = {pair: 1 + n / 4 for n, pair in enumerate(pair for pair in product(NAMES, NAMES) if pair[0] != pair[1])}
PAIRS = "src,dst,throughput_gbps,rtt_ms,egress_usd_per_gb\n" + "".join(
    f"{src},{dst},{gbps},100,{0.02 if src.startswith('aws') else 0.12}\n" for (src, dst), gbps in GBPS.items()
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{n},{cpu},262144,{gpu},{model}\n"
    for n, (cpu, gpu, model) in enumerate(
        [(32000, 0, "")] * 12
        + [(96000, 8, "G2")] * 30
        + [(104000, 2, "T4")] * 40
        + [(96000, 8, "V100M32")] * 17
        + [(9000, 1, "A10")]
    )
)
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n"
PLAIN = PODS + "".join(
    f"p{n},{cpu},4096,{gpu},{milli},,{qos},Running\n"
    for n, (cpu, gpu, milli, qos) in enumerate(
        [(12000, 1, 1000, "LS")] * 8
        + [(64000, 8, 1000, "BE")] * 3
        + [(90000, 1, 500, "LS")] * 2
        + [(16000, 0, 0, "BE")] * 50
        + [(8000, 0, 0, "LS")] * 4
    )
)
CHOOSY = PODS + "".join(
    f"p{n},8000,4096,1,1000,{spec},{qos},Running\n"
    for n, (spec, qos) in enumerate(
        [("", "LS")] * 5
        + [("T4", "BE")] * 2
        + [("V100M16|V100M32|V100M32", "Burstable")] * 2
        + [("A10|G2", "Guaranteed")]
    )
)
JOBS = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(
    f"2017-10-{1 + n // 24:02d} {n % 24:02d}:00:00,{seconds}.0,{gpus},{seconds * gpus}.0,{cluster}\n"
    for n, (cluster, gpus, seconds) in enumerate(
        [("aaa", 1, 600)] * 40
        + [("aaa", 8, 200_000)] * 20
        + [("bbb", 4, 50_000)] * 30
        + [("ccc", 16, 400_000)] * 5
        + [("bbb", 1, 90_000)] * 25
    )
)


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / name for name in ("georegions", "openb", "philly")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "regions.csv").write_text(REGIONS)
    (folders[0] / "region_pairs.csv").write_text(PAIRS)
    (folders[1] / "openb_node_list_all_node.csv").write_text(NODES)
    (folders[1] / "openb_pod_list_default.csv").write_text(PLAIN)
    (folders[1] / "openb_pod_list_gpuspec33.csv.gz").write_bytes(gzip.compress(CHOOSY.encode()))
    (folders[2] / "philly.csv.gz").write_bytes(gzip.compress(JOBS.encode()))
    return folders


def made(sources: list[Path], seed: int = 0, **settings: int | str) -> DataPlacement:
    given = {"regions": "4", "datasets": "30", "part": "32"} | {name: str(value) for name, value in settings.items()}
    problem: DataPlacement = CLOUD_REGIONS.run(sources, given, seed)
    return problem


def fault_of(sources: list[Path]) -> str:
    """The only fault that importing finds."""
    with pytest.raises(SourceError) as caught:
        made(sources)
    assert len(caught.value.faults) == 1, str(caught.value)
    return str(caught.value.faults[0])


def edit(path: Path, old: str, new: str) -> None:
    packed = path.suffix == ".gz"
    text = gzip.decompress(path.read_bytes()).decode() if packed else path.read_text()
    assert old in text
    text = text.replace(old, new, 1)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())


def today(problem: DataPlacement) -> Plan:
    run = (
        problem.current_runs.workload,
        problem.current_runs.region,
        problem.current_runs.gpu_type,
        problem.current_runs.share,
    )
    nothing = np.zeros(0, np.int64)
    copies = (nothing, nothing, nothing, nothing)
    return Plan(problem.datasets.stored, *run, *copies, *fill_remote(problem, problem.datasets.stored, *run))


def test_regions_are_those_that_offer_most(sources: list[Path]) -> None:
    assert made(sources).regions.labels == ("aws:north", "aws:south", "aws:west", "gcp:east")
    assert made(sources, regions=2).regions.labels == ("aws:north", "aws:west")


def test_the_fleet_is_whole_and_where_it_is_sold(sources: list[Path]) -> None:
    problem = made(sources)
    assert problem.gpu_types == ("G2", "T4", "V100M32")
    assert (problem.regions.supply_mgpu.sum(axis=0) // 1000).tolist() == [240, 80, 136]
    assert problem.regions.cpu_mcores.sum() == 1000 * (12 * 32 + 30 * 96 + 40 * 104 + 17 * 96)
    assert problem.regions.supply_mgpu[problem.regions.labels.index("gcp:east"), 1] == 0
    assert (problem.regions.supply_mgpu[1:3, 2] == 0).all()


def test_jobs_become_work_that_fills_the_fleet(sources: list[Path]) -> None:
    problem = made(sources)
    need = np.zeros(len(problem.workloads), np.int64)
    need[problem.options.workload] = problem.options.mgpu // 1000
    assert need.sum() == pytest.approx(LOAD * 456, abs=16)
    gang = {"1gpu": 1, "4gpu": 4, "8gpu": 8, "16gpu": 16}
    for name, gpus in zip(problem.workloads.labels, need.tolist()):
        size = gang.get(name.split("-")[1], 0)
        assert (size > 0) == (not name.startswith("services"))
        if size:
            assert gpus % size == 0
            assert gpus <= max(32, size)
    lengths = {(name.split("-")[0], name.split("-")[1], name.split("-")[2]) for name in problem.workloads.labels}
    assert {
        ("aaa", "1gpu", "short"),
        ("aaa", "8gpu", "long"),
        ("bbb", "4gpu", "medium"),
        ("bbb", "1gpu", "long"),
    } <= lengths
    assert problem.apps == ("aaa", "bbb", "ccc", "services")
    assert [problem.apps[app] for app in problem.workloads.app.tolist()] == [
        name.split("-")[0] for name in problem.workloads.labels
    ]


def test_work_runs_only_on_models_that_hold_its_gang(sources: list[Path]) -> None:
    problem = made(sources)
    large = [w for w, name in enumerate(problem.workloads.labels) if name.split("-")[1] in ("4gpu", "8gpu", "16gpu")]
    assert large
    types = problem.options.gpu_type[np.isin(problem.options.workload, large)]
    assert set(types.tolist()) <= {0, 2}


def test_cpu_comes_from_pods_with_whole_gpus(sources: list[Path]) -> None:
    problem = made(sources)
    need = np.zeros(len(problem.workloads), np.int64)
    need[problem.options.workload] = problem.options.mgpu // 1000
    per_gpu = problem.workloads.cpu_mcores[need > 0] / need[need > 0]
    assert per_gpu.min() >= 8000
    assert per_gpu.max() <= 12000
    assert problem.workloads.cpu_mcores[need == 0].sum() == 50 * 16000 + 4 * 8000


def test_tiers_are_classes_of_service(sources: list[Path]) -> None:
    problem = made(sources)
    services = {
        name.split("-")[1]: problem.tiers[tier]
        for name, tier in zip(problem.workloads.labels, problem.workloads.tier.tolist())
        if name.startswith("services")
    }
    assert services == {"tier0": 0, "tier2": 2}


@pytest.mark.parametrize("seed", range(4))
def test_what_runs_today_is_a_plan(sources: list[Path], seed: int) -> None:
    problem = made(sources, seed)
    plan = today(problem)
    assert verify(problem, plan).violations == ()
    assert gpu_demand(problem, plan)[:, :, -1].sum() == pytest.approx(LOAD * 456_000, abs=16_000)
    assert (problem.datasets.stored.sum(axis=1) == 1).all()


def test_links_have_the_measured_throughput_and_price(sources: list[Path]) -> None:
    problem = made(sources, machines=5)
    assert problem.links is not None
    assert len(problem.links) == 12
    assert problem.objective.weights["egress"] > 0
    for source, target, mb, price in zip(
        problem.links.source, problem.links.target, problem.links.capacity_mb_per_day, problem.links.price_usd_per_tb
    ):
        ends = problem.regions.labels[source], problem.regions.labels[target]
        assert mb / 1e6 == pytest.approx(GBPS[ends] * 5 * 10.8, abs=0.001)
        assert price == (20 if ends[0].startswith("aws") else 120)
    assert made(sources).links is None


@pytest.mark.parametrize("seed", range(3))
def test_teams_read_mostly_their_own_data(sources: list[Path], seed: int) -> None:
    problem = made(sources, seed, reads="teams", part=8, storage_percent=225)
    group = {name: position for position, name in enumerate(problem.apps)}
    owner = np.array([group[label.rpartition("-")[0]] for label in problem.datasets.labels])
    own = owner[problem.reads.dataset] == problem.workloads.app[problem.reads.workload]
    assert own.mean() > 0.8
    assert set(owner) == set(range(len(group)))
    members = np.bincount(problem.workloads.app)
    assert (np.bincount(problem.reads.dataset) <= members[owner]).all()
    assert problem.regions.storage_mb.sum() == pytest.approx(2.25 * problem.datasets.size_mb.sum(), rel=1e-4)
    assert dict(problem.objective.weights) == TERMS
    assert verify(problem, today(problem)).ok


def test_ingress_is_the_mean_measured_throughput_of_the_machines(sources: list[Path]) -> None:
    one, two = (made(sources, ingress=machines, days=7) for machines in (1, 2))
    gb = one.regions.ingress_mb_per_day // 1000
    links = made(sources, machines=1).links
    assert links is not None
    mean = np.bincount(links.target, weights=links.capacity_mb_per_day) / 3 / 1000
    assert gb.tolist() == pytest.approx(mean.tolist(), abs=1)
    assert two.regions.ingress_mb_per_day.tolist() == pytest.approx(
        (2 * one.regions.ingress_mb_per_day).tolist(), abs=1000
    )
    assert one.regions.ingress_limited.all()
    assert one.days == 7
    assert not made(sources).regions.ingress_limited.any()


def test_the_seed_decides_what_is_drawn_and_nothing_else(sources: list[Path]) -> None:
    first, again, other = made(sources, 1), made(sources, 1), made(sources, 2)
    assert first == again
    assert not np.array_equal(first.datasets.size_mb, other.datasets.size_mb)
    assert first.workloads.labels == other.workloads.labels
    assert first.regions.labels == other.regions.labels
    assert first.regions.supply_mgpu.sum() == other.regions.supply_mgpu.sum()


def test_packed_and_plain_files_are_the_same_to_it(sources: list[Path]) -> None:
    packed = made(sources)
    (sources[2] / "philly.csv.gz").unlink()
    (sources[2] / "philly.csv").write_text(JOBS)
    assert np.array_equal(packed.workloads.cpu_mcores, made(sources).workloads.cpu_mcores)
    assert np.array_equal(
        packed.workloads.cpu_mcores, made([*sources[:2], sources[2] / "philly.csv"]).workloads.cpu_mcores
    )


def test_it_survives_its_own_tables_and_says_where_it_is_from(sources: list[Path]) -> None:
    problem = made(sources, name="mine")
    again = problem_from_tables(*problem_to_tables(problem))
    assert again.workloads.labels == problem.workloads.labels
    assert np.array_equal(again.reads.mb_per_day, problem.reads.mb_per_day)
    assert again.name == "mine"
    for source in ("georegions (aws, gcp;", "OpenB", "Philly", "Drawn with a seed"):
        assert source in again.provenance


def test_a_pair_with_an_unknown_region_is_not_taken_for_another(sources: list[Path]) -> None:
    """Regions north, south, west: south to nowhere stands before north to west."""
    pairs = sources[0] / "region_pairs.csv"
    head, *rows = pairs.read_text().splitlines()
    extra = [f"{name},nowhere,1.0,100,0.02" for name in ("aws:south", "aws:west", "aws:north")]
    pairs.write_text("\n".join([head, *extra, *rows]) + "\n")
    assert made(sources).regions.labels


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "georegions/regions.csv",
            "region,",
            "Region,",
            "a column region (name of the region); did you mean 'Region'?",
        ),
        (
            "georegions/regions.csv",
            "aws:south",
            "aws:west",
            "row 3, column region: found 'aws:west'; expected a region only once",
        ),
        (
            "georegions/region_pairs.csv",
            "aws:north,aws:south,1.0,",
            "aws:north,aws:mars,1.0,",
            "1 are missing, first aws:north to aws:south",
        ),
        (
            "georegions/region_pairs.csv",
            "aws:north,aws:west,",
            "aws:north,aws:south,",
            "row 2, column src, dst: found 'aws:north to aws:south'; expected a pair of regions only once",
        ),
        ("georegions/region_pairs.csv", ",1.25,", ",fast,", "row 2, column throughput_gbps: found 'fast'"),
        ("openb/openb_node_list_all_node.csv", "96000,262144,8,G2", "96000,262144,8,", "row 13, column model"),
        (
            "openb/openb_node_list_all_node.csv",
            "96000,262144,8,G2",
            "96000,262144,-8,G2",
            "row 13, column gpu: found '-8'",
        ),
        (
            "openb/openb_pod_list_default.csv",
            "LS",
            "gold",
            "row 1, column qos: found 'gold'; expected one of Guaranteed",
        ),
        ("openb/openb_pod_list_gpuspec33.csv.gz", "gpu_spec", "spec", "a column gpu_spec"),
        ("philly/philly.csv.gz", "2017-10-01 01:00:00", "yesterday", "row 2, column timestamp: found 'yesterday'"),
        ("philly/philly.csv.gz", "600.0", "0", "row 1, column duration: found '0'"),
    ],
)
def test_a_wrong_file_gets_one_fault_with_its_place(
    sources: list[Path], file: str, old: str, new: str, words: str
) -> None:
    edit(sources[0].parent / file, old, new)
    assert words in fault_of(sources)


def test_a_missing_file_is_named(sources: list[Path]) -> None:
    (sources[1] / "openb_pod_list_default.csv").unlink()
    assert "a folder with openb_pod_list_default.csv or openb_pod_list_default.csv.gz" in fault_of(sources)


def test_a_missing_folder_is_named(sources: list[Path]) -> None:
    assert "no/philly.csv" in fault_of([*sources[:2], Path("no/philly.csv")])
    with pytest.raises(SourceError, match=r"2 faults.*\n.*it does not exist"):
        made([Path("nowhere"), *sources[1:]])


def test_a_truncated_archive_is_named(sources: list[Path]) -> None:
    file = sources[2] / "philly.csv.gz"
    file.write_bytes(file.read_bytes()[:-20])
    assert "philly.csv.gz: expected a gzip file that is whole" in fault_of(sources)


def test_an_empty_table_is_named(sources: list[Path]) -> None:
    (sources[1] / "openb_pod_list_default.csv").write_text(PODS)
    assert "at least one row" in fault_of(sources)


def test_a_fleet_without_a_large_model_is_refused(sources: list[Path]) -> None:
    (sources[1] / "openb_node_list_all_node.csv").write_text("cpu_milli,gpu,model\n8000,1,A10\n")
    with pytest.raises(UsageError, match="64 GPUs"):
        made(sources)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"region": "3"}, "did you mean 'regions'"),
        (
            {"colour": "red"},
            "the settings are: name, regions, datasets, part, reads, storage_percent, ingress, days, machines",
        ),
        ({"regions": "few"}, "setting regions is 'few'; expected a whole number"),
        ({"regions": "1"}, "setting regions is 1; expected at least 2"),
        ({"storage_percent": "99"}, "setting storage_percent is 99; expected at least 100"),
        ({"reads": "all"}, "setting reads is 'all'; expected one of: mixed, teams"),
        ({"reads": "teams", "datasets": "3"}, "setting datasets is 3; expected at least one for each of 4 groups"),
    ],
)
def test_a_wrong_setting_is_refused(sources: list[Path], settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CLOUD_REGIONS.run(sources, settings, 0)


def test_the_inputs_are_counted(sources: list[Path]) -> None:
    with pytest.raises(UsageError, match=r"2 inputs are given; expected 3: georegions \(folder with"):
        CLOUD_REGIONS.run(sources[:2], {}, 0)
    with pytest.raises(UsageError, match="there is no setting 'out'"):  # an option of other commands
        CLOUD_REGIONS.run(sources[:2], {"out": "my-instance"}, 0)


def test_importers_are_found_by_name() -> None:
    assert importer_named("cloud-regions") is CLOUD_REGIONS
    assert all(item.help and item.inputs for item in IMPORTERS.values())
    assert {name for name, item in IMPORTERS.items() if not item.settings} == {"tables"}, "its settings are in a file"
    with pytest.raises(UsageError, match="expected one of: cloud-regions"):
        importer_named("cloud")
