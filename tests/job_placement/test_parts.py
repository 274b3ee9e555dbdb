"""Jobs of several parts: worked out by hand, in files, and what each rule of theirs says when it is broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, PlanError, UnsupportedOption, UsageError
from mast_opt.planner.io import validate
from mast_opt.planner.io.checksum import checksum
from mast_opt.problems.job_placement import JobPlacement, Plan
from mast_opt.problems.job_placement.analysis.hooks import alternatives, lose_clusters
from mast_opt.problems.job_placement.analysis.rejection_reasons import Obstacle, reason_in_words, reasons
from mast_opt.problems.job_placement.live_fleet.types import Job, Part
from mast_opt.problems.job_placement.migration.plan_rows import migration_plan
from mast_opt.problems.job_placement.plan import empty
from mast_opt.problems.job_placement.presentation.sections import sections
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.instance_rows import JobRows
from tests.narrowing import some


def fleet() -> JobRows:
    """Two clusters of region east, one with GPUs and one without; a third with both in region west."""
    builder = JobRows("parts")
    builder.add_cluster("gpus", region="east").add_cluster("cores", region="east").add_cluster("both", region="west")
    for name, rack in (("g1", "r1"), ("g2", "r2")):
        builder.add_server(name, "gpus", gpu_type="h100", gpus=4, cpu_cores=8, memory_gb=64, rack=rack)
    builder.add_server("c1", "cores", gpus=0, cpu_cores=64, memory_gb=64)
    builder.add_server("w1", "both", gpu_type="h100", gpus=2, cpu_cores=64, memory_gb=64)
    return builder


def train(builder: JobRows, *, within: str | None = None, readers: int = 4, **cells: Any) -> JobPlacement:
    """Two trainers of four GPUs, and readers of eight cores each."""
    builder.add_job("train", tier=0, within=within, **cells)
    builder.add_job_part("train", "trainers", tasks=2, gpus=4, cpu_cores=4, memory_gb=1, gpu_types=["h100"])
    builder.add_job_part("train", "readers", tasks=readers, gpus=0, cpu_cores=8, memory_gb=1)
    return builder.build()


def plan(problem: JobPlacement, *rows: tuple[str, str, int]) -> Plan:
    """(job or job/part, server, tasks)"""
    jobs, servers = problem.jobs.labels, problem.servers.labels
    table = sorted((jobs.index(job), servers.index(server), tasks) for job, server, tasks in rows)
    job, server, number = np.array(table, np.int64).reshape(-1, 3).T
    none = np.zeros(len(table), np.int64)
    return Plan(job, server, number, none, np.zeros(len(table), np.bool_), np.zeros(len(problem.running), np.bool_))


def broken(problem: JobPlacement, plan: Plan) -> list[str]:
    return [f"{v.constraint}[{','.join(v.index)}]" for v in verify(problem, plan).violations]


SPREAD = (("train/trainers", "g1", 1), ("train/trainers", "g2", 1), ("train/readers", "c1", 4))


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
def test_parts_share_a_region_or_a_cluster(solver: Any) -> None:
    """The trainers fill the cluster gpus, which has 8 cores left: the readers go to another cluster, or nobody runs."""
    problem = train(fleet(), within="region")
    solution = mast_opt.solve(problem, solver, threads=1)
    assert solution.plan == plan(problem, *SPREAD)
    metrics = some(solution.verdict).metrics
    assert (metrics["admitted_jobs"], metrics["admitted_value"]) == (1, 8)
    for within in ("cluster", "rack", "server", None):
        assert len(some(mast_opt.solve(train(fleet(), within=within), solver, threads=1).plan).job) == 0


def test_all_parts_or_none() -> None:
    """The cluster has cores for eight readers."""
    assert len(some(mast_opt.solve(train(fleet(), within="region", readers=11), threads=1).plan).job) == 0


@pytest.mark.parametrize(
    ("within", "rows", "names"),
    [
        ("region", SPREAD, []),
        ("region", (), []),
        ("region", SPREAD[:2], ["together[train]"]),
        ("region", SPREAD[2:], ["together[train]"]),
        ("region", (*SPREAD[:2], ("train/readers", "w1", 4)), ["one_region[train]"]),
        ("cluster", SPREAD, ["one_cluster[train]"]),
        ("rack", SPREAD, ["one_rack[train]"]),
        ("server", SPREAD, ["one_server[train]"]),
        ("region", (*SPREAD[:2], ("train/readers", "c1", 3)), ["gang[train/readers,cores,none]"]),
    ],
)
def test_the_verifier_names_the_rule(within: str, rows: tuple[tuple[str, str, int], ...], names: list[str]) -> None:
    problem = train(fleet(), within=within)
    assert broken(problem, plan(problem, *rows)) == names


def test_files_keep_parts(tmp_path: Path) -> None:
    builder = fleet().add_dataset("clicks", replicas=["east"])
    builder.add_job("alone", tier=1, tasks=1, gpus=0, cpu_cores=1, memory_gb=1, value=1)
    builder.add_running("old", tier=1, preemptible=True, gpu_hours_at_risk=1)
    for part in ("trainers", "servers"):
        builder.add_allocation("old", "w1", gpus=1, cpu_cores=1, memory_gb=1, part=part)
    problem = train(builder, within="region", datasets={"clicks": 3}, costs={"gpus": 2}, value=7)
    assert problem.jobs.labels == ("alone", "train/trainers", "train/readers")
    assert problem.jobs.value_milli.tolist() == [1000, 7000, 0]
    for name in ("i", "i.json", "i.xlsx"):
        mast_opt.write(problem, tmp_path / name)
        again = mast_opt.read(tmp_path / name)
        assert again == problem
        assert checksum(again) == checksum(problem)
    solution = mast_opt.solve(problem, threads=1)
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    assert mast_opt.read_plan(problem, tmp_path / "plan") == solution.plan
    rows = mast_opt.to_tables(problem, solution)["assignments"]
    assert set(zip(rows["job"], rows["part"])) == {("alone", None), ("train", "trainers"), ("train", "readers")}
    for other, words in (("trainer", "trainer"), (None, "a part of train: trainers, readers")):
        wrong = {"job": ["train"], "cluster": ["gpus"], "server": ["g1"], "tasks": [1], "part": [other]}
        with pytest.raises(PlanError, match=words):
            mast_opt.plan_from_tables(problem, {"assignments": wrong, "preemptions": {"job": []}})


def test_without_parts_files_have_no_column_for_them() -> None:
    builder = fleet().add_job("alone", tier=1, tasks=1, gpus=0, cpu_cores=1, memory_gb=1)
    builder.add_running("old", tier=1, preemptible=True, gpu_hours_at_risk=1)
    problem = builder.add_allocation("old", "w1", gpus=1, cpu_cores=1, memory_gb=1).build()
    tables = mast_opt.to_tables(problem) | mast_opt.to_tables(problem, empty(problem))
    assert "job_parts" not in tables
    assert all("part" not in tables[name].columns for name in ("allocations", "assignments", "job_gpu_types"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"jobs": {"tasks": [None, None]}}, r"row 2, column tasks: .*expected a whole number.*not an empty cell"),
        (
            {"jobs": {"within": ["region", "region"]}},
            r"row 2, column within: found 'region'; expected one of: server, rack",
        ),
        ({"job_gpu_types": {"part": [None]}}, r"job_gpu_types.*part: .*expected a part of train: trainers, readers"),
        ({"job_gpu_types": {"job": ["alone"]}}, r"job_gpu_types.*part: .*expected nothing, since alone has no parts"),
        (
            {"job_parts": {"gpus": [4, 1.5]}},
            r"job_parts.*row 2, column gpus: .*expected a whole number of GPUs",
        ),
        ({"job_parts": {"tasks": [1, 10**10]}}, r"job_parts.*row 2, column tasks: .*expected at most 1,000,000,000"),
        ({"jobs": {"job": ["train", "train/readers"]}}, r"a name that no part of another job has"),
        ({"job_parts": {"part": ["readers", "readers"]}}, r"job_parts.*row 2"),
    ],
)
def test_faults_name_the_cell(changes: dict[str, dict[str, Any]], words: str) -> None:
    builder = fleet()
    problem = train(builder, within="region")
    builder.add_job("alone", tier=1, tasks=1, gpus=1, cpu_cores=1, memory_gb=1)
    tables = {name: table.to_dict(as_series=False) for name, table in mast_opt.to_tables(builder.build()).items()}
    assert mast_opt.from_tables(problem.kind, tables).parts == builder.build().parts
    for name, columns in changes.items():
        tables[name] |= columns
    with pytest.raises(InstanceError, match=words):
        mast_opt.from_tables(problem.kind, tables)


def test_what_jobs_states_of_a_job_with_parts_is_not_used(tmp_path: Path) -> None:
    problem = train(fleet(), within="region")
    mast_opt.write(problem, tmp_path / "i")
    jobs = tmp_path / "i" / "jobs.csv"
    head, row = jobs.read_text().splitlines()
    cells = dict(zip(head.split(","), row.split(","))) | {"tasks": "9", "gpus": "0"}
    jobs.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    reading = validate(tmp_path / "i")
    assert reading.problem == problem
    found = [(warning.column, warning.message) for warning in reading.warnings if "parts" in warning.message]
    assert found == [(column, "not used, since the job has parts (job_parts)") for column in ("tasks", "gpus")]


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("parts.job", [0, 2], "the row of jobs behind"),
        ("jobs.tier", [0, 1, 0], "tier, tenant"),
        ("jobs.value_milli", [1, 1, 0], "first part"),
    ],
)
def test_groups_that_are_no_parts_are_refused(column: str, values: list[int], words: str) -> None:
    builder = fleet()
    train(builder, within="region")
    problem = builder.add_job("alone", tier=1, tasks=1, gpus=1, cpu_cores=1, memory_gb=1).build()
    with pytest.raises(InstanceError, match=words):
        problem.with_columns({column: np.array(values)})


@pytest.mark.parametrize(("gpus", "tiers"), [(8, [0, 0, 1]), (9, [0, 0, 0]), (7, [1, 1, 0]), (0, [1, 1, 1])])
def test_a_quota_holds_all_parts_or_none(gpus: int, tiers: list[int]) -> None:
    """The parts need eight GPUs together, the job behind them one."""
    builder = fleet()
    train(builder, within="region", tenant="t")
    builder.add_job("one", tier=0, tasks=1, gpus=1, cpu_cores=1, memory_gb=1, tenant="t")
    builder.add_job("last", tier=1, tasks=1, gpus=0, cpu_cores=1, memory_gb=1)
    assert builder.add_quota("t", gpus=gpus).build().queue_tier.tolist() == [*tiers, 1]


def test_rules_to_compare_with_refuse_parts() -> None:
    problem = train(fleet(), within="region")
    for solver in ("federated", "best-fit"):
        with pytest.raises(UnsupportedOption, match="places no jobs of several parts, and the table job_parts has 1"):
            mast_opt.solve(problem, solver, threads=1)


def test_jobs_of_an_instance_keep_their_parts() -> None:
    problem = train(fleet(), within="region", costs={"gpus": 2.0})
    job = Job.of(problem, 0)
    assert (job.name, job.within, job.costs) == ("train", "region", {"gpus": 2.0})
    assert job.parts == (
        Part("trainers", 2, cpu_mcores=4000, memory_mib=1024, gpu_types={"h100": 4000}),
        Part("readers", 4, cpu_mcores=8000, memory_mib=1024, gpu_types={"h100": 0, "none": 0}),
    )
    with pytest.raises(UsageError, match="row 1 of jobs is a further part, train/readers"):
        Job.of(problem, 1)


def test_reasons_name_the_part() -> None:
    """West holds all readers, and no trainers: two of its GPUs are too few."""
    problem = train(fleet(), within="region")
    readers = {reason.cluster: reason for reason in reasons(problem, 1)}
    assert [readers[c].obstacle for c in range(3)] == [Obstacle.SIZE, Obstacle.IN_USE, Obstacle.TOGETHER]
    assert "train/trainers, another part of the job, fits nowhere" in readers[2].words
    assert [reason.obstacle for reason in reasons(problem, 0)] == [
        Obstacle.IN_USE,
        Obstacle.GPU_TYPE,
        Obstacle.TASK,
    ]
    together = train(fleet(), within="cluster")
    assert "train/readers, another part of the job," in reason_in_words(together, 0)


def test_what_is_said_of_parts() -> None:
    problem = train(fleet(), within="region")
    all_parts = plan(problem, *SPREAD)
    starts = [(move.wave, move.what) for move in migration_plan(problem, all_parts).moves]
    assert starts == [(0, "train/trainers"), (0, "train/readers")]
    admission, *_ = sections(problem, all_parts)
    assert admission.rows == ((0, 1, 1, 8.0, 8.0),)
    waiting = next(one for one in sections(problem, empty(problem)) if one.title == "Jobs that wait")
    assert [row[0] for row in waiting.rows] == ["train/trainers", "train/readers"]
    assert waiting.note.startswith("1 job waits.")
    found = {alternative.words: alternative for alternative in alternatives(problem, all_parts, 1)}
    assert some(found["rejected"].plan) == empty(problem)
    assert set(found) == {"rejected", "in cluster gpus", "in cluster both"}


def test_frozen_jobs_stay_with_all_parts() -> None:
    builder = fleet()
    train(builder, within="region")
    problem = builder.add_job("alone", tier=0, tasks=1, gpus=4, cpu_cores=1, memory_gb=1, value=100).build()
    start = plan(problem, *SPREAD)
    free = some(mast_opt.solve(problem, threads=1).plan)
    assert np.unique(free.job).tolist() == [2]
    kept = mast_opt.solve(problem, threads=1, start=start, freeze={"job": ["train"]})
    assert some(kept.plan) == start


def test_a_lost_cluster_leaves_the_parts_of_what_runs_elsewhere() -> None:
    builder = fleet().add_job("alone", tier=1, tasks=1, gpus=0, cpu_cores=1, memory_gb=1)
    for job, server in (("gone", "g1"), ("old", "w1")):
        builder.add_running(job, tier=1, preemptible=True, gpu_hours_at_risk=1)
        builder.add_allocation(job, server, gpus=1, cpu_cores=1, memory_gb=1, part=f"part-{job}")
    lost = lose_clusters(builder.build(), ["gpus"])
    assert lost.running_parts.allocation.tolist() == [0]
    assert [lost.part_names[at] for at in lost.running_parts.part.tolist()] == ["part-old"]
    with pytest.raises(InstanceError, match="a row of allocations"):
        replace(lost, running_parts=replace(lost.running_parts, allocation=np.array([1])))


def test_a_running_job_of_two_parts_is_not_movable() -> None:
    builder = fleet().add_job("alone", tier=1, tasks=1, gpus=0, cpu_cores=1, memory_gb=1)
    builder.add_running("old", tier=1, preemptible=True, gpu_hours_at_risk=1).add_movable("old", restart_gpu_hours=1)
    for part in ("a", "b"):
        builder.add_allocation("old", "w1", gpus=1, cpu_cores=1, memory_gb=1, part=part)
    with pytest.raises(InstanceError, match="tasks are equal"):
        builder.build()
