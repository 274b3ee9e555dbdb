"""Bids where not everything may be asked: servers to avoid, and nobody to stop."""

from __future__ import annotations

from dataclasses import replace

from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Part
from tests.job_placement.fleets import admit, bid_for, server
from tests.job_placement.reference import assert_exact


def test_servers_to_avoid_are_as_good_as_cordoned_and_nothing_changes() -> None:
    fleet, cordoned = (Fleet([server(name) for name in "abc"], tiers=(0, 1)) for _ in range(2))
    for one in (fleet, cordoned):
        admit(one, Job("stays", 0, mgpu=1000))
        admit(one, Job("stops", 1, mgpu=2000, preemptible=True))
    (avoided,) = (share.server for share in fleet.shares("stays"))
    cordoned.cordon(avoided)
    for job in (Job("one", 0), Job("two", 0, mgpu=2000), Job("one", 1), Job("gang", 0, tasks=5)):
        before, found, expected = fleet.place(job), fleet.place(job, avoid={avoided}), cordoned.place(job)
        if isinstance(expected, Bid):
            assert isinstance(found, Bid)
            assert (found.shares, found.victims) == (expected.shares, expected.victims)
        else:
            assert found == replace(expected, job=job, remembered=False)
        assert fleet.place(job) == before
        assert_exact(fleet._books)
    assert isinstance(before, Bid), "what did not fit without a server has not been remembered"


def test_without_preemption_nobody_stops_and_nothing_is_remembered() -> None:
    fleet = Fleet([server("a", gpus=2), server("b", gpus=2)], tiers=(0, 1))
    admit(fleet, Job("small", 1, mgpu=1000, preemptible=True, gpu_hours_at_risk=5.0))
    free = Job("fits", 0, tasks=3, mgpu=1000)
    assert fleet.place(free, preempt=False) == fleet.place(free)
    gang = Job("gang", 0, tasks=4, mgpu=1000)
    refused = fleet.place(gang, preempt=False)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.remembered) == ("in-use", False)
    assert refused.reason == "no cluster has room for it without stopping other work"
    assert bid_for(fleet, gang).victims == ("small",)
    parts = Job("parts", 0, parts=(Part("ps", 1, mgpu=2000), Part("worker", 2, mgpu=1000)))
    refused = fleet.place(parts, preempt=False)
    assert isinstance(refused, Refused)
    assert refused.code == "together"
    assert bid_for(fleet, parts).victims == ("small",)
    assert_exact(fleet._books)
    too_large = Job("huge", 0, tasks=5, mgpu=1000)
    assert isinstance(fleet.place(too_large), Refused)
    known = fleet.place(too_large, preempt=False)
    assert isinstance(known, Refused)
    assert (known.code, known.remembered) == ("size", True)
