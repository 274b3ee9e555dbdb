"""Quotas of groups of tenants in files: read and written again, refused where they contradict, kept by every solver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.errors import InstanceError
from mast_opt.core.quota_tree import Quota
from mast_opt.planner.io import checksum, read, write
from mast_opt.planner.solving import solve
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job
from tests.instance_rows import JobRows
from tests.job_placement.tables.test_tables import BASE

ROWS: list[dict[str, Any]] = [
    {"tenant": "lab", "gpus": 0, "borrowing_limit": 0},
    {"tenant": "t", "gpus": 1, "parent": "lab", "borrowing_limit": 2},
    {"tenant": "u", "gpus": 2, "parent": "lab", "lending_limit": 1},
]


def instance(rows: list[dict[str, Any]], **jobs: float) -> dict[str, Any]:
    """A free server of 4 GPUs, and jobs of tenant t."""
    job = {"tier": 0, "tasks": 1, "cpu_cores": 0, "memory_gb": 0, "tenant": "t"}
    waiting = [{"job": name, **job, "gpus": gpus, "submitted_s": at} for at, (name, gpus) in enumerate(jobs.items())]
    return BASE | {"quotas": rows, "running": [], "allocations": [], "jobs": waiting}


def problem_of(folder: Path, stated: dict[str, Any]) -> JobPlacement:
    (folder / "stated.json").write_text(json.dumps(stated))
    found = read(folder / "stated.json")
    assert isinstance(found, JobPlacement)
    return found


@pytest.mark.parametrize("form", ["folder", "one.json", "one.xlsx"])
def test_files_keep_the_tree(tmp_path: Path, form: str) -> None:
    problem = problem_of(tmp_path, instance(ROWS, j=1))
    assert problem.rights.rows() == [
        ("lab", None, Quota(0, 0), ""),
        ("t", None, Quota(1000, borrowing=2000), "lab"),
        ("u", None, Quota(2000, lending=1000), "lab"),
    ]
    write(problem, tmp_path / form)
    again = read(tmp_path / form)
    assert isinstance(again, JobPlacement)
    assert again.rights == problem.rights
    assert checksum(again) == checksum(problem)


def test_checksums_of_flat_quotas_do_not_mention_the_tree(tmp_path: Path) -> None:
    flat = checksum(problem_of(tmp_path, instance([{"tenant": "t", "gpus": 1}], j=1)))
    empty = {"parent": None, "borrowing_limit": None, "lending_limit": None}
    assert checksum(problem_of(tmp_path, instance([{"tenant": "t", "gpus": 1, **empty}], j=1))) == flat
    assert checksum(problem_of(tmp_path, instance([{"tenant": "t", "gpus": 1, "borrowing_limit": 0}], j=1))) != flat


def rows() -> JobRows:
    found = JobRows("tree").add_region("r").add_cluster("c", region="r")
    found.add_server("s", cluster="c", rack="b", gpu_type="a100", gpus=4, cpu_cores=8, memory_gb=16)
    return found.add_job("j", tier=0, tasks=1, gpus=1, cpu_cores=0, memory_gb=0, tenant="t")


def test_rows_state_the_tree() -> None:
    made = rows().add_quota("lab", gpus=0).add_quota("t", gpus=1, parent="lab", borrowing_limit=2, lending_limit=0)
    assert made.build().rights.rows()[1] == ("t", None, Quota(1000, 2000, 0), "lab")


FAULTS: list[tuple[list[dict[str, Any]], str]] = [
    (
        [{"tenant": "t", "gpus": 1, "lending_limit": 2}],
        "row 1, column lending_limit: .*at most the 1 GPUs of the quota",
    ),
    (
        [{"tenant": "t", "gpus": 1, "parent": "labour"}, {"tenant": "lab", "gpus": 0}],
        "found 'labour'; expected a group with a quota of its own",
    ),
    (
        [{"tenant": "t", "gpus": 1, "parent": "u"}, {"tenant": "u", "gpus": 1, "parent": "t"}],
        "no circle: t below u below t",
    ),
    ([{"tenant": "t", "gpus": 1, "parent": "t"}], "no circle: t below t"),
    (
        [
            {"tenant": "t", "gpus": 1, "gpu_type": "a100", "parent": "a"},
            {"tenant": "t", "gpus": 2, "parent": "b"},
            {"tenant": "a", "gpus": 0},
            {"tenant": "b", "gpus": 0},
        ],
        "row 2, column parent: .*one group above t; another row has a",
    ),
]


@pytest.mark.parametrize(("rows", "words"), FAULTS)
def test_trees_that_contradict_themselves_are_refused_by_name(
    tmp_path: Path, rows: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(InstanceError, match=words):
        problem_of(tmp_path, instance(rows, j=1))


@pytest.mark.parametrize("solver", ["highs", "exhaustive", "best-fit", "fgd", "exhaustive+repair"])
def test_no_solver_lets_a_tenant_borrow_more_than_it_may(tmp_path: Path, solver: str) -> None:
    """t has 1 GPU, none of lab's, and may borrow 2, of which u lends 1: so a second GPU, and no third one."""
    problem = problem_of(tmp_path, instance(ROWS, first=1, large=2, second=1))
    plan = solve(problem, solver, time_limit_s=5).plan
    assert plan is not None
    assert {problem.jobs.labels[j] for j in plan.job.tolist()} == {"first", "second"}
    fleet = Fleet.of(problem)
    for name, gpus, found in (("first", 1, Bid), ("large", 2, Refused), ("second", 1, Bid)):
        assert isinstance(fleet.place_and_commit(Job(name, 0, mgpu=gpus * 1000, tenant="t")), found)


def test_which_work_stops_what_borrows_is_a_rule(tmp_path: Path) -> None:
    """Work within its quota, of tier 1, needs what borrowed work of tier 0 holds, which is not preemptible."""
    running = [{"job": "v", "tier": 0, "preemptible": False, "gpu_hours_at_risk": 1, "tenant": "t"}]
    held = [{"job": "v", "server": "s", "tasks": 1, "gpus": 4, "cpu_cores": 0, "memory_gb": 0}]
    waiting = [{"job": "j", "tier": 1, "tasks": 1, "gpus": 4, "cpu_cores": 0, "memory_gb": 0, "submitted_s": 0}]
    stated = BASE | {"quotas": [{"tenant": "t", "gpus": 0}], "running": running, "allocations": held, "jobs": waiting}
    sums = set()
    for reclaim, stops in (("any", True), ("lower-priority", False), ("never", False)):
        problem = problem_of(tmp_path, stated | {"instance": BASE["instance"] | {"rules": {"reclaim": reclaim}}})
        write(problem, tmp_path / f"{reclaim}.json")
        again = read(tmp_path / f"{reclaim}.json")
        assert checksum(again) == checksum(problem)
        sums.add(checksum(problem))
        for solver in ("highs", "exhaustive"):
            plan = solve(problem, solver).plan
            assert plan is not None
            assert plan.preempt.tolist() == [stops]
        assert isinstance(Fleet.of(problem).place(Job("j", 1, mgpu=4000)), Bid if stops else Refused)
    assert len(sums) == 3
    assert checksum(problem_of(tmp_path, stated)) == checksum(read(tmp_path / "any.json"))
