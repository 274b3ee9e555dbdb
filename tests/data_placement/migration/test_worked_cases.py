"""Migrations worked out by hand: who moves when, who stops, and where a copy comes from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.migration import exact_search as steps_exact
from mast_opt.problems.data_placement.migration.loads import Loads
from mast_opt.problems.data_placement.migration.planner import Steps, steps
from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.migration.steps import Operation, RunStep, Step
from tests.data_placement.migration.handmade import NONE, Row, case, crowd, two_regions
from tests.data_placement.migrations import replay
from tests.data_placement.workshop import ints


def carried_out(problem: DataPlacement, plan: Plan) -> Steps:
    """The steps, which keep every limit and lead to the plan."""
    found = steps(problem, plan)
    replay(problem, plan, found)
    assert not found.blocked
    assert not found.waiting
    return found


def test_a_copy_takes_another_way_where_reads_fill_its_link() -> None:
    """d0 is copied from r0 to r2, 10 of 20 MB on day 0. w0 comes to r2 on day 1 and reads d1 over that whole link until
    there is one in r1, which takes the room of the d0 there. So the rest is copied from r1, on day 2; only then the
    replica in r1 goes and d1 comes. w1 holds w0 up until d2 is in r0."""
    problem, plan = case(
        room=(100, 20, 100),
        data=[(20, (0, 1), (0, 2)), (20, (0,), (0, 1)), (10, (2,), (0,))],
        work=[(8, 0, 2, (1,)), (8, 2, 0, (2,))],
        gpus=(16, 8, 8),
        links={(0, 2): 10, (1, 2): 10, (2, 0): 10, (0, 1): 10},
        changes={"datasets.copies_min": ints(2, 1, 1)},
    )
    found = carried_out(problem, plan)
    copied = [(step.day, step.days, step.source, step.kb) for step in found.steps if not step.deletes]
    assert copied == [
        (0, 1, 2, 10_000),
        (0, 1, 0, 10_000),
        (2, 1, 1, 10_000),
        (2, 1, 0, 10_000),
        (3, 1, 0, 10_000),
    ]
    assert [(run.workload, run.day) for run in found.runs] == [(1, 0), (0, 1)]
    assert [(step.dataset, step.region, step.day) for step in found.steps if step.deletes] == [(2, 2, 0), (0, 1, 2)]


def test_a_copy_from_two_regions_goes_on_from_one_of_them() -> None:
    """As above, but the plan copies half of d0 from each of r0 and r1. What is left on the full link comes from r1, and
    the replica there goes when the copy is whole."""
    problem, plan = case(
        room=(100, 40, 100),
        data=[(40, (0, 1), (0, 2)), (40, (0,), (0, 1)), (10, (2,), (0,))],
        work=[(8, 0, 2, (1,)), (8, 2, 0, (2,))],
        gpus=(16, 8, 8),
        links={(0, 2): 10, (1, 2): 10, (2, 0): 10, (0, 1): 10},
        changes={"datasets.copies_min": ints(2, 1, 1)},
    )
    plan = replace(
        plan,
        copy_dataset=ints(0, 0, 1, 2),
        copy_source=ints(0, 1, 0, 2),
        copy_target=ints(2, 2, 1, 0),
        copy_share=ints(500, 500, 1000, 1000),
    )
    found = carried_out(problem, plan)
    copied = [(step.day, step.source, step.kb) for step in found.steps if step.dataset == 0 and not step.deletes]
    assert copied == [(0, 0, 10_000), (0, 1, 10_000), (1, 1, 10_000), (2, 1, 10_000)]
    assert [(step.dataset, step.region, step.day) for step in found.steps if step.deletes] == [(2, 2, 0), (0, 1, 2)]
    assert not found.stops


def test_days_that_are_alike_are_one_row_until_a_copy_ends() -> None:
    """30 MB to r1 and 50 MB to r2, 10 a day each: day 0, then days that are alike up to the one before the last."""
    problem, plan = case(
        room=(100, 100, 100),
        data=[(30, (0,), (1,)), (50, (0,), (2,))],
        work=[],
        gpus=(0, 0, 0),
        links={(0, 1): 10, (0, 2): 10},
    )
    found = carried_out(problem, plan)
    days = {i: [(s.day, s.days) for s in found.steps if s.dataset == i and not s.deletes] for i in (0, 1)}
    assert days == {0: [(0, 1), (1, 1), (2, 1)], 1: [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]}
    assert [(s.dataset, s.day) for s in found.steps if s.deletes] == [(0, 2), (1, 4)]
    longer, plan = case(
        room=(100, 100, 100),
        data=[(70, (0,), (1,)), (90, (0,), (2,))],
        work=[],
        gpus=(0, 0, 0),
        links={(0, 1): 10, (0, 2): 10},
    )
    found = carried_out(longer, plan)
    days = {i: [(s.day, s.days) for s in found.steps if s.dataset == i and not s.deletes] for i in (0, 1)}
    assert days == {0: [(0, 1), (1, 5), (6, 1)], 1: [(0, 1), (1, 5), (6, 1), (7, 1), (8, 1)]}
    assert found.days == 9


def test_a_copy_comes_from_where_the_plan_says_else_over_the_widest_link() -> None:
    moving = Moving(
        *case(
            room=(10,) * 5,
            data=[(10, (0, 1, 3, 4), (2,))],
            work=[],
            gpus=(0,) * 5,
            links={(0, 2): 5, (1, 2): 7, (3, 2): 9, (4, 2): 0},
        )
    )
    answers = {
        (0, 1, 3, 4): ((0, 1000),),
        (1, 3, 4): ((3, 1000),),
        (1, 4): ((1, 1000),),
        (4,): None,
        (): None,
    }
    assert {held: moving.sources(0, 2, frozenset(held)) for held in answers} == answers
    upload = Moving(*case(room=(10, 10), data=[(10, (), (1,))], work=[], gpus=(0, 0)))
    assert upload.sources(0, 1, frozenset()) == ()


def test_several_parts_stop_where_one_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """w0 needs 9 GPUs in west, of which w1 and w3 have 4 each; they stop, since a stop of w0 costs 9. So also where no
    exhaustive search is made."""
    problem, plan = crowd((9, 4, 1, 4))
    for most in (10_000, 0):
        monkeypatch.setattr(steps_exact, "MOST_STEPS", most)
        found = carried_out(problem, plan)
        assert sorted(stop.part.workload for stop in found.stops) == [1, 3]
        assert sum(stop.mgpu for stop in found.stops) == 8000
        assert found.proven == bool(most)


@pytest.mark.parametrize("most", [10_000, 0], ids=["exhaustive", "without a search"])
def test_work_reads_remotely_for_a_while_rather_than_stop(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """d0 and d1 fill r0 and r1 and change places. w1, which reads d1 in r1, reads that in r2 until d1 is in r0."""
    monkeypatch.setattr(steps_exact, "MOST_STEPS", most)
    problem, plan = case(
        room=(10, 10, 10),
        data=[(10, (0,), (1,)), (10, (1, 2), (0, 2))],
        work=[(8, 0, 1, (0,)), (8, 1, 0, (1,))],
        gpus=(16, 16, 0),
    )
    found = carried_out(problem, plan)
    assert not found.stops
    rows: list[Step | RunStep] = sorted([*found.steps, *found.runs], key=lambda row: row.wave)
    assert [(row.dataset, row.region) if isinstance(row, Step) else row.workload for row in rows] == [
        (1, 1),
        (0, 1),
        0,
        (0, 0),
        (1, 0),
        1,
    ]


@pytest.mark.parametrize("most", [10_000, 0], ids=["exhaustive", "without a search"])
def test_work_moves_ahead_of_its_data_rather_than_stop(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """w0 leaves its GPUs in r0 to w1, whose output leaves its room in r1 to d0, which w0 reads in r0 until then."""
    monkeypatch.setattr(steps_exact, "MOST_STEPS", most)
    problem, plan = case(
        room=(20, 10),
        data=[(10, (0,), (1,))],
        work=[(8, 0, 1, (0,)), (8, 1, 0, ())],
        gpus=(8, 16),
        links={(0, 1): 100, (1, 0): 100},
        changes={"workloads.output_mb": ints(0, 10)},
    )
    found = carried_out(problem, plan)
    assert not found.stops
    assert [(run.workload, run.wave) for run in found.runs] == [(0, 0), (1, 1)]
    assert [(step.region, step.deletes, step.wave) for step in found.steps] == [(1, False, 2), (0, True, 3)]
    forbidden = replace(problem, remote_reads=False)
    assert [stop.part.workload for stop in carried_out(forbidden, plan).stops]


@pytest.mark.parametrize("most", [10_000, 0], ids=["exhaustive", "without a search"])
def test_work_stops_that_needs_the_links_from_two_replicas(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """w0 reads d0 in r2 over both links, so d0 stays in r1 and d1, which w1 needs there, does not come; w1 holds the
    GPUs in r0 that w0 shall have. w0 has fewer GPUs, so it stops."""
    monkeypatch.setattr(steps_exact, "MOST_STEPS", most)
    problem, plan = case(
        room=(10, 10, 10),
        data=[(10, (0, 1), (0,)), (10, (2,), (1,))],
        work=[(4, 2, 0, (0,)), (8, 0, 1, (1,))],
        gpus=(8, 8, 8),
        links={(0, 2): 5, (1, 2): 5, (2, 1): 5, (2, 0): 10},
    )
    found = carried_out(problem, plan)
    assert [(stop.part.workload, stop.mgpu, stop.day) for stop in found.stops] == [(0, 4000, 0)]


def test_of_orders_that_stop_as_much_the_shortest_is_taken() -> None:
    """w0 and w1 exchange regions, so one of them has to stop, after both copies. d1 comes to r1 once the d0 there is
    gone; that need not wait for the copy of d0, since there is another one in r2."""
    problem, plan = case(
        room=(60, 20, 60),
        data=[(20, (1, 2), (0,)), (20, (0, 2), (0, 1, 2))],
        work=[(8, 0, 1, (1,)), (8, 1, 0, (1,))],
        gpus=(8, 8, 1),
        changes={"regions.ingress_limited": np.ones(3, np.bool_), "regions.ingress_mb_per_day": ints(10, 10, 10)},
    )
    found = carried_out(problem, plan)
    assert [(step.dataset, step.day) for step in found.steps if not step.deletes] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert ([stop.mgpu for stop in found.stops], found.days, found.proven) == ([8000], 2, True)


def test_the_stopover_is_the_one_that_stops_nobody() -> None:
    """d0 and d1 change places over r2. w0 reads d0, wherever it is in r0 or r1; so it is d1 that goes to r2."""
    problem, plan = case(
        room=(5, 5, 5),
        data=[(5, (0,), (1,)), (5, (1,), (0,))],
        work=[(8, 0, 1, (0,))],
        gpus=(8, 8, 8),
        changes={"remote_reads": False},
    )
    found = carried_out(problem, plan)
    assert not found.stops
    assert [(step.dataset, step.region, step.deletes) for step in found.steps if step.hop] == [
        (1, 2, False),
        (1, 2, True),
    ]
    assert [room.mb for room in found.room] == [5]
    assert found.proven


def test_copies_that_wait_for_the_next_day_do_not_end_an_order() -> None:
    """The best order stops 8 GPUs, where stopping whoever is cheapest at the moment stops 12. Two datasets come to
    west, which takes one a day."""
    problem, plan = crowd((8, 8, 7, 4))
    problem = problem.with_columns(
        {
            "regions.ingress_mb_per_day": ints(0, 5),
            "regions.ingress_limited": np.array([False, True]),
            "datasets.size_mb": ints(5, 5),
            "datasets.copies_max": ints(2, 2),
            "links": None,
        }
    )
    plan = replace(
        plan,
        place=np.ones((2, 2), np.bool_),
        **{f"copy_{name}": NONE.copy() for name in ("dataset", "source", "target", "share")},
    )
    found = carried_out(problem, plan)
    assert sum(stop.mgpu for stop in found.stops) == 8000
    assert [step.day for step in found.steps] == [0, 1]


def test_an_untyped_run_is_on_a_type_that_its_region_has() -> None:
    """Where today's row says no type: the first acceptable one that the region has; the plan runs it elsewhere."""
    problem, plan = two_regions()
    problem = problem.with_columns(
        {
            "gpu_types": ("a100", "h100"),
            "regions.supply_mgpu": ints([0, 8000], [0, 8000]),
            "regions.gpu_price_micro": ints([0, 0], [0, 0]),
            "options.workload": ints(0, 0),
            "options.gpu_type": ints(0, 1),
            "options.mgpu": ints(16_000, 8000),
            "current_runs.gpu_type": ints(2),
        }
    )
    plan = replace(plan, run_type=ints(1))
    assert [run.source for run in carried_out(problem, plan).runs] == [(0, 1)]
    (move,) = [move for move in mast_opt.steps(problem, plan).moves if move.action == "move"]
    assert (move.source, move.gpu_type, move.amount) == ("east", "h100", 8)


