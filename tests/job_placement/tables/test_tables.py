"""Between tables and the problem, both ways, and every fault that only the whole can show."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.core.errors import InstanceError, PlanError
from mast_opt.planner.io import checksum, read, read_plan, write
from mast_opt.planner.solving import solve, write_plan_folder
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.tables.problem_tables import (
    plan_from_tables,
    plan_to_tables,
    problem_from_tables,
    problem_to_tables,
)
from tests.job_placement.strategies import problems
from tests.narrowing import some

BASE: dict[str, Any] = {
    "instance": {"format": "mast-opt/1", "kind": "job-placement", "name": "faulty"},
    "regions": [{"region": "r"}],
    "clusters": [{"cluster": "c", "region": "r"}],
    "servers": [
        {"server": "s", "cluster": "c", "rack": "b", "gpu_type": "a100", "gpus": 4, "cpu_cores": 8, "memory_gb": 16}
    ],
    "jobs": [{"job": "j", "tier": 0, "tasks": 1, "gpus": 1, "cpu_cores": 1, "memory_gb": 1}],
    "job_gpu_types": [],
    "job_datasets": [],
    "replicas": [],
    "running": [{"job": "v", "tier": 1, "preemptible": True, "gpu_hours_at_risk": 1}],
    "allocations": [
        {"job": "v", "server": "s", "tasks": 2, "gpus": 0.5, "cpu_cores": 1, "memory_gb": 1, "gpu_index": 1}
    ],
}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_unbuilding_and_building_gives_the_same_problem(problem: JobPlacement) -> None:
    again = problem_from_tables(*problem_to_tables(problem))
    assert again == problem_from_tables(*problem_to_tables(again))
    assert np.array_equal(problem.servers.supply, again.servers.supply)
    for name in ("need_mgpu", "accepts", "queue_tier", "order", "free", "missing_mb", "open_region"):
        assert np.array_equal(getattr(problem, name), getattr(again, name)), name


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("form", ["folder", "one.json"])
def test_files_keep_everything(family: str, form: str, tmp_path: Path) -> None:
    sizes = {name: min(size, 6) for name, size in FAMILIES[family].sizes.items() if name != "fill_percent"}
    problem = FAMILIES[family].generate(np.random.default_rng(5), **sizes)
    write(problem, tmp_path / form)
    again = read(tmp_path / form)
    write(again, tmp_path / f"2{form}")
    assert again == read(tmp_path / f"2{form}")
    solution = solve(again, "exhaustive+repair", iterations=1, threads=1)
    once_more = solve(problem, "exhaustive+repair", iterations=1, threads=1)
    assert solution.objective == pytest.approx(once_more.objective)
    write_plan_folder(again, solution, tmp_path / "plan")
    plan = read_plan(again, tmp_path / "plan")
    for item in fields(type(plan)):
        assert np.array_equal(getattr(plan, item.name), getattr(solution.plan, item.name)), item.name


def test_a_rack_label_that_two_clusters_use_means_two_racks(tmp_path: Path) -> None:
    problem = loaded(
        tmp_path,
        clusters=[{"cluster": "c", "region": "r"}, {"cluster": "d", "region": "r"}],
        servers=[BASE["servers"][0], {**BASE["servers"][0], "server": "t", "cluster": "d"}],
    )
    assert problem.racks.labels == ("c/b", "d/b")


def test_defaults_are_those_of_the_contract(tmp_path: Path) -> None:
    problem = loaded(tmp_path, jobs=[{**BASE["jobs"][0], "tasks": 3, "gpus": 2}])
    assert problem.jobs.value_milli.tolist() == [6000]
    assert problem.jobs.within.tolist() == [2]
    assert problem.tier_weight.tolist() == [1.0, 0.25]
    assert problem.accepts.all()
    assert not problem.remote_reads


def test_a_job_larger_than_any_cluster_is_no_fault_and_has_a_reason(tmp_path: Path) -> None:
    problem = loaded(tmp_path, jobs=[{**BASE["jobs"][0], "tasks": 50}, {**BASE["jobs"][0], "job": "k"}])
    solution = solve(problem, "highs")
    assert problem.jobs.labels[int(some(solution.plan).job[0])] == "k"
    from mast_opt.problems.job_placement.presentation.sections import sections

    waiting = sections(problem, some(solution.plan))[-1]
    assert waiting.rows[0][0] == "j"
    assert "larger than the cluster" in str(waiting.rows[0][-1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"job_gpu_types": [{"job": "j", "gpu_type": "h100"}]}, "job_gpu_types, row 1.*'h100'.*servers have: a100"),
        ({"allocations": [{**BASE["allocations"][0], "server": "gone"}]}, "allocations, row 1.*'gone'"),
        ({"allocations": [{**BASE["allocations"][0], "tasks": 20, "gpu_index": None}]}, "at most the 4 GPUs of s"),
        ({"allocations": [{**BASE["allocations"][0], "cpu_cores": 9}]}, "at most the 8 cores of s"),
        ({"allocations": [{**BASE["allocations"][0], "gpu_index": 7}]}, "gpu_index.*'7'.*that s has"),
        ({"allocations": [{**BASE["allocations"][0], "tasks": 3}]}, "no other job holds"),
        ({"allocations": [{**BASE["allocations"][0], "gpus": 1.5}]}, "a whole number of GPUs, or less than one"),
        ({"jobs": [{**BASE["jobs"][0], "gpus": 2.5}]}, "jobs, row 1.*gpus.*a whole number of GPUs, or less than one"),
        ({"servers": [{**BASE["servers"][0], "gpus": 4.5}]}, "servers, row 1.*gpus.*a whole number of GPUs"),
        ({"servers": [{**BASE["servers"][0], "gpu_type": None}]}, "the GPU type of a server with GPUs"),
        ({"jobs": [{**BASE["jobs"][0], "job": "v"}]}, "runs already"),
        ({"jobs": [{**BASE["jobs"][0], "tasks": 10**15}]}, "jobs, row 1.*base units in all"),
        ({"jobs": [{**BASE["jobs"][0], "tasks": 10**10}]}, "jobs, row 1, column tasks.*at most 1,000,000,000 tasks"),
        (
            {
                "allocations": [
                    {**BASE["allocations"][0], "tasks": 2**63 - 1, "gpus": 0, "cpu_cores": 0, "memory_gb": 0}
                ]
            },
            "allocations, row 1, column tasks.*at most 1,000,000,000 tasks",
        ),
        ({"jobs": [{**BASE["jobs"][0], "tasks": 0}]}, "jobs, row 1.*tasks"),
        ({"jobs": [{**BASE["jobs"][0], "within": "room"}]}, "within.*'room'"),
        ({"jobs": []}, "at least one row"),
    ],
)
def test_faults_name_the_place_and_what_was_expected(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        loaded(tmp_path, **changes)


def test_a_plan_in_the_wrong_cluster_is_a_fault() -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(1))
    tables = plan_to_tables(problem, some(solve(problem, "exhaustive+repair", iterations=1, threads=1).plan))
    rows = dict(tables.values["assignments"])
    rows["cluster"] = (rows["cluster"] + 1) % len(problem.clusters)
    tables = replace(tables, values={**tables.values, "assignments": rows})
    with pytest.raises(PlanError, match=r"assignments, row 1, column cluster.*the cluster of"):
        plan_from_tables(problem, tables)


def loaded(folder: Path, **changes: Any) -> JobPlacement:
    content = BASE | changes
    for table, rows in content.items():
        if isinstance(rows, list):
            content[table] = [{name: value for name, value in row.items() if value is not None} for row in rows]
    path = folder / "faulty.json"
    path.write_text(json.dumps(content))
    problem = read(path)
    assert isinstance(problem, JobPlacement)
    return problem


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("job_gpu_types", [{"job": "j", "gpu_type": kind, "gpus": 1} for kind in "ab"]),
        ("jobs", [{**BASE["jobs"][0], "job": name, "tenant": "t"} for name in "jk"]),
    ],
)
def test_a_checksum_sees_the_order_of_rows_where_quotas_give_it_a_meaning(
    table: str, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    servers = [{**BASE["servers"][0], "server": kind, "gpu_type": kind} for kind in "ab"]
    none: dict[str, list[dict[str, Any]]] = {"running": [], "allocations": []}
    made: dict[tuple[bool, bool], str] = {}
    for quotas in ([], [{"tenant": "t", "gpus": 1}]):
        for ordered in (rows, rows[::-1]):
            path = tmp_path / f"{len(quotas)}-{ordered is rows}"
            path.mkdir()
            problem = loaded(path, **{**none, "servers": servers, table: ordered, "quotas": quotas})
            write(problem, path / "again")
            made[bool(quotas), ordered is rows] = checksum(problem)
            assert checksum(read(path / "again")) == checksum(problem)
    assert made[True, True] != made[True, False]
    assert made[False, True] == made[False, False]


def test_a_checksum_ignores_the_order_of_jobs_that_do_not_tie(tmp_path: Path) -> None:
    rows = [{**BASE["jobs"][0], "job": name, "tenant": "t", "tier": n} for n, name in enumerate("kj")]
    made = set()
    for number, ordered in enumerate((rows, rows[::-1])):
        (tmp_path / str(number)).mkdir()
        made.add(checksum(loaded(tmp_path / str(number), jobs=ordered, quotas=[{"tenant": "t", "gpus": 1}])))
    assert len(made) == 1
