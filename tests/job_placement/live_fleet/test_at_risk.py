"""What running jobs have at risk: costs of many at once, and values that nobody has looked at yet."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.problems.job_placement.engine.state import MOST_HOURS
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.running_job import cost_of, costs_of
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from tests.job_placement.fleets import bid_for
from tests.job_placement.reference import assert_exact


@pytest.mark.parametrize("seed", range(3))
def test_costs_of_many_are_those_of_one_at_a_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    thousandths = rng.integers(0, 10**6, 500) + rng.choice(
        [0, 1e-9, 0.00004999, 0.00005, 0.00005001, 0.3, 0.99999], 500
    )
    worked = rng.integers(0, 10**8, 500) * rng.integers(1, 32_000, 500) / (1000 * 3_600_000)
    hours = np.concatenate([thousandths / 1000, worked, [0.0, 1.001, MOST_HOURS, 2.0 * MOST_HOURS, math.inf]])
    alone = [cost_of(Job("a", 1, preemptible=True, gpu_hours_at_risk=one)) for one in hours.tolist()]
    assert costs_of(hours).tolist() == alone


def two_jobs() -> Fleet:
    fleet = Fleet([Server("s", "r", "c", "b", "a100", 2, 64, 64)], tiers=(0, 1))
    for name in ("a", "b"):
        fleet.commit(bid_for(fleet, Job(name, 1, preemptible=True, gpu_hours_at_risk=5.0)))
    return fleet


def test_what_was_set_last_is_stored_copied_and_undone() -> None:
    fleet = two_jobs()
    fleet.set_at_risk({"a": 3.0, "b": 4.0})
    fleet.set_at_risk({"a": 1.0})
    with fleet.trial():
        fleet.set_at_risk({"a": 9.0})
        with fleet.trial():
            fleet.release("a")
        assert fleet.job("a").gpu_hours_at_risk == 9.0
        assert bid_for(fleet, Job("new", 0)).victims == ("b",)
    again = Fleet.from_bytes(fleet.snapshot_bytes())
    for one in (fleet, again):
        assert bid_for(one, Job("new", 0)).victims == ("a",)
        assert [one.job(name).gpu_hours_at_risk for name in "ab"] == [1.0, 4.0]
        assert_exact(one._books)


def test_a_job_that_ends_takes_what_was_set_with_it() -> None:
    fleet = two_jobs()
    fleet.set_at_risk({"a": 3.0, "b": 4.0})
    fleet.release("a")
    fleet.commit(bid_for(fleet, Job("a", 1, preemptible=True, gpu_hours_at_risk=7.0)))
    assert fleet.job("a").gpu_hours_at_risk == 7.0
    assert bid_for(fleet, Job("new", 0)).victims == ("b",)


@pytest.mark.parametrize(
    "wrong", [{"a": -1.0}, {"a": math.nan}, {"b": 1.0, "a": math.nan}, {1: 1.0}, {"a": "2"}, ["a"]]
)
def test_what_is_no_number_of_hours_is_refused(wrong: object) -> None:
    fleet = two_jobs()
    with pytest.raises(UsageError):
        fleet.set_at_risk(wrong)  # type: ignore[arg-type]
    assert [fleet.job(name).gpu_hours_at_risk for name in "ab"] == [5.0, 5.0]


def working(*began_ms: int) -> Fleet:
    """A fleet of two regions with a job of two GPUs in each, which saves its work every hour."""
    fleet = Fleet([Server(f"s{r}", r, r, "b", "a100", 2, 64, 64) for r in "xy"], tiers=(0, 1))
    for name, began in zip("ab", began_ms):
        fleet.commit(bid_for(fleet, Job(name, 1, mgpu=2000, preemptible=True, gpu_hours_at_risk=5.0)))
        fleet.set_work(name, began, 3_600_000)
    return fleet


def test_work_since_the_last_checkpoint_is_at_risk() -> None:
    fleet = working(0, 1_800_000)
    new = Job("new", 0, mgpu=2000)
    before = bid_for(fleet, new)
    fleet.look_at_work(["x", "y"], 4_500_000)
    assert [fleet.job(name).gpu_hours_at_risk for name in "ab"] == [0.5, 1.5]
    assert bid_for(fleet, new).victims == ("a",)
    assert bid_for(fleet, new).gpu_hours_lost == 0.5
    with pytest.raises(StaleBid):
        fleet.commit(before)
    fleet.look_at_work(["x", "y"], 5_400_000 - 1)
    assert bid_for(fleet, new).victims == ("a",)
    fleet.look_at_work(["x", "y"], 5_400_000)
    assert bid_for(fleet, new).victims == ("b",)
    assert_exact(fleet._books)


def test_only_the_regions_asked_are_looked_at() -> None:
    fleet = working(0, 0)
    fleet.look_at_work(["x", "gone"], 1_800_000)
    assert sorted(fleet.job(name).gpu_hours_at_risk for name in "ab") == [1.0, 5.0]


def test_work_across_regions_costs_the_same_in_each() -> None:
    """A host may report such work; a look at one of its regions is one at all of it."""
    fleet = Fleet([Server(f"s{r}", r, f"c{r}", "b", "a100", 2, 64, 64) for r in "xy"], tiers=(0, 1))
    fleet.adopt(Job("wide", 1, tasks=2, preemptible=True), (Share("sx", 1, {0: 1000}), Share("sy", 1, {0: 1000})))
    fleet.set_work("wide", 0, 7_200_000)
    fleet.look_at_work(["x"], 1_800_000)
    assert fleet.job("wide").gpu_hours_at_risk == 1.0
    assert_exact(fleet._books)


def test_a_look_at_work_is_undone_and_survives_new_servers() -> None:
    fleet = working(0, 1_800_000)
    fleet.look_at_work(["x", "y"], 3_600_000 - 1)
    was = [fleet.job(name).gpu_hours_at_risk for name in "ab"]
    with fleet.trial():
        fleet.look_at_work(["x", "y"], 4_500_000)
        fleet.set_at_risk({"a": 9.0})
        fleet.set_work("b", 0, 7_200_000)
        fleet.look_at_work(["x", "y"], 7_000_000)
        assert [fleet.job(name).gpu_hours_at_risk for name in "ab"] != was
    assert [fleet.job(name).gpu_hours_at_risk for name in "ab"] == was
    assert_exact(fleet._books)
    fleet.add_servers([Server("s", "z", "z", "b", "a100", 1, 64, 64)])
    fleet.look_at_work(["x", "y"], 4_500_000)
    assert [fleet.job(name).gpu_hours_at_risk for name in "ab"] == [0.5, 1.5]


def test_a_given_value_stands_until_the_next_look() -> None:
    fleet = working(0, 0)
    fleet.look_at_work(["x", "y"], 1_800_000)
    fleet.set_at_risk({"a": 9.0})
    assert [fleet.job(name).gpu_hours_at_risk for name in "ab"] == [9.0, 1.0]
    fleet.set_work("b", -1, 0)
    fleet.look_at_work(["x", "y"], 3_000_000)
    assert fleet.job("a").gpu_hours_at_risk == pytest.approx(5 / 3)
    assert fleet.job("b").gpu_hours_at_risk == 1.0
