"""The verifier names what is broken: a valid plan is spoilt in every possible way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import PlanError
from mast_opt.planner.io import read
from mast_opt.problems.job_placement import JobPlacement, Plan
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble
from mast_opt.problems.job_placement.plan import empty
from mast_opt.problems.job_placement.units import MOVE_LIMITS, MOVES, RESTART_GPU_HOURS
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.job_placement.test_instances import FOLDER
from tests.job_placement.test_moves import limited, moved, scattered

FIELDS = ("job", "server", "tasks", "gpu_index", "indexed")


def plan(problem: JobPlacement, *rows: tuple[str, str, int, int | None], stop: tuple[str, ...] = ()) -> Plan:
    """Rows are (job, server, tasks, GPU or None)."""
    job = np.array([problem.jobs.labels.index(row[0]) for row in rows], np.int64)
    server = np.array([problem.servers.labels.index(row[1]) for row in rows], np.int64)
    index = np.array([row[3] or 0 for row in rows], np.int64)
    indexed = np.array([row[3] is not None for row in rows], np.bool_)
    tasks = np.array([row[2] for row in rows], np.int64)
    return Plan(job, server, tasks, index, indexed, np.isin(problem.running.labels, stop))


def broken(problem: JobPlacement, spoilt: Plan) -> list[str]:
    return [violation.name for violation in verify(problem, spoilt).violations]


@pytest.fixture
def fleet() -> JobPlacement:
    return two_clusters()


def two_clusters() -> JobPlacement:
    """Two clusters of two types; a gang of two and a fraction wait; jobs of tiers 1 and 2 run."""
    here = GeneratedFleet(
        regions=("east", "west"),
        gpu_types=("a100", "h100"),
        clusters=Clusters(("ce", "cw"), np.array([0, 1])),
        racks=Racks(("b1", "b2", "b3"), np.array([0, 0, 1])),
        servers=Servers(
            ("e1", "e2", "e3", "w1"), np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1]), np.array([[4000, 16_000, 64]] * 4)
        ),
    )
    running = Running([1, 2], [False, True], [0, 4000], [(0, 0, 1, 2000, 1000, 1), (1, 1, 1, 4000, 1000, 1)])
    waiting = Pending(
        tier=np.array([0, 1, 2]),
        tasks=np.array([2, 3, 1]),
        mgpu=np.array([2000, 400, 1000]),
        mcores=np.array([4000, 1000, 1000]),
        mib=np.array([16, 4, 4]),
        value_milli=np.array([4000, 1200, 1000]),
        options=(np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1, 0, 1])),
    )
    return assemble("spoil", here, running, waiting).with_columns(
        {
            "jobs.labels": ("gang", "share", "one"),
            "running.labels": ("fixed", "soft"),
            "jobs.within": np.array([1, 2, 0]),
            "datasets.labels": ("logs",),
            "datasets.stored": np.array([[True, False]]),
            "datasets.residency": np.array([[False, False]]),
            "reads.job": np.array([0]),
            "reads.dataset": np.array([0]),
            "reads.mb_per_day": np.array([10]),
        }
    )


def sound(problem: JobPlacement) -> Plan:
    return plan(
        problem,
        ("gang", "e1", 1, None),
        ("gang", "e2", 1, None),
        ("share", "e3", 2, 0),
        ("share", "e3", 1, 1),
        ("one", "e3", 1, None),
        stop=("soft",),
    )


def test_the_sound_plan_is_sound(fleet: JobPlacement) -> None:
    assert broken(fleet, sound(fleet)) == []
    assert broken(fleet, empty(fleet)) == []


def test_a_plan_of_other_running_jobs_is_none(fleet: JobPlacement) -> None:
    with pytest.raises(ValueError, match="preempt has 3 entries; expected 2"):
        verify(fleet, replace(empty(fleet), preempt=np.zeros(3, np.bool_)))


@pytest.mark.parametrize(
    ("rows", "stop", "names"),
    [
        # a gang of two with one task, or three, or on two types
        ([("gang", "e3", 1, None)], (), ["gang[gang,ce,a100]"]),
        ([("gang", "e3", 2, None), ("gang", "e1", 1, None)], (), ["gang[gang,ce,a100]", "one_rack[gang]"]),
        (
            [("share", "e3", 2, 0), ("share", "w1", 1, 0)],
            (),
            ["admitted[share]", "gang[share,ce,a100]", "gang[share,cw,h100]"],
        ),
        # wrong region and wrong type at once
        ([("gang", "w1", 2, None)], (), ["data[gang,west]", "accepts[gang,w1]"]),
        # outside the level that it must stay within
        ([("gang", "e1", 1, None), ("gang", "e3", 1, None)], (), ["one_rack[gang]"]),
        # a job that may not be stopped
        ([], ("fixed",), ["preemptible[fixed]"]),
        # on what others hold: all GPUs, cores
        ([("gang", "e2", 2, None)], (), ["capacity[e2,0,gpu]", "capacity[e2,1,gpu]", "capacity[e2,2,gpu]"][:1]),
        # what the victim frees does not serve its own tier
        ([("one", "e2", 1, None)], ("soft",), ["capacity[e2,2,gpu]"]),
        # fractions: no GPU named, one that is not there, one that is full
        ([("share", "e3", 3, None)], (), ["split[share,e3]"]),
        ([("share", "e3", 3, 4)], (), ["device[e3,1,4]"]),
        ([("share", "e3", 3, 2)], (), ["device[e3,0,2]", "device[e3,1,2]"]),
        # a whole GPU where a fraction lies
        ([("share", "e3", 2, 0), ("share", "e3", 1, 1), ("one", "e3", 1, 1)], (), ["device[e3,0,1]", "device[e3,1,1]"]),
        # a row twice
        ([("one", "e3", 1, None), ("one", "e3", 1, None)], (), ["assignments[one,e3]", "gang[one,ce,a100]"]),
        # no tasks at all
        ([("one", "e3", 0, None)], (), ["assignments[one,e3]"]),
    ],
)
def test_every_rule_is_named_where_it_is_broken(
    fleet: JobPlacement, rows: list[Any], stop: tuple[str, ...], names: list[str]
) -> None:
    found = broken(fleet, plan(fleet, *rows, stop=stop))
    assert set(names) <= set(found)
    kinds = {name.split("[")[0] for name in names}
    assert {name.split("[")[0] for name in found} <= kinds | {"capacity", "gang"}


def test_whole_tasks_need_gpus_that_nothing_else_uses(fleet: JobPlacement) -> None:
    """Four GPUs hold fractions of 0.4 on each of three, and then no two whole ones, although 2.8 are left."""
    roomy = replace(fleet, jobs=replace(fleet.jobs, tasks=np.array([2, 3, 2]), within=np.array([2, 2, 2])))
    rows = [("share", "e3", 1, d) for d in range(3)] + [("one", "e3", 2, None)]
    assert broken(roomy, plan(roomy, *rows)) == ["whole[e3,0]", "whole[e3,1]", "whole[e3,2]"]


@pytest.mark.parametrize(
    ("rows", "stop", "expected"),
    [
        ([("gang", "e3", 1, None)], (), {("gang[gang,ce,a100]", 1, 2)}),
        ([("gang", "e1", 1, None), ("gang", "e3", 1, None)], (), {("one_rack[gang]", 1, 1)}),
        ([("gang", "w1", 2, None)], (), {("data[gang,west]", 1, 0), ("accepts[gang,w1]", 2, 0)}),
        (
            [("share", "e3", 2, 0), ("share", "w1", 1, 0)],
            (),
            {("admitted[share]", 1, 1), ("gang[share,ce,a100]", 1, 3), ("gang[share,cw,h100]", 2, 3)},
        ),
        ([], ("fixed",), {("preemptible[fixed]", 1, 0)}),
        ([("one", "e2", 1, None)], ("soft",), {("capacity[e2,2,gpu]", 1000, 0)}),
        ([("share", "e3", 3, None)], (), {("split[share,e3]", 3, 0)}),
        ([("share", "e3", 3, 4)], (), {("device[e3,1,4]", 1, 4)}),
        ([("share", "e3", 3, 2)], (), {("device[e3,0,2]", 200, 1000), ("device[e3,1,2]", 200, 1000)}),
        ([("one", "e3", 0, None)], (), {("assignments[one,e3]", 1, 1)}),
        ([("gang", "e1", -1, None)], (), {("assignments[gang,e1]", 2, 1)}),
        (
            [("gang", "e3", 1, None), ("gang", "e3", 1, None)],
            (),
            {("assignments[gang,e3]", 1, 1)},
        ),
        (  # what is wrong with one job is not taken for another's
            [("gang", "e1", 1, None), ("gang", "e3", 1, None), ("one", "e3", 1, None), ("one", "e3", 1, None)],
            (),
            {("one_rack[gang]", 1, 1), ("assignments[one,e3]", 1, 1), ("gang[one,ce,a100]", 1, 1)},
        ),
        (
            [("gang", "e3", 2, None), ("share", "e1", 2, 2), ("share", "w1", 1, 0)],
            (),
            {("admitted[share]", 1, 1), ("gang[share,ce,a100]", 1, 3), ("gang[share,cw,h100]", 2, 3)},
        ),
    ],
)
def test_amounts_and_limits(
    fleet: JobPlacement, rows: list[Any], stop: tuple[str, ...], expected: set[tuple[str, int, int]]
) -> None:
    found = verify(fleet, plan(fleet, *rows, stop=stop)).violations
    assert {(one.name, one.amount, one.limit) for one in found} == expected


def test_amounts_of_residency_and_whole_gpus(fleet: JobPlacement) -> None:
    listed = replace(fleet, datasets=replace(fleet.datasets, residency=np.array([[False, True]])))
    (violation,) = verify(listed, plan(listed, ("gang", "e3", 2, None))).violations
    assert (violation.name, violation.amount, violation.limit) == ("residency[gang,logs,east]", 1, 0)
    roomy = replace(fleet, jobs=replace(fleet.jobs, tasks=np.array([2, 3, 2]), within=np.array([2, 2, 2])))
    rows = [("share", "e3", 1, d) for d in range(3)] + [("one", "e3", 2, None)]
    assert {(one.name, one.amount, one.limit) for one in verify(roomy, plan(roomy, *rows)).violations} == {
        (f"whole[e3,{tier}]", 1, 1) for tier in range(3)
    }


def test_work_of_any_tier_touches_a_gpu(fleet: JobPlacement) -> None:
    roomy = replace(
        fleet, jobs=replace(fleet.jobs, tasks=np.array([2, 3, 2]), within=np.array([2, 2, 2]), tier=np.array([0, 0, 2]))
    )
    rows = [("share", "e3", 1, d) for d in range(3)] + [("one", "e3", 2, None)]
    assert broken(roomy, plan(roomy, *rows)) == ["whole[e3,0]", "whole[e3,1]", "whole[e3,2]"]


def test_whole_tasks_may_name_their_gpu_or_not(fleet: JobPlacement) -> None:
    """Rows of one job on one server, with GPU 0, with GPU 1 and with any, are three rows and not one three times."""
    three = replace(fleet, jobs=replace(fleet.jobs, tasks=np.array([2, 3, 3])))
    rows = [("one", "e3", 1, 0), ("one", "e3", 1, 1), ("one", "e3", 1, None)]
    assert broken(three, plan(three, *rows)) == []
    four = replace(fleet, jobs=replace(fleet.jobs, tasks=np.array([2, 3, 4])))
    assert broken(four, plan(four, *rows[:2], ("one", "e3", 2, None))) == []


def test_the_objective_is_the_weighted_sum_of_the_terms(fleet: JobPlacement) -> None:
    weights = {name: 2.0 + at for at, name in enumerate(fleet.objective.weights)}
    weighted = replace(fleet, objective=replace(fleet.objective, weights=weights))
    verdict = verify(weighted, plan(weighted, ("share", "e3", 2, 0), ("share", "e3", 1, 1), stop=("soft",)))
    assert verdict.objective == pytest.approx(sum(weights[name] * verdict.terms[name] for name in weights))


def test_a_victim_frees_its_gpu_only_for_more_important_fractions() -> None:
    problem = read(FOLDER / "tiny-fractions.json")
    changed = replace(
        problem,
        tiers=(0, 1),
        running=replace(problem.running, tier=np.array([1]), preemptible=np.array([True])),
        jobs=replace(problem.jobs, tier=np.array([0, 1, 0, 0])),
    )
    assert broken(changed, plan(changed, ("a", "s1", 1, 1), stop=("old",))) == []
    assert broken(changed, plan(changed, ("b", "s1", 1, 1), stop=("old",))) == ["device[s1,1,1]"]


@pytest.mark.parametrize("limit", [MOVES, RESTART_GPU_HOURS])
def test_moves_may_come_to_just_their_limit(limit: int) -> None:
    """A move is one move, and restarts one GPU-hour of work."""
    for most_milli, names in ((1000, []), (999, [f"move_limit[{MOVE_LIMITS[limit]}]"])):
        problem = limited(scattered(), limit, most_milli)
        assert broken(problem, moved(problem, ("a", "e2", 1, None))) == names


def test_over_quota_work_has_the_lowest_tier() -> None:
    problem = read(FOLDER / "tiny-quota.json")
    assert [problem.tiers[t] for t in problem.queue_tier] == [0, 0, 1]  # what its tenant runs is less important
    problem = replace(problem, running=replace(problem.running, tier=np.array([0])))
    assert [problem.tiers[t] for t in problem.queue_tier] == [0, 1, 1]
    assert [problem.jobs.labels[j] for j in problem.order] == ["first", "other", "second"]


@pytest.mark.parametrize("field", ["job", "server"])
@pytest.mark.parametrize("position", [-1, 10**6])
def test_positions_out_of_range_are_violations_not_crashes(fleet: JobPlacement, field: str, position: int) -> None:
    rows = {name: getattr(sound(fleet), name).copy() for name in FIELDS}
    rows[field][0] = position
    found = verify(fleet, Plan(**rows, preempt=sound(fleet).preempt)).violations
    (wrong,) = [v for v in found if v.constraint == "assignments"]
    last = {"job": 2, "server": 3}[field]
    assert wrong.index == ((f"#{position}", "e1") if field == "job" else ("gang", f"#{position}"))
    assert (wrong.unit, wrong.amount, wrong.limit) == ("position", 1 if position < 0 else position - last, last)


def test_arrays_of_different_lengths_are_an_error(fleet: JobPlacement) -> None:
    rows = {name: getattr(sound(fleet), name) for name in FIELDS}
    with pytest.raises(PlanError, match="tasks"):
        Plan(**{**rows, "tasks": rows["tasks"][:-1]}, preempt=sound(fleet).preempt)
