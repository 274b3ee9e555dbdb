"""Break a valid plan in every way there is: the verifier names that constraint and index, and no other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from mast_opt.core.errors import PlanError
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement.edits import COPY, DERIVED, FREE, REMOTE, RUN, added, changed, dropped, limit, placed
from tests.data_placement.workshop import (
    A100,
    ETL,
    H100,
    IMAGES,
    LOGS,
    NO_GPU,
    PLAN,
    PROBLEM,
    TB,
    TRAIN,
    VIDEO,
    VIEW,
    A,
    B,
    C,
    grid,
    ints,
)


def names(problem: DataPlacement, plan: Plan) -> set[str]:
    return {violation.name for violation in verify(problem, plan).violations}


@pytest.mark.parametrize("plan", [PLAN, DERIVED], ids=["listed", "derived"])
def test_the_plan_keeps_every_rule_without_links(plan: Plan) -> None:
    assert verify(FREE, plan).violations == ()


def test_the_plan_keeps_every_rule_with_links() -> None:
    assert verify(PROBLEM, PLAN).violations == ()


BROKEN: dict[str, tuple[Plan, set[str]]] = {
    "a run is missing": (dropped(PLAN, RUN, 3), {"served[view]"}),
    "a part is missing": (dropped(PLAN, RUN, 1), {"served[etl]"}),
    "a part is short": (changed(PLAN, "run_share", 1, 599), {"served[etl]"}),
    "a part is too large": (changed(PLAN, "run_share", 1, 601), {"served[etl]"}),
    "whole work is split": (changed(PLAN, "run_share", 0, 500), {"run[train,b,h100]", "served[train]"}),
    "work runs in a banned region": (
        changed(changed(PLAN, "run_region", 0, C), "run_type", 0, A100),
        {"run[train,c,a100]", "local[train,logs,c]", "local[train,images,c]"},
    ),
    "work runs outside its pin": (changed(PLAN, "run_region", 3, B), {"run[view,b,a100]", "local[view,video,b]"}),
    "the type is not supplied": (
        changed(changed(PLAN, "run_region", 0, A), "run_type", 0, A100),
        {"run[train,a,a100]", "local[train,images,a]"},
    ),
    "the type is not accepted": (changed(PLAN, "run_type", 3, NO_GPU), {"run[view,c,none]"}),
    "the type is accepted by other work only": (changed(PLAN, "run_type", 2, H100), {"run[etl,c,h100]"}),
    "a GPU type that the work does not accept": (
        changed(changed(PLAN, "run_region", 2, B), "run_type", 2, H100),
        {"run[etl,b,h100]"},
    ),
    "a run is listed twice": (
        added(changed(PLAN, "run_share", 2, 200), RUN, ETL, C, NO_GPU, 200),
        {"run[etl,c,none]"},
    ),
    "a share is 0": (added(PLAN, RUN, ETL, B, NO_GPU, 0), {"run[etl,b,none]"}),
    "a share is over 1": (
        changed(PLAN, "run_share", 3, 1001),
        {"run[view,c,a100]", "served[view]"},
    ),
    "a run is in no region": (added(PLAN, RUN, ETL, 3, NO_GPU, 1), {"run[etl,#3,none]"}),
    "a run is of no workload": (added(PLAN, RUN, -1, A, NO_GPU, 1), {"run[#-1,a,none]"}),
    "a run is on no type": (added(PLAN, RUN, ETL, A, 3, 1), {"run[etl,a,#3]"}),
    "a pinned replica is missing": (
        placed(PLAN, IMAGES, B, False),
        {"place[images,b]", "copies[images]", "local[train,images,b]"},
    ),
    "a forbidden replica is there": (
        placed(placed(PLAN, LOGS, C), LOGS, B, False),
        {"place[logs,c]", "copied[logs,c]", "local[train,logs,b]"},
    ),
    "too many copies": (
        placed(replace(PLAN, place=PLAN.place), LOGS, C),
        {"place[logs,c]", "copies[logs]", "copied[logs,c]"},
    ),
    "no copy": (placed(PLAN, VIDEO, C, False), {"copies[video]", "local[view,video,c]"}),
    "a new replica comes from nowhere": (dropped(PLAN, COPY, 0), {"copied[logs,b]"}),
    "a new replica comes in part": (changed(PLAN, "copy_share", 0, 999), {"copied[logs,b]"}),
    "a copy leaves a region without the data": (
        changed(PLAN, "copy_source", 0, C),
        {"copy[logs,c,b]", "copied[logs,b]"},
    ),
    "a copy goes where the data is": (added(PLAN, COPY, IMAGES, A, B, 1), {"copy[images,a,b]"}),
    "a copy goes where the data is forbidden": (added(PLAN, COPY, LOGS, A, C, 1), {"copy[logs,a,c]"}),
    "a copy share is 0": (added(PLAN, COPY, IMAGES, B, A, 0), {"copy[images,b,a]"}),
    "a copy is listed twice": (added(changed(PLAN, "copy_share", 0, 500), COPY, LOGS, A, B, 500), {"copy[logs,a,b]"}),
    "a copy is of no dataset": (added(PLAN, COPY, 7, A, B, 1), {"copy[#7,a,b]"}),
    "a remote read is missing": (dropped(PLAN, REMOTE, 0), {"local[etl,logs,c]"}),
    "a remote read is short": (changed(PLAN, "remote_share", 0, 399), {"local[etl,logs,c]"}),
    "a remote read is from a region without the data": (
        added(PLAN, REMOTE, VIEW, VIDEO, B, C, 1),
        {"sourced[video,b]"},
    ),
    "a remote read crosses no link": (
        changed(PLAN, "remote_target", 0, A),
        {"remote[etl,logs,a,a]", "local[etl,logs,c]"},
    ),
    "a remote read is of data that is not read": (added(PLAN, REMOTE, ETL, VIDEO, B, C, 1), {"remote[etl,video,b,c]"}),
    "a remote read goes where the work may not run": (
        added(PLAN, REMOTE, VIEW, VIDEO, A, B, 1),
        {"remote[view,video,a,b]"},
    ),
    "a remote share is over 1": (changed(PLAN, "remote_share", 0, 2000), {"remote[etl,logs,a,c]", "local[etl,logs,c]"}),
    "a remote read is from no region": (added(PLAN, REMOTE, ETL, LOGS, -1, C, 1), {"remote[etl,logs,#-1,c]"}),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_named(case: str) -> None:
    plan, expected = BROKEN[case]
    assert names(PROBLEM, plan) == expected


BROKEN_WITHOUT_LINKS: dict[str, tuple[Plan, set[str]]] = {
    "a listed remote read is short": (changed(PLAN, "remote_share", 0, 399), {"remote[etl,logs,c]"}),
    "a listed remote read is too much": (changed(PLAN, "remote_share", 0, 401), {"remote[etl,logs,c]"}),
    "a remote read is listed that is none": (added(PLAN, REMOTE, ETL, LOGS, B, A, 600), {"remote[etl,logs,a]"}),
    "a listed source lacks the data": (changed(PLAN, "remote_source", 0, C), {"sourced[logs,c]"}),
    "a listed copy leaves a region without the data": (
        changed(PLAN, "copy_source", 0, C),
        {"copy[logs,c,b]", "copied[logs,b]"},
    ),
    "a copy is listed that is not placed": (added(PLAN, COPY, IMAGES, B, A, 1000), {"copy[images,b,a]"}),
    "a listed copy is short": (changed(PLAN, "copy_share", 0, 1), {"copied[logs,b]"}),
}


@pytest.mark.parametrize("case", BROKEN_WITHOUT_LINKS)
def test_without_links_what_is_listed_must_follow(case: str) -> None:
    plan, expected = BROKEN_WITHOUT_LINKS[case]
    assert names(FREE, plan) == expected


def test_the_limit_of_a_replica_is_one_or_none() -> None:
    (missing, *_) = verify(PROBLEM, placed(PLAN, IMAGES, B, False)).violations
    (banned, *_) = verify(PROBLEM, placed(PLAN, LOGS, C)).violations
    assert (missing.name, missing.amount, missing.limit) == ("place[images,b]", 1, 1)
    assert (banned.name, banned.amount, banned.limit) == ("place[logs,c]", 1, 0)


def test_a_region_may_serve_every_reader_of_a_dataset() -> None:
    """Without logs in b, train reads them from a too: 1.4 of at most 2 readers."""
    remote = added(placed(dropped(PLAN, COPY, 0), LOGS, B, False), REMOTE, TRAIN, LOGS, A, B, 1000)
    assert names(FREE, remote) == set()
    twice = verify(FREE, changed(remote, "remote_source", 1, C)).violations
    assert [(one.name, one.amount, one.limit) for one in twice] == [("sourced[logs,c]", 1, 0)]


def test_remote_reads_may_be_forbidden() -> None:
    strict = replace(PROBLEM, remote_reads=False)
    assert names(strict, PLAN) == {"remote[etl,logs,a,c]", "local[etl,logs,c]"}
    assert names(replace(FREE, remote_reads=False), DERIVED) == {"local[etl,logs,c]"}


def test_refused_work_is_no_violation_where_it_is_priced() -> None:
    lenient = replace(PROBLEM, may_refuse=True)
    assert names(lenient, dropped(PLAN, RUN, 3)) == set()
    assert names(lenient, changed(PLAN, "run_share", 1, 601)) == {"served[etl]"}
    assert names(lenient, changed(PLAN, "run_share", 0, 500)) == {"run[train,b,h100]"}


USED = {
    # what the plan uses of each limit: logs 4 in a; logs 4 and images 6 in b; video 9 and 1 of output in c
    "storage[a]": (limit("regions.storage_mb", A), 4 * TB),
    "storage[c]": (limit("regions.storage_mb", C), 10 * TB),
    "cpu[a]": (limit("regions.cpu_mcores", A), 30_000),
    "cpu[b]": (limit("regions.cpu_mcores", B), 10_000),
    "cpu[c]": (limit("regions.cpu_mcores", C), 25_000),
    "quota[b,ads]": (limit("cpu_quotas.cpu_mcores", 0), 10_000),
    "ingress[b]": (limit("regions.ingress_mb_per_day", B), 4 * TB),
    "link[a,b]": (limit("links.capacity_mb_per_day", 0), 4 * TB),
    "link[a,c]": (limit("links.capacity_mb_per_day", 1), 400_000),
}


@pytest.mark.parametrize("row", USED)
def test_a_limit_holds_to_the_last_unit(row: str) -> None:
    change, used = USED[row]
    assert verify(change(PROBLEM, used), PLAN).violations == ()
    (violation,) = verify(change(PROBLEM, used - 1), PLAN).violations
    assert (violation.name, violation.amount, violation.limit) == (row, 1, used - 1)


def test_every_region_and_app_has_its_own_quota() -> None:
    cells = {(A, 1): 30_000, (B, 0): 10_000, (C, 1): 25_000}  # etl 30 in a; train 10 in b; etl 20 and view 5 in c
    every = [(region, app) for region in (A, B, C) for app in (0, 1)]
    exact = PROBLEM.with_columns(
        {
            "cpu_quotas.region": ints(*(region for region, _ in every)),
            "cpu_quotas.app": ints(*(app for _, app in every)),
            "cpu_quotas.cpu_mcores": ints(*(cells.get(cell, 0) for cell in every)),
        }
    )
    assert verify(exact, PLAN).violations == ()
    for at, cell in enumerate(every):
        if cell in cells:
            (violation,) = verify(limit("cpu_quotas.cpu_mcores", at)(exact, cells[cell] - 7), PLAN).violations
            assert violation.constraint == "quota"
            assert violation.index == (PROBLEM.regions.labels[cell[0]], PROBLEM.apps[cell[1]])
            assert (violation.amount, violation.limit) == (7, cells[cell] - 7)


def test_headroom_and_days_round_against_the_plan() -> None:
    tight = limit("regions.storage_mb", B)(PROBLEM, 11_111_111)  # nine tenths are 9,999,999.9 MB; 10 TB are stored
    (violation,) = verify(tight, PLAN).violations
    assert (violation.name, violation.limit) == ("storage[b]", 9_999_999)
    week = replace(limit("regions.ingress_mb_per_day", B)(PROBLEM, TB), days=Fraction(4))
    assert names(week, PLAN) == set()
    assert names(replace(week, days=Fraction(3_999_999, 1_000_000)), PLAN) == {"ingress[b]", "link[a,b]"} - {
        "link[a,b]"
    }


def test_shares_of_a_thousandth_count() -> None:
    shifted = changed(changed(PLAN, "run_share", 1, 601), "run_share", 2, 399)
    assert names(limit("regions.cpu_mcores", A)(PROBLEM, 30_050), shifted) == set()
    (violation,) = verify(limit("regions.cpu_mcores", A)(PROBLEM, 30_049), shifted).violations
    assert (violation.name, violation.amount) == ("cpu[a]", 1)


def test_amounts_near_the_end_of_int64_do_not_overflow() -> None:
    huge = 2**62
    vast = PROBLEM.with_columns(
        {
            "datasets.size_mb": ints(huge, huge, huge),
            "regions.storage_mb": ints(huge, huge, huge),
            "regions.headroom_milli": ints(0, 0, 0),
            "reads.mb_per_day": ints(huge, huge, huge, huge),
        }
    )
    found = {violation.name: violation.amount for violation in verify(vast, PLAN).violations}
    assert found["storage[b]"] == float(huge)
    assert found["storage[c]"] == TB
    assert found["link[a,b]"] == float(huge - 4 * TB)
    assert "storage[a]" not in found


def test_arrays_that_do_not_fit_the_problem_are_refused() -> None:
    with pytest.raises(ValueError, match="place has shape"):
        verify(PROBLEM, replace(PLAN, place=grid(shape=(3, 2))))


@pytest.mark.parametrize("name", ["run_share", "copy_source", "remote_target"])
def test_arrays_that_do_not_fit_one_another_are_refused(name: str) -> None:
    with pytest.raises(PlanError, match=name.partition("_")[0]):
        replace(PLAN, **{name: ints(1000, 1000, 1000)})
