"""Every infeasible example is explained with an irreducible set of limits and with repairs that work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.elastic_program import relief
from mast_opt.problems.data_placement.analysis.static_conflicts import conflicts
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.wording import quantity
from mast_opt.problems.mip import frozen
from tests.analysis.support import check_conflict, check_repairs
from tests.cli.conftest import write_tables
from tests.data_placement.analysis.test_static_conflicts import CASES
from tests.data_placement.strategies import problems
from tests.data_placement.support import proven
from tests.data_placement.workshop import PROBLEM, TB, TRAIN, A, B, C, grid, ints
from tests.examples import examples
from tests.narrowing import some

FREE = replace(PROBLEM, links=None)
PINS = mast_opt.read(Path(__file__).parents[3] / "instances" / "data_placement" / "infeasible-pins")


CLEAR = [name for name in CASES if name != "more data than storage"]
"""That one lacks a megabyte in twenty terabytes, which the verifier distinguishes and a solver may not."""


@pytest.mark.parametrize("problem", [CASES[name][0] for name in CLEAR], ids=CLEAR)
def test_what_shows_without_solving(problem: DataPlacement) -> None:
    answer = mast_opt.explain(problem)
    assert answer.seen == conflicts(problem)
    check_conflict(problem, answer)
    check_repairs(problem, answer)


@examples(25)
@given(problem=problems())
def test_limits_given_up_and_held_are_the_problem(problem: DataPlacement) -> None:
    """With every limit held, the program is as feasible as the formulation; with none, always feasible."""
    elastic = Elastic(relief(problem))
    every = np.ones(elastic.count, np.bool_)
    assert proven(elastic.held(every)).status is proven(base(problem).mip).status
    assert proven(elastic.held(~every)).status is Status.OPTIMAL


@examples(15)
@given(problem=problems(refuse=False))
def test_random_instances(problem: DataPlacement) -> None:
    answer = mast_opt.explain(problem, alternatives=2)
    event(some(answer.status).value)
    assume(answer.status is Status.INFEASIBLE)
    check_conflict(problem, answer)
    check_repairs(problem, answer)
    assert answer.repairs


def test_a_repair_leaves_room_for_whole_thousandths_of_split_work(tmp_path: Path) -> None:
    """1 core is missing; but only 743 thousandths of the work fit in 2.9 cores, so 1.0023 have to go elsewhere."""
    changes = {
        "workloads.csv": "workload,tier,cpu_cores,app,splittable\nfeed,0,3.9,feed,true\n",
        "gpu_demand.csv": "workload,gpu_type,gpus\n",
        "reads.csv": "workload,dataset,tb_per_day\nfeed,clicks,1\n",
        "cpu_quota.csv": "region,app,cpu_cores\neast,feed,0\nwest,feed,2.9\n",
    }
    problem = mast_opt.read(write_tables(tmp_path / "split", changes))
    answer = mast_opt.explain(problem, prices={"quota": 1.0}, alternatives=2)
    check_repairs(problem, answer)
    assert {repair.changes for repair in answer.repairs} == {
        ("raise CPU quota of feed in east by 2 cores",),
        ("raise CPU quota of feed in west by 1 core",),
    }


def test_a_repair_is_rounded_up_to_what_can_be_ordered() -> None:
    """By hand: 7.3 TB are pinned to 5 TB, so 2.3 TB are missing: 3 whole TB; where a quarter of the storage is kept
    free, 2.3 / 0.75 = 3.0666… of all storage, rounded up to 4."""
    larger = PINS.with_columns({"datasets.size_mb": PINS.datasets.size_mb + ints(0, 300_000)})
    only_storage = {"pin": float("inf"), "copies_min": float("inf")}
    (repair,) = mast_opt.explain(larger, prices=only_storage, alternatives=1).repairs
    assert repair.changes == ("raise storage of vault by 3 TB",)
    assert repair.exact == ("raise storage of vault by 2.3 TB",)
    assert repair.price == pytest.approx(2.3 / larger.usable_storage_mb.mean() * TB)
    assert int(repair.problem.regions.storage_mb[0]) == 8 * TB
    assert mast_opt.verify(repair.problem, repair.plan).ok

    storage = ints(6_666_667, *larger.regions.storage_mb[1:].tolist())
    kept = np.zeros(len(larger.regions), np.int64)
    kept[0] = 250
    part = larger.with_columns({"regions.storage_mb": storage, "regions.headroom_milli": frozen(kept)})
    (repair,) = mast_opt.explain(part, prices=only_storage, alternatives=1).repairs
    assert repair.changes == ("raise storage of vault by 4 TB",)
    assert repair.exact == ("raise storage of vault by 3.066667 TB",)
    assert int(repair.problem.regions.storage_mb[0]) == 6_666_667 + 4 * TB
    assert mast_opt.verify(repair.problem, repair.plan).ok


def test_pins_are_told_with_the_storage_that_they_fill() -> None:
    answer = mast_opt.explain(PINS)
    assert answer.conflict == ("storage of vault (5 TB) with datasets ledger and audit pinned there (7 TB)",)
    assert answer.repairs[0].changes == ("raise storage of vault by 2 TB",)
    dropped = {("drop the pin of audit to vault",), ("drop the pin of ledger to vault",)}
    assert {repair.changes for repair in answer.repairs[1:]} == dropped
    assert all(repair.cheapest for repair in answer.repairs)
    assert answer.repairs[0].price == pytest.approx(2 / 7)
    assert int(answer.repairs[0].problem.regions.storage_mb[0]) == 7 * TB


def test_what_is_not_in_the_way_is_not_told() -> None:
    """A third, small pin fits next to either of the two."""
    crowded = PINS.with_columns({"datasets.size_mb": PINS.datasets.size_mb + ints(0, 2 * TB)})
    answer = mast_opt.explain(crowded)
    assert answer.conflict == ("storage of vault (5 TB) with dataset audit pinned there (6 TB)",)


def test_packing_is_only_seen_by_solving() -> None:
    """Three workloads of six cores in two regions of ten: the linear relaxation fits, whole workloads do not."""
    six = FREE.with_columns(
        {
            "regions.cpu_mcores": ints(10_000, 10_000, 0),
            "regions.supply_mgpu": ints((8, 8), (8, 16), (0, 8)) * 1000,
            "workloads.cpu_mcores": ints(6000, 6000, 6000),
            "workloads.splittable": np.zeros(3, np.bool_),
            "workloads.pinned": np.zeros((3, 3), np.bool_),
            "workloads.forbidden": np.zeros((3, 3), np.bool_),
        }
    )
    assert not conflicts(six)
    answer = mast_opt.explain(six)
    check_conflict(six, answer)
    check_repairs(six, answer)
    assert answer.conflict == (
        "CPU of a (10 cores), CPU of b (10 cores) and CPU of c (0 cores)",
        "workloads train, etl and view must run (18 cores)",
    )
    assert answer.repairs[0].price == pytest.approx(2 / 20 * 3, rel=1e-6)
    assert len(answer.repairs[0].changes) == 1


def test_one_core_is_no_cores() -> None:
    one = FREE.with_columns({"regions.cpu_mcores": ints(500, 0, 0), "workloads.cpu_mcores": ints(1000, 500, 0)})
    words = [change for repair in mast_opt.explain(one, alternatives=1).repairs for change in repair.changes]
    assert any(change.endswith("by 1 core") for change in words), words
    assert quantity(2, "cores") == "2 cores"
    assert quantity(1, "TB a day") == "1 TB a day"


def test_prices_choose_the_repair() -> None:
    expensive = mast_opt.explain(PINS, prices={"storage": 10.0}, alternatives=1)
    assert expensive.repairs[0].changes[0].startswith("drop the pin")
    never = mast_opt.explain(PINS, prices={"pin": float("inf"), "storage": float("inf"), "copies_min": 2.0})
    assert not never.repairs


def test_several_changes_make_one_repair() -> None:
    """Two regions are too small for their pins, independently."""
    tight = FREE.with_columns(
        {
            "datasets.pinned": grid((0, A), (1, B)),
            "regions.storage_mb": ints(3, 4, 100) * TB,
            "regions.headroom_milli": ints(0, 0, 0),
        }
    )
    answer = mast_opt.explain(tight, alternatives=1)
    check_conflict(tight, answer)
    assert len(answer.conflict) == 1
    assert len(answer.repairs[0].changes) == 2
    check_repairs(tight, answer)


def test_advice_on_storage_is_in_terms_of_the_table() -> None:
    """Half of vault is kept free, so 2 TB that are missing are 4 TB to buy."""
    pinned = grid((0, A), (1, A))  # 10 TB
    vault = FREE.with_columns(
        {
            "datasets.pinned": pinned,
            "regions.storage_mb": ints(16, 100, 100) * TB,
            "regions.headroom_milli": ints(500, 0, 0),
        }
    )
    answer = mast_opt.explain(vault, prices={"pin": float("inf")}, alternatives=1)
    assert "usable storage of a (8 TB)" in answer.conflict[0]
    assert answer.repairs[0].changes == ("raise storage of a by 4 TB",)
    assert int(answer.repairs[0].problem.regions.storage_mb[A]) == 20 * TB
    check_repairs(vault, answer)


def test_a_workload_whose_region_lacks_its_gpus() -> None:
    """train accepts h100 and a100; c has a100 only once it is supplied."""
    nowhere = FREE.with_columns(
        {
            "workloads.forbidden": grid((TRAIN, A), (TRAIN, B)),
            "regions.supply_mgpu": ints((8, 0), (8, 16), (0, 0)) * 1000,
        }
    )
    nowhere = replace(nowhere, workloads=replace(nowhere.workloads, pinned=np.zeros((3, 3), np.bool_)))
    answer = mast_opt.explain(nowhere, prices={"served": float("inf")}, alternatives=6)
    check_conflict(nowhere, answer)
    assert any("supply" in change for repair in answer.repairs for change in repair.changes)
    check_repairs(nowhere, answer)
    assert int(nowhere.regions.supply_mgpu[C].sum()) == 0


def test_a_feasible_instance_has_nothing_to_explain() -> None:
    answer = mast_opt.explain(PROBLEM)
    assert answer.status is Status.FEASIBLE
    assert not answer.conflict
    assert not answer.repairs


def test_out_of_time_says_so() -> None:
    answer = mast_opt.explain(PINS, time_limit_s=1e-3)
    assert answer.status is Status.INFEASIBLE
    assert answer.conflict
    if not answer.limits:
        assert not answer.minimal
        assert answer.conflict == tuple(one.message for one in answer.seen)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prices": {"storge": 2.0}}, "no limit called 'storge'"),
        ({"prices": {"storage": 0.0}}, "above 0"),
        ({"solver": "tetris"}, "cannot prove"),
        ({"solver": "nobody"}, "expected one of"),
        ({"alternatives": -1}, "at least 0"),
        ({"names": ("check",)}, "give the plan"),
    ],
)
def test_arguments_that_cannot_be_honoured(given: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.explain(PINS, **given)
