"""Every conflict is a proof: an instance that has one has no plan. And each kind of conflict is found and worded."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event, given

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.problems.data_placement import DataPlacement, Links
from mast_opt.problems.data_placement.analysis.static_conflicts import conflicts
from mast_opt.problems.data_placement.formulation.formulation import base
from tests.data_placement.strategies import problems
from tests.data_placement.support import proven
from tests.data_placement.workshop import ETL, IMAGES, LOGS, PLAN, PROBLEM, TB, TRAIN, VIDEO, VIEW, A, B, C, grid, ints
from tests.examples import examples

FREE = replace(PROBLEM, links=None)


@examples(250)
@given(problem=problems())
def test_an_instance_with_a_conflict_has_no_plan(problem: DataPlacement) -> None:
    found = conflicts(problem)
    event(f"conflicts: {bool(found)}")
    if found:
        assert proven(base(problem).mip).status is Status.INFEASIBLE, [str(conflict) for conflict in found]


@pytest.mark.parametrize("problem", [PROBLEM, FREE], ids=["links", "free"])
def test_a_feasible_instance_has_none(problem: DataPlacement) -> None:
    assert conflicts(problem) == ()


CASES: dict[str, tuple[DataPlacement, str, tuple[str, ...], str]] = {
    "copies over the maximum": (
        replace(FREE, datasets=replace(FREE.datasets, copies_min=ints(3, 1, 1))),
        "copies",
        ("logs",),
        "dataset logs needs at least 3 copies but may have at most 2",
    ),
    "pins over the maximum": (
        replace(FREE, datasets=replace(FREE.datasets, pinned=grid((VIDEO, A), (VIDEO, C)), copies_max=ints(3, 3, 1))),
        "copies",
        ("video",),
        "dataset video is pinned to 2 regions but may have at most 1 copy",
    ),
    "copies over the regions allowed": (
        FREE.with_columns({"datasets.copies_min": ints(1, 1, 2), "datasets.forbidden": grid((VIDEO, A), (VIDEO, B))}),
        "copies",
        ("video",),
        "dataset video needs 2 copies but is forbidden in all regions but 1",
    ),
    "copies over the regions with room": (
        replace(FREE, datasets=replace(FREE.datasets, copies_min=ints(1, 1, 3))),
        "copies",
        ("video",),
        (
            "dataset video (9 TB) needs 3 copies but fits in 2 of the 3 allowed regions: "
            "too little ingress after pinned data in 1"
        ),
    ),
    "storage next to pins": (
        replace(FREE, regions=replace(FREE.regions, storage_mb=ints(8, 16, 8) * TB)),
        "copies",
        ("video",),
        ("dataset video (9 TB) fits in none of the 3 allowed regions: too little storage after pinned data in 3"),
    ),
    "pinned and forbidden": (
        replace(FREE, datasets=replace(FREE.datasets, forbidden=grid((IMAGES, B)))),
        "place",
        ("images", "b"),
        "dataset images is both pinned to and forbidden in b",
    ),
    "a pin that no link reaches": (
        PROBLEM.with_columns({"datasets.pinned": grid((LOGS, C)), "datasets.forbidden": grid(), "days": Fraction(3)}),
        "place",
        ("logs", "c"),
        (
            "dataset logs (4 TB) is pinned to c, but no links from the regions that hold it carry that much in 3 days: "
            "1 TB too much; 4 days, or 0.333334 TB a day more, would do"
        ),
    ),
    "pins over storage": (
        FREE.with_columns(
            {
                "datasets.pinned": grid((IMAGES, B), (VIDEO, B), (LOGS, B)),
                "regions.ingress_limited": np.zeros(3, np.bool_),
            }
        ),
        "storage",
        ("b",),
        "datasets pinned to b need 19 TB but it has 18 TB usable storage",
    ),
    "pins over ingress": (
        replace(FREE, datasets=replace(FREE.datasets, pinned=grid((VIDEO, B)))),
        "ingress",
        ("b",),
        (
            "datasets pinned to b that it does not hold yet are 9 TB but its ingress takes 4 TB in 1 day: "
            "5 TB too much; 3 days, or 5 TB a day more, would do"
        ),
    ),
    "work that is banned everywhere": (
        replace(FREE, workloads=replace(FREE.workloads, forbidden=grid((VIEW, C)))),
        "served",
        ("view",),
        "workload view can run in none of the 3 regions: closed by workload_rules in 3",
    ),
    "a type that is not there": (
        replace(FREE, regions=replace(FREE.regions, supply_mgpu=ints((8, 0), (8, 16), (0, 0)) * 1000)),
        "served",
        ("view",),
        (
            "workload view can run in none of the 3 regions: closed by workload_rules in 2, "
            "no GPUs of its types (a100) in 1"
        ),
    ),
    "too many cores": (
        replace(FREE, workloads=replace(FREE.workloads, cpu_mcores=ints(10, 50, 101) * 1000)),
        "served",
        ("view",),
        (
            "workload view can run in none of the 3 regions: closed by workload_rules in 2, "
            "fewer than 101 cores or too small a quota of its application in 1"
        ),
    ),
    "too many cores in parts": (
        replace(FREE, workloads=replace(FREE.workloads, cpu_mcores=ints(10, 250, 5) * 1000, forbidden=grid((ETL, A)))),
        "served",
        ("etl",),
        "workload etl needs 250 cores but may use 200 cores in all regions where it may run",
    ),
    "data that may not be near": (
        replace(FREE, remote_reads=False, datasets=replace(FREE.datasets, forbidden=grid((VIDEO, C)))),
        "served",
        ("view",),
        (
            "workload view can run in none of the 3 regions: closed by workload_rules in 2, "
            "too little room for all of its datasets, and no remote reads, in 1"
        ),
    ),
    "work in one region over its cores": (
        FREE.with_columns(
            {"workloads.cpu_mcores": ints(10, 60, 50) * 1000, "workloads.pinned": grid((VIEW, C), (ETL, C))}
        ),
        "cpu",
        ("c",),
        "work that can run only in c needs 110 cores but it has 100 cores",
    ),
    "work in one region over its quota": (
        FREE.with_columns(
            {
                "workloads.app": ints(0, 0, 1),
                "workloads.cpu_mcores": ints(8, 5, 5) * 1000,
                "workloads.pinned": grid((TRAIN, B), (ETL, B)),
            }
        ),
        "quota",
        ("b", "ads"),
        "work of ads that can run only in b needs 13 cores but its quota there is 10 cores",
    ),
    "outputs next to pins": (
        FREE.with_columns({"datasets.pinned": grid((VIDEO, C)), "workloads.output_mb": ints(0, 0, 12 * TB)}),
        "storage",
        ("c",),
        (
            "datasets pinned to c need 9 TB and outputs of work that can run only there 12 TB, "
            "but it has 20 TB usable storage"
        ),
    ),
    "more cores than there are": (
        FREE.with_columns(
            {
                "workloads.cpu_mcores": ints(100, 100, 100) * 1000,
                "regions.cpu_mcores": ints(100, 100, 99) * 1000,
                "cpu_quotas.cpu_mcores": ints(TB),
            }
        ),
        "cpu",
        (),
        "all work needs 300 cores but all regions have 299 cores",
    ),
    "more than all quotas": (
        FREE.with_columns(
            {
                "workloads.app": ints(0, 0, 1),
                "workloads.cpu_mcores": ints(10, 10, 5) * 1000,
                "cpu_quotas.region": ints(A, B, C),
                "cpu_quotas.app": ints(0, 0, 0),
                "cpu_quotas.cpu_mcores": ints(1, 10, 8) * 1000,
            }
        ),
        "quota",
        ("ads",),
        "work of ads needs 20 cores but may use 19 cores in all regions together",
    ),
    "more data than storage": (
        replace(FREE, regions=replace(FREE.regions, storage_mb=ints(9, 6, 5) * TB, headroom_milli=ints(0, 0, 0))),
        "storage",
        (),
        "the fewest copies allowed and all outputs need 20.000001 TB but all regions have 20 TB",
    ),
    "more copies than ingress": (
        FREE.with_columns(
            {
                "regions.ingress_limited": np.ones(3, np.bool_),
                "regions.ingress_mb_per_day": ints(4, 2, 9) * TB,
                "datasets.copies_min": ints(2, 2, 1),
            }
        ),
        "ingress",
        (),
        (
            "at least 19 TB have to be copied but ingress takes 15 TB in 1 day: "
            "4 TB too much; 2 days, or 4 TB a day more, would do"
        ),
    ),
}
CASES["more data than storage"] = (
    CASES["more data than storage"][0].with_columns({"workloads.output_mb": ints(0, 1, TB)}),
    *CASES["more data than storage"][1:],
)


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_conflict_is_found_and_worded(case: str) -> None:
    problem, constraint, index, words = CASES[case]
    found = {(conflict.constraint, conflict.index, str(conflict)) for conflict in conflicts(problem)}
    assert (constraint, index, words) in found
    assert proven(base(problem).mip).status is Status.INFEASIBLE


def test_what_work_needs_is_no_conflict_where_it_may_be_refused() -> None:
    for case in ("work that is banned everywhere", "too many cores", "more cores than there are"):
        assert conflicts(replace(CASES[case][0], may_refuse=True)) == ()


def test_links_must_reach_a_region() -> None:
    one_way = Links(ints(B), ints(A), ints(10 * TB), np.zeros(1))
    problem = replace(PROBLEM, links=one_way, datasets=replace(PROBLEM.datasets, copies_min=ints(2, 1, 1)))
    (conflict,) = (found for found in conflicts(problem) if found.index == ("logs",))
    assert str(conflict) == (
        "dataset logs (4 TB) needs 2 copies but fits in 1 of the 2 allowed regions: no links that carry it in time in 1"
    )


def test_ingress_over_so_many_days_that_64_bits_do_not_hold_it_is_no_limit() -> None:
    problem = replace(PROBLEM, days=Fraction(10**15))
    assert problem.ingress_mb[problem.regions.ingress_limited].tolist() == [np.iinfo(np.int64).max]
    assert not conflicts(problem)
    assert mast_opt.verify(problem, PLAN).ok
