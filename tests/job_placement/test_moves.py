"""Moves of running jobs, by hand: what they let in, what broken ones are called, their order, their tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UnsupportedOption
from mast_opt.planner.io import write_plan
from mast_opt.planner.io.checksum import checksum
from mast_opt.problems.job_placement import JobPlacement, Plan
from mast_opt.problems.job_placement.analysis.hooks import adapted, alternatives, lose_clusters
from mast_opt.problems.job_placement.entities import Clusters, Movable, MoveLimits, Racks, Servers
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble
from mast_opt.problems.job_placement.migration.plan_rows import migration_plan
from mast_opt.problems.job_placement.plan import empty
from mast_opt.problems.job_placement.presentation.sections import sections
from mast_opt.problems.job_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.problems.job_placement.units import MOVES, RESTART_GPU_HOURS
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.narrowing import some


def fleet(held: list[tuple[int, int, int, int, int, int]], *, wanted: int = 4000) -> JobPlacement:
    """Three servers of four GPUs in two racks of one cluster, a fourth in another region; one job waits for ``wanted``
    milli-GPUs on one server. Every running job is movable at one GPU-hour; none may be stopped."""
    here = GeneratedFleet(
        regions=("east", "west"),
        gpu_types=("a100",),
        clusters=Clusters(("ce", "cw"), np.array([0, 1])),
        racks=Racks(("b1", "b2", "b3"), np.array([0, 0, 1])),
        servers=Servers(
            ("e1", "e2", "e3", "w1"), np.array([0, 0, 1, 2]), np.zeros(4, np.int64), np.array([[4000, 16_000, 64]] * 4)
        ),
    )
    count = max(row[0] for row in held) + 1
    running = Running([0] * count, [False] * count, [0] * count, held)
    one = np.ones(1, np.int64)
    waiting = Pending(0 * one, one, wanted * one, one, one, 1000 * one, (0 * one, 0 * one))
    problem = assemble("moves", here, running, waiting).with_columns(
        {"jobs.labels": ("big",), "running.labels": tuple("abcd"[:count]), "datasets.labels": ("logs",)}
        | {"datasets.stored": np.array([[True, False]]), "datasets.residency": np.array([[False, False]])}
        | {"reads.job": 0 * one, "reads.dataset": 0 * one, "reads.mb_per_day": 0 * one}
    )
    return replace(problem, movable=Movable(np.arange(count), np.full(count, 1000)))


def scattered() -> JobPlacement:
    """a on e1, b on e2, two tasks of c on e3: two GPUs each, so that four are free nowhere."""
    return fleet([(0, 0, 1, 2000, 1000, 1), (1, 1, 1, 2000, 1000, 1), (2, 2, 2, 1000, 1000, 1)])


def moved(problem: JobPlacement, *rows: tuple[str, str, int, int | None], start: str | None = None) -> Plan:
    """(running job, server, tasks, GPU or None) of moved jobs, and where the waiting job starts."""
    v = np.array([problem.running.labels.index(row[0]) for row in rows], np.int64)
    server = np.array([problem.servers.labels.index(row[1]) for row in rows], np.int64)
    plan = replace(
        empty(problem),
        moved=v,
        moved_server=server,
        moved_tasks=np.array([row[2] for row in rows], np.int64),
        moved_gpu_index=np.array([row[3] or 0 for row in rows], np.int64),
        moved_indexed=np.array([row[3] is not None for row in rows], np.bool_),
    )
    if start is None:
        return plan
    one = np.ones(1, np.int64)
    at = one * problem.servers.labels.index(start)
    return replace(plan, job=0 * one, server=at, tasks=one, gpu_index=0 * one, indexed=np.zeros(1, np.bool_))


def broken(problem: JobPlacement, plan: Plan) -> list[str]:
    return [violation.name for violation in verify(problem, plan).violations]


def limited(problem: JobPlacement, limit: int, most_milli: int) -> JobPlacement:
    return replace(problem, move_limits=MoveLimits(np.array([limit]), np.array([most_milli])))


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
def test_one_move_lets_a_waiting_job_in(solver: Any) -> None:
    problem = scattered()
    solution = mast_opt.solve(problem, solver, threads=1)
    assert len(some(solution.plan).moved) == 1
    assert solution.verdict is not None
    assert solution.verdict.metrics["admitted_jobs"] == 1
    assert (solution.verdict.metrics["moved_jobs"], solution.verdict.metrics["moved_gpus"]) == (1, 2)
    assert solution.verdict.metrics["restart_gpu_hours"] == 1
    assert solution.verdict.terms["preemption"] == pytest.approx(1 / 16)


@pytest.mark.parametrize("limit", [MOVES, RESTART_GPU_HOURS])
def test_a_limit_on_moves_keeps_it_out(limit: int) -> None:
    """A move is one move, and costs one GPU-hour."""
    barely, less = limited(scattered(), limit, 1000), limited(scattered(), limit, 999)
    assert some(mast_opt.solve(barely, threads=1).verdict).metrics["admitted_jobs"] == 1
    assert some(mast_opt.solve(less, threads=1).verdict).metrics["admitted_jobs"] == 0


def test_without_the_table_nothing_is_new() -> None:
    problem = replace(scattered(), movable=Movable(np.zeros(0, np.int64), np.zeros(0, np.int64)))
    assert checksum(problem) != checksum(scattered())
    assert set(verify(problem, empty(problem)).metrics) & {"moved_jobs", "moved_gpus", "restart_gpu_hours"} == set()
    assert some(mast_opt.solve(problem, threads=1).verdict).metrics["admitted_jobs"] == 0


@pytest.mark.parametrize(
    ("rows", "start", "names"),
    [
        ([("a", "e2", 1, None)], "e1", []),
        ([("a", "e2", 1, None)], None, []),
        # nobody has left
        ([], "e1", ["capacity[e1,0,gpu]"]),
        # on what another job holds
        ([("a", "e2", 1, None), ("c", "e2", 2, None)], None, ["capacity[e2,0,gpu]"]),
        # a task lost, a task too many
        ([("c", "e1", 1, None)], None, ["moved[c]"]),
        ([("c", "e1", 2, None), ("c", "e3", 1, None)], None, ["moved[c]", "stays[c]", "stays[c]"]),
        # less close together than it was: two servers, then two clusters
        ([("c", "e1", 1, None), ("c", "e2", 1, None)], None, ["stays[c]"]),
        ([("a", "w1", 1, None)], None, ["stays[a]"]),
        # rows that are no rows
        ([("a", "e2", 0, None)], None, ["moves[a,e2]"]),
        ([("c", "e1", 1, None), ("c", "e1", 1, None)], None, ["moves[c,e1]"]),
        # a whole GPU that is taken, and one that is not there
        ([("a", "e2", 1, 1)], None, ["device[e2,0,1]"]),
        ([("a", "e2", 1, 3)], None, ["device[e2,0,3]"]),
    ],
)
def test_the_verifier_names_what_a_move_breaks(rows: list[Any], start: str | None, names: list[str]) -> None:
    problem = scattered()
    assert broken(problem, moved(problem, *rows, start=start)) == names


def test_jobs_that_may_not_be_moved_are_named() -> None:
    problem = scattered()
    fixed = replace(problem, movable=problem.movable.rows(np.array([False, True, True])))
    assert broken(fixed, moved(fixed, ("a", "e2", 1, None))) == ["movable[a]"]
    both = replace(problem, running=replace(problem.running, preemptible=np.array([True, False, False])))
    plan = replace(moved(both, ("a", "e2", 1, None)), preempt=np.array([True, False, False]))
    assert broken(both, plan) == ["interrupted[a]"]
    for field, last in (("moved", 2), ("moved_server", 3)):
        (wrong,) = verify(problem, replace(moved(problem, ("a", "e2", 1, None)), **{field: np.array([9])})).violations
        assert (wrong.constraint, wrong.amount, wrong.limit) == ("moves", 9 - last, last)


def test_a_fraction_needs_a_gpu_with_room() -> None:
    problem = fleet([(0, 0, 1, 500, 0, 0), (1, 1, 1, 700, 0, 0)])
    assert broken(problem, moved(problem, ("a", "e2", 1, 1), start="e1")) == []
    assert broken(problem, moved(problem, ("a", "e2", 1, 0))) == ["device[e2,0,0]"]
    assert broken(problem, moved(problem, ("a", "e2", 1, None))) == ["split[a,e2]"]
    together = mast_opt.solve(fleet([(0, 0, 1, 500, 0, 0), (1, 1, 1, 500, 0, 0), (2, 2, 1, 500, 0, 0)]), threads=1)
    assert some(together.verdict).metrics["admitted_jobs"] == 1


def test_a_move_takes_nothing_that_a_victim_frees() -> None:
    """b may be stopped; a may not go where it was."""
    problem = fleet([(0, 0, 1, 3000, 0, 0), (1, 1, 1, 2000, 0, 0)])
    problem = replace(
        problem,
        tiers=(0, 1),
        running=replace(problem.running, tier=np.array([0, 1]), preemptible=np.array([False, True])),
    )
    plan = replace(moved(problem, ("a", "e2", 1, None)), preempt=np.array([False, True]))
    assert broken(problem, plan) == ["capacity[e2,1,gpu]"]


def test_a_move_waits_for_its_target() -> None:
    """b leaves e2 for e3, then a goes to e2, then the waiting job starts."""
    problem = fleet([(0, 0, 1, 3000, 0, 0), (1, 1, 1, 2000, 0, 0), (2, 2, 1, 2000, 0, 0)])
    plan = moved(problem, ("a", "e2", 1, None), ("b", "e3", 1, None), start="e1")
    assert broken(problem, plan) == []
    found = migration_plan(problem, plan)
    assert [(move.wave, move.action, move.what, move.source, move.target) for move in found.moves] == [
        (0, "move", "b", "e2", "e3"),
        (1, "move", "a", "e1", "e2"),
        (2, "start", "big", None, "e1"),
    ]
    assert found.stopped == ()


def test_jobs_that_change_places_need_a_stop() -> None:
    problem = fleet([(0, 0, 1, 3000, 0, 0), (1, 1, 1, 4000, 0, 0), (2, 2, 1, 4000, 0, 0)], wanted=1000)
    problem = replace(problem, movable=Movable(np.arange(2), np.array([1000, 2000])))
    plan = moved(problem, ("a", "e2", 1, None), ("b", "e1", 1, None), start="e2")
    assert broken(problem, plan) == []
    found = migration_plan(problem, plan)
    assert [(move.wave, move.action, move.what, move.target) for move in found.moves] == [
        (0, "stop", "a", None),
        (1, "move", "b", "e1"),
        (2, "start", "a", "e2"),
        (3, "start", "big", "e2"),
    ]
    assert [(stop.what, stop.gpus) for stop in found.stopped] == [("a", 3.0)]


def test_tables_keep_moves(tmp_path: Path) -> None:
    problem = limited(scattered(), RESTART_GPU_HOURS, 2500)
    mast_opt.write(problem, tmp_path / "instance")
    again = mast_opt.read(tmp_path / "instance")
    assert again == problem
    solution = mast_opt.solve(problem, threads=1)
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    assert mast_opt.read_plan(problem, tmp_path / "plan") == solution.plan
    still = empty(problem)
    write_plan(problem, still, {}, tmp_path / "still")
    assert not (tmp_path / "still" / "moves.csv").exists()
    assert mast_opt.read_plan(problem, tmp_path / "still") == still


def test_a_movable_job_is_a_gang() -> None:
    uneven = fleet([(0, 0, 1, 2000, 0, 0)]).with_columns(
        {"allocations.running": np.array([0, 0]), "allocations.server": np.array([0, 1])}
        | {"allocations.tasks": np.array([1, 1]), "allocations.need": np.array([[1000, 0, 0], [2000, 0, 0]])}
        | {"allocations.gpu_index": np.zeros(2, np.int64), "allocations.indexed": np.zeros(2, np.bool_)}
        | {"movable.running": np.zeros(0, np.int64), "movable.restart_mgpu_hours": np.zeros(0, np.int64)}
    )
    with pytest.raises(InstanceError, match=r"tasks are equal"):
        replace(uneven, movable=Movable(np.array([0]), np.array([0])))
    header, tables = problem_to_tables(uneven)
    rows = {"job": np.array([0]), "restart_gpu_hours": np.array([1000])}
    movable = replace(tables, values={**tables.values, "movable": rows}, missing=tables.missing - {"movable"})
    with pytest.raises(InstanceError, match=r"movable.* row 1.*tasks are equal"):
        problem_from_tables(header, movable)


def test_baselines_say_that_they_move_nothing() -> None:
    for solver in ("federated", "fgd", "best-fit"):
        with pytest.raises(UnsupportedOption, match="moves no running jobs, and the table movable has 3"):
            mast_opt.solve(scattered(), solver, threads=1)


def test_what_is_said_of_moves() -> None:
    problem = scattered()
    plan = moved(problem, ("a", "e2", 1, None), start="e1")
    (section,) = [one for one in sections(problem, plan) if one.title == "Jobs moved"]
    assert section.rows == (("a", 0, 2.0, "e1", "e2", 1.0),)
    found = {alternative.words: alternative for alternative in alternatives(problem, plan, 0)}
    assert "rejected" in found
    assert len(some(found["rejected"].plan).moved) == 1


def test_a_lost_cluster_takes_its_moves_along() -> None:
    problem = scattered()
    plan = moved(problem, ("a", "e2", 1, None))
    lost = lose_clusters(problem, ["ce"])
    assert len(lost.movable) == 0
    assert broken(lost, adapted(lost, plan)) == []
