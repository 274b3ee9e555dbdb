"""The importer of real fleets, on small excerpts written here in the form of the public files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.planner.importers import importer_named
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.plan import empty
from mast_opt.problems.job_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.problems.job_placement.verification.verifier import verify

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{n},{cpu},262144,{gpu},{model}\n"
    for n, (cpu, gpu, model) in enumerate(
        [(32000, 0, "")] * 4 + [(96000, 8, "G2")] * 20 + [(104000, 2, "T4")] * 16 + [(96000, 8, "V100M32")] * 8
    )
)
NEWER = "gpu_model,gpu_capacity_num,cpu_num,node_name\n" + "".join(f"H800,8,192,{n}\n" for n in range(12))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n" + "".join(
    f"p{n},{cpu},{memory},{gpu},{milli},{spec},{qos},Running\n"
    for n, (cpu, memory, gpu, milli, spec, qos) in enumerate(
        [
            (8000, 16384, 1, 1000, "", "LS"),
            (4000, 8192, 1, 300, "T4", "BE"),
            (2000, 8192, 1, 650, "", "BE"),
            (64000, 131072, 8, 1000, "G2|V100M32", "Guaranteed"),
            (6000, 8192, 0, 0, "", "Burstable"),
            (8000, 16384, 2, 1000, "", "BE"),
            (8000, 16384, 1, 1000, "gone", "LS"),
        ]
        * 60
    )
)
JOBS = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(
    f"2017-10-09 07:{n:02d}:55,600.0,{gpus},600.0,vc{n % 3}\n" for n, gpus in enumerate([1, 2, 4, 8, 12, 16, 24, 64])
)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "openb_node_list_all_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_gpuspec33.csv").write_text(PODS)
    (tmp_path / "philly.csv").write_text(JOBS)
    return [tmp_path, tmp_path, tmp_path / "philly.csv"]


def imported(files: list[Path], seed: int = 0, **settings: object) -> JobPlacement:
    given = {"regions": "2", "clusters": "2", "pods": "40", "gangs": "12"} | {k: str(v) for k, v in settings.items()}
    problem = importer_named("gpu-fleet").run(files, given, seed)
    assert isinstance(problem, JobPlacement)
    return problem


def test_the_fleet_is_the_real_one_and_sound(files: list[Path]) -> None:
    problem = imported(files)
    assert problem.all_mgpu == (20 * 8 + 16 * 2 + 8 * 8) * 1000
    assert sorted(problem.gpu_types) == ["G2", "T4", "V100M32", "none"]
    again = problem_from_tables(*problem_to_tables(problem))
    assert np.array_equal(again.servers.supply, problem.servers.supply)
    assert np.array_equal(again.options.mgpu, problem.options.mgpu)
    assert verify(problem, empty(problem)).ok
    used = 1 - problem.free[:, 0].sum() / problem.all_mgpu
    assert 0.95 <= used <= 1.0
    assert {problem.tiers[t] for t in problem.running.tier[problem.running.preemptible]} == {2}


def test_what_waits_is_what_the_lists_say(files: list[Path]) -> None:
    problem = imported(files)
    assert len(problem.jobs) == 52
    widest = problem.need_mgpu.max(axis=1)
    gangs = np.arange(40, 52)
    assert set((problem.jobs.tasks * widest)[gangs] // 1000) <= {2, 4, 8, 12, 16, 24, 64}
    assert (problem.need_mgpu[gangs].max(axis=1) <= 8000).all()
    assert set(np.unique(widest[:40])) <= {0, 300, 650, 1000, 2000, 8000}
    tenants = {problem.tenants[t] for t in problem.jobs.tenant[gangs]}
    assert tenants <= {"vc0", "vc1", "vc2"}
    only_t4 = widest == 300
    assert (problem.accepts[only_t4].sum(axis=1) == 1).all()


def test_the_same_seed_gives_the_same_instance_and_another_one_another(files: list[Path]) -> None:
    first, second, other = imported(files, 3), imported(files, 3), imported(files, 4)
    assert first == second
    assert not np.array_equal(first.servers.rack, other.servers.rack)


def test_the_fleet_of_2026_is_read_from_a_path(files: list[Path], tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "node_info_df.csv").write_text(NEWER)
    problem = imported([newer, *files[1:]], fill=80)
    assert problem.gpu_types == ("H800",)
    assert problem.all_mgpu == 96_000
    assert "2026" in problem.provenance


def test_part_of_the_fleet(files: list[Path]) -> None:
    assert len(imported(files, nodes=10, fill=0).servers) == 10


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"fill": 101}, "at most 100"), ({"regions": 0}, "at least 1"), ({"pods": 0, "gangs": 0}, "at least one job")],
)
def test_settings_that_cannot_be_are_refused(files: list[Path], settings: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        imported(files, **settings)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("openb_node_list_all_node.csv", "n4,96000,262144,8,G2", "n4,96000,262144,8,", "the model of the node's GPUs"),
        ("openb_pod_list_gpuspec33.csv", "p3,64000,131072,8,1000", "p3,64000,131072,8,500", "1000 for several GPUs"),
        ("openb_pod_list_gpuspec33.csv", "Guaranteed", "Golden", "one of Guaranteed"),
        ("philly.csv", "timestamp", "time", "a column timestamp"),
        ("openb_node_list_all_node.csv", "n4,96000,262144,8,G2", "n4,96000,262144,1000000000,G2", "row 5, column gpu"),
    ],
)
def test_files_that_are_not_what_they_should_be(files: list[Path], name: str, old: str, new: str, words: str) -> None:
    path = files[0] / name
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SourceError, match=words):
        imported(files)
