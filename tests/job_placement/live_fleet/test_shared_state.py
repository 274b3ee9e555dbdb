"""What several schedulers of one live fleet need: bids that last, quotas and regions by request, queries, codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from tests.job_placement.fleets import bid_for, refused_for
from tests.job_placement.operations import new_job, random_operation, small_fleet
from tests.job_placement.reference import assert_exact


def fleet_of(regions: int = 3) -> Fleet:
    """A region each with one server of two GPUs."""
    servers = [Server(f"s{n}", f"r{n}", f"c{n}", "b", "a100", 2, 8, 8) for n in range(regions)]
    return Fleet(servers, tiers=(0, 1), replicas={"logs": {"r0"}})


def test_a_bid_stays_good_while_nothing_changes_that_it_touches() -> None:
    fleet, job = fleet_of(), Job("mine", 0, datasets=("logs",))
    mine = bid_for(fleet, job)
    fleet.release(fleet_job(fleet, "s0"))
    with pytest.raises(StaleBid, match="older state"):
        fleet.commit(mine)
    mine = bid_for(fleet, job)
    fleet.release(fleet_job(fleet, "s1"))
    fleet.cordon("s2")
    assert fleet.commit(mine) == ()
    assert_exact(fleet._books)


def fleet_job(fleet: Fleet, server: str) -> str:
    """A job that has just started on a server; each is in a region of its own."""
    fleet.place_and_commit(Job(f"on {server}", 0), regions=[server.replace("s", "r")])
    return f"on {server}"


def test_a_bid_is_stale_once_its_victim_its_data_or_its_quota_has_changed() -> None:
    fleet = fleet_of(1)
    victim = Job("victim", 1, mgpu=2000, preemptible=True)
    fleet.commit(bid_for(fleet, victim))
    for change in (
        lambda: fleet.set_at_risk({"victim": 3.0}),
        lambda: (fleet.release("victim"), fleet.commit(bid_for(fleet, victim))),
        lambda: fleet.set_replicas("logs", ()),
    ):
        bid = bid_for(fleet, Job("new", 0, datasets=("logs",), tenant="lab"))
        assert bid.victims == ("victim",)
        change()
        with pytest.raises(StaleBid):
            fleet.commit(bid)
    fleet.set_replicas("logs", ("r0",))
    bid = bid_for(fleet, Job("new", 0, tenant="lab"))
    fleet.set_quota("lab", 500)
    with pytest.raises(StaleBid, match="tier"):
        fleet.commit(bid)
    assert fleet.running() == ("victim",)
    assert_exact(fleet._books)


def test_bids_of_older_versions_never_break_the_ledger() -> None:
    """Of bids that are committed up to five operations late, some are stale, the others take effect exactly."""
    rng, late, stale = np.random.default_rng(7), 0, 0
    fleet = small_fleet(rng)
    open_bids: list[Bid] = []
    for number in range(400):
        answer = fleet.place(new_job(rng, f"open{number}"))
        if isinstance(answer, Bid):
            open_bids.append(answer)
        random_operation(rng, fleet, number)
        if len(open_bids) > 4:
            bid = open_bids.pop(0)
            try:
                assert fleet.commit(bid) == bid.victims
                late += 1
            except StaleBid:
                stale += 1
            assert_exact(fleet._books)
    assert min(late, stale) > 20, (late, stale)


def test_place_and_commit_is_both() -> None:
    fleet = fleet_of(1)
    assert isinstance(fleet.place_and_commit(Job("a", 1, mgpu=2000, preemptible=True)), Bid)
    answer = fleet.place_and_commit(Job("b", 0))
    assert isinstance(answer, Bid)
    assert answer.victims == ("a",)
    assert isinstance(fleet.place_and_commit(Job("c", 1, tasks=2)), Refused)
    assert (fleet.running(), fleet.jobs_on("s0"), fleet.job("b").tier) == (("b",), ("b",), 0)
    for question in (lambda: fleet.job("a"), lambda: fleet.jobs_on("s9")):
        with pytest.raises(UsageError):
            question()


def test_only_the_regions_that_are_asked_answer() -> None:
    fleet, job = fleet_of(), Job("a", 0, datasets=("logs",))
    for name in ("r0", "r1", "r2"):
        answer = fleet.place(Job("any", 0), regions=[name])
        assert isinstance(answer, Bid)
        assert answer.region == name
    refused = fleet.place(job, regions=["r1", "r2"])
    assert isinstance(refused, Refused)
    assert refused.code == "regions"
    assert isinstance(fleet.place(job, regions=["r0", "r1"]), Bid)
    with pytest.raises(UsageError, match="no region called r9"):
        fleet.place(job, regions=["r9"])


def test_quotas_change_and_are_part_of_snapshots() -> None:
    fleet, job = fleet_of(1), Job("a", 0, tenant="lab")
    before = fleet.snapshot_bytes()
    fleet.set_quota("lab", 500)
    assert bid_for(fleet, job).over_quota
    fleet.set_quota("lab", None)
    assert not bid_for(fleet, job).over_quota
    fleet.set_quota("lab", 500, "a100")
    assert bid_for(fleet, job).over_quota
    with pytest.raises(UsageError, match="quota"):
        fleet.set_quota("lab", -1)
    fleet = Fleet.from_bytes(before)
    assert not bid_for(fleet, job).over_quota


def test_refusals_and_reports_have_codes() -> None:
    fleet = fleet_of(2)
    cases = {
        "gpu-type": Job("a", 0, gpu_types={"tpu": 1000}),
        "data": Job("a", 0, datasets=("none",)),
        "size": Job("a", 0, tasks=3),
        "task": Job("a", 0, cpu_mcores=9),
    }
    assert {code: refused_for(fleet, job).code for code, job in cases.items()} == {code: code for code in cases}
    assert refused_for(fleet, Job("a", 0, memory_mib=1_000_000)).code == "task"
    fleet.commit(bid_for(fleet, Job("busy", 1, mgpu=1000)))
    home = fleet.shares("busy")[0].server
    whole = Job("whole", 0, mgpu=2000)
    codes = {report.cluster: report.code for report in fleet.explain(whole)}
    assert codes == {f"c{home[1]}": "gpus", f"c{1 - int(home[1])}": "fits"}
    assert refused_for(fleet, Job("both", 1, tasks=2, mgpu=1000, datasets=("logs",))).code in ("in-use", "size")
    fleet.cordon(home)
    asked = replace(whole, datasets=("logs",))
    assert [report.code for report in fleet.explain(asked)] == ["out-of-service" if home == "s0" else "fits", "data"]