def test_work_that_ends_is_stopped_once() -> None:
    """The exact order names the end of w1 as a step of its own; it also ends first where nothing else can go on."""
    work: list[Row] = [(8, 0, 1, ()), (0, 0, None, ()), (1, None, 0, ()), (1, 1, 0, ())]
    problem, plan = case((30, 30, 30), [(2, (2,), (2,))], work, (4, 4, 4))
    order = steps(problem, plan)
    assert [(row.source, row.target) for row in order.runs if row.workload == 1] == [((0, 0), None)]
    replay(problem, plan, order)


@pytest.mark.parametrize("most", [10_000, 0], ids=["exhaustive", "without a search"])
def test_a_replica_in_between_leaves_the_room_of_outputs_to_come(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """d0 and d1 change places over r2, where w0 holds 10 of 20 MB until w1 brings its output there. w0 waits for w2,
    w2 for w1, and r1 has room for d0 only without w1. A d1 that came to r2 first would hold all of them up."""
    monkeypatch.setattr(steps_exact, "MOST_STEPS", most)
    problem, plan = case(
        room=(20, 20, 20, 10),
        data=[(20, (0,), (1,)), (10, (1,), (0,))],
        work=[(8, 2, 3, ()), (8, 1, 2, ()), (8, 3, 1, ())],
        gpus=(0, 8, 16, 8),
        changes={"workloads.output_mb": ints(10, 10, 0)},
    )
    found = carried_out(problem, plan)
    assert not found.stops
    assert [run.workload for run in found.runs] == [1, 2, 0]
    assert [step.region for step in found.steps if step.hop] == [2, 2]


def test_a_new_day_lets_a_replica_go_whose_readers_need_the_link() -> None:
    """w0 and w1 will read d0 over the link of 25 MB a day. On day 0, w2 reads 10 MB over it until it moves, and the
    copy of d2 takes 10."""
    problem, plan = case(
        room=(100, 100),
        data=[(10, (0, 1), (1,)), (10, (1,), (1,)), (10, (1,), (0, 1))],
        work=[(1, 0, 0, (0,)), (1, 0, 0, (0,)), (1, 0, 1, (1,))],
        gpus=(8, 8),
        links={(1, 0): 25},
    )
    found = carried_out(problem, plan)
    assert [(step.dataset, step.day, step.deletes) for step in found.steps] == [(2, 0, False), (0, 1, True)]
    assert not found.stops


def test_work_that_moves_lets_a_replica_go_whose_readers_need_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """w0 will read d0 over the link of 15 MB a day, over which w1 reads d1 until it moves, on the same day. The order
    needs no search."""
    monkeypatch.setattr(steps_exact, "MOST_STEPS", 0)
    problem, plan = case(
        room=(100, 100),
        data=[(10, (0, 1), (1,)), (10, (1,), (1,))],
        work=[(1, 0, 0, (0,)), (1, 0, 1, (1,))],
        gpus=(8, 8),
        links={(1, 0): 15},
    )
    found = carried_out(problem, plan)
    assert [(step.dataset, step.day, step.deletes) for step in found.steps] == [(0, 0, True)]
    assert not found.stops
    assert found.proven


def test_the_search_leaves_room_for_all_work_to_come() -> None:
    """r0 has 8 of 16 GPUs free. w0 and w1 come there, w2 leaves it for the GPUs of w1: so w1 goes first, then nobody
    has to stop."""
    problem, plan = case((10, 10, 10), [(1, (0,), (0,))], [(8, 2, 0, ()), (8, 1, 0, ()), (8, 0, 1, ())], (16, 8, 8))
    moving = Moving(problem, plan)
    found = steps_exact.least_stops(moving, Loads(moving), hops=False)
    assert found == steps_exact.Found(tuple(Operation("enter", u) for u in (1, 2, 0)), (0, 0), True)


def test_what_fits_together_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """d0 and the output of w0 fill r0 to the last MB."""
    monkeypatch.setattr(steps_exact, "MOST_STEPS", 0)
    outputs = {"workloads.output_mb": ints(10)}
    moving = Moving(*case((20, 20), [(10, (1,), (0, 1))], [(8, 1, 0, ())], (8, 8), changes=outputs))
    found = steps_exact.least_stops(moving, Loads(moving), hops=False)
    assert found == steps_exact.Found((Operation("enter", 0), Operation("copy", 0, 0)), (0, 0), True)
