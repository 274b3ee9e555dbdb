"""Jobs of several parts in the live fleet: all parts or none, where the batch solver puts them, and their life."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import StaleBid, UnsupportedOption, UsageError
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.move_plan import MoveBudget
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Server, Share
from tests.instance_rows import JobRows
from tests.job_placement.fleets import bid_for, refused_for
from tests.job_placement.live_fleet.test_agreement import placed
from tests.job_placement.operations import new_job, new_multipart_job, random_operation, small_fleet
from tests.job_placement.reference import assert_exact


def server(name: str, region: str, cluster: str, kind: str, gpus: int, cores: int, rack: str = "b") -> Server:
    return Server(name, region, cluster, f"{cluster} {rack}", kind, gpus, cores, 1000)


def two_regions() -> Fleet:
    """East has a cluster with GPUs and one without, west one with both and few GPUs."""
    return Fleet(
        [
            server("g1", "east", "gpus", "h100", 4, 8, "r1"),
            server("g2", "east", "gpus", "h100", 4, 8, "r2"),
            server("c1", "east", "cores", "none", 0, 64),
            server("w1", "west", "both", "h100", 2, 64),
        ],
        tiers=(0, 1, 2),
        quotas={"lab": 7000},
    )


TRAIN = Job(
    "train",
    1,
    within="region",
    preemptible=True,
    parts=(Part("trainers", 2, 4000, 4, gpu_types={"h100": 4000}), Part("readers", 4, 0, 8)),
)


def test_parts_go_to_clusters_of_one_region() -> None:
    fleet = two_regions()
    bid = bid_for(fleet, TRAIN)
    where = [(share.part, share.server, share.tasks) for share in bid.shares]
    assert where == [("trainers", "g1", 1), ("trainers", "g2", 1), ("readers", "c1", 4)]
    assert [(part.part, part.cluster, part.level) for part in bid.parts] == [
        ("trainers", "gpus", "cluster"),
        ("readers", "cores", "server"),
    ]
    assert (bid.region, bid.cluster, bid.gpu_type, bid.level, bid.proven) == ("east", "gpus", "h100", "region", False)
    assert fleet.bids(TRAIN) == (bid,)
    assert fleet.commit(bid) == ()
    assert (fleet.running(), fleet.job("train"), fleet.shares("train")) == (("train",), TRAIN, bid.shares)
    assert fleet.jobs_on("c1") == fleet.jobs_on("g2") == ("train",)
    assert_exact(fleet._books)
    assert fleet.bids(replace(TRAIN, name="again")) == ()


@pytest.mark.parametrize("gone", ["g1", "c1"])
def test_a_lost_server_takes_all_parts_with_it(gone: str) -> None:
    fleet = two_regions()
    fleet.place_and_commit(TRAIN)
    assert fleet.fail(gone) == ("train",)
    assert fleet.running() == ()
    assert_exact(fleet._books)


def test_a_victim_of_several_parts_is_stopped_once_and_whole() -> None:
    """The cores that the readers hold are needed, and the GPUs of the trainers are free afterwards."""
    fleet = two_regions()
    fleet.place_and_commit(replace(TRAIN, gpu_hours_at_risk=2.5))
    urgent = Job("urgent", 0, 3, 0, 20, gpu_types={"none": 0})
    bid = bid_for(fleet, urgent)
    assert (bid.victims, bid.gpu_hours_lost, bid.victim_tier) == (("train",), 2.5, 1)
    assert fleet.commit(bid) == ("train",)
    assert fleet.gpus()[0] == 0
    assert_exact(fleet._books)


def test_parts_stop_less_important_work_of_several_clusters() -> None:
    fleet = two_regions()
    for name, shape in (("a", (1, 4000, 1)), ("b", (1, 0, 40))):
        fleet.place_and_commit(Job(name, 2, *shape, preemptible=True, gpu_hours_at_risk=1.5), regions=["east"])
    bid = bid_for(fleet, TRAIN)
    assert (bid.victims, bid.gpu_hours_lost, bid.victim_tier) == (("a", "b"), 3.0, 2)
    assert fleet.commit(bid) == ("a", "b")
    assert_exact(fleet._books)


@pytest.mark.parametrize(
    ("within", "where", "level"),
    [
        ("region", {"g1", "c1"}, "region"),
        ("cluster", {"w1"}, "server"),
        ("rack", {"w1"}, "server"),
        ("server", {"w1"}, "server"),
    ],
)
def test_the_whole_job_stays_within_its_level(within: str, where: set[str], level: str) -> None:
    fleet = two_regions()
    fleet.place_and_commit(Job("other", 0, 1, 0, 20), regions=["west"])
    fleet.place_and_commit(Job("load", 0, 1, 500), regions=["west"])
    job = Job("small", 0, within=within, parts=(Part("a", 1, 1000, 1), Part("b", 2, 0, 10)))
    bid = bid_for(fleet, job)
    assert ({share.server for share in bid.shares}, bid.level) == (where, level)
    fleet.commit(bid)
    assert_exact(fleet._books)
    assert fleet._books.out_of_service().sum() == 0


def test_a_rack_is_chosen_for_all_parts_together() -> None:
    """Each rack of two servers holds one part; only the last holds both, and there only if a victim is stopped."""
    racks = [("r0", 2, 2), ("r1", 0, 9), ("r2", 2, 9)]
    servers = [server(f"{rack}-{n}", "r", "c", "k", gpus, cores, rack) for rack, gpus, cores in racks for n in range(2)]
    fleet = Fleet(servers, tiers=(0, 1))
    job = Job("x", 0, within="rack", parts=(Part("b", 2, 0, 8), Part("a", 2, 2000, 1)))
    bid = bid_for(fleet, job)
    assert [(share.part, share.server) for share in bid.shares] == [
        ("b", "r2-0"),
        ("b", "r2-1"),
        ("a", "r2-0"),
        ("a", "r2-1"),
    ]
    assert bid.level == "rack"
    fleet.adopt(Job("old", 1, 1, 0, 5, preemptible=True), (Share("r2-1", 1, {}),))
    assert bid_for(fleet, job).victims == ("old",)
    assert bid_for(fleet, replace(job, within="cluster")).victims == ()
    assert isinstance(fleet.place(replace(job, within="server")), Refused)
    assert_exact(fleet._books)


@pytest.mark.parametrize("names", list(permutations("abc")))
def test_victims_on_one_server_are_back_in_their_order_after_a_bid(names: tuple[str, ...]) -> None:
    fleet = Fleet([server("s", "r", "c", "k", 3, 90)], tiers=(0, 1))
    for cost, name in enumerate(names, 1):
        fleet.place_and_commit(Job(name, 1, preemptible=True, gpu_hours_at_risk=abs(cost - 2)))
    before = [_allocations(fleet), fleet.snapshot_bytes()]
    parts = (Part("p", 1, 3000), Part("q", 1, 0, 1), Part("r", 1, 0, 1))
    bid = bid_for(fleet, Job("x", 0, within="server", parts=parts))
    assert bid.victims == names
    assert [_allocations(fleet), fleet.snapshot_bytes()] == before
    assert_exact(fleet._books)


def _allocations(fleet: Fleet) -> list[int]:
    """The places of the allocations on the first server, in the order of its list."""
    state, found = fleet._books.state, []
    row = int(state.server[col.S_ROW, 0])
    while row >= 0:
        assert row not in found
        found.append(row)
        row = int(state.row[col.L_AFTER, row])
    return found


@pytest.mark.parametrize("numbers", list(permutations(range(3))))
def test_of_equal_racks_that_of_the_first_server_as_listed_is_chosen(numbers: tuple[int, ...]) -> None:
    """Whatever numbers the solver and the fleet give to racks."""
    build = JobRows("equal")
    build.add_cluster("c", region="r")
    for s in range(3):
        build.add_server(f"s{s}", "c", gpu_type="k", gpus=5, cpu_cores=9, memory_gb=9, rack=f"b{s}")
    build.add_job("job", tier=0, value=1, within="rack")
    for part in "pq":
        build.add_job_part("job", part, tasks=1, gpus=1, cpu_cores=1, memory_gb=1)
    p = build.build()
    p = replace(p, racks=p.racks.rows(np.argsort(numbers)), servers=replace(p.servers, rack=np.array(numbers)))
    assert {p.servers.labels[s] for s in placed(p).plan().server.tolist()} == {"s0"}
    assert {share.server for share in bid_for(Fleet.of(p), Job.of(p, 0)).shares} == {"s0"}


def test_a_part_that_fails_goes_first() -> None:
    """With most GPUs first, the trainer takes the only server with cores for the reader."""
    fleet = Fleet([server("a", "r", "c", "k", 1, 8), server("b", "r", "c", "k", 2, 2)], placement="best-fit")
    job = Job("x", 0, parts=(Part("trainer", 1, 1000, 2), Part("reader", 1, 500, 8)))
    assert {share.part: share.server for share in bid_for(fleet, job).shares} == {"trainer": "b", "reader": "a"}


def test_refusals_name_the_part() -> None:
    fleet = two_regions()
    readers = replace(TRAIN, parts=(TRAIN.parts[0], Part("readers", 11, 0, 8)))
    for job, code, part in (
        (readers, "in-use", "readers"),
        (replace(TRAIN, within="cluster"), "together", ""),
        (replace(TRAIN, parts=(Part("tpus", gpu_types={"tpu": 1000}), TRAIN.parts[1])), "gpu-type", "tpus"),
        (replace(TRAIN, parts=(Part("many", 9),)), "size", "many"),
        (replace(TRAIN, datasets=("lost",)), "data", "trainers"),
    ):
        refused = refused_for(fleet, job)
        assert (refused.code, refused.part, refused.remembered) == (code, part, False), refused.reason
        assert refused_for(fleet, job).remembered == bool(part)
    answer = fleet.place(TRAIN, regions=["west"])
    assert isinstance(answer, Refused)
    assert (answer.code, answer.part) == ("size", "trainers")
    reports = {(report.part, report.cluster): report for report in fleet.explain(replace(TRAIN, within="cluster"))}
    assert {pair: report.code for pair, report in reports.items()} == {
        ("trainers", "gpus"): "together",
        ("trainers", "cores"): "gpu-type",
        ("trainers", "both"): "task",
        ("readers", "gpus"): "size",
        ("readers", "cores"): "together",
        ("readers", "both"): "together",
    }
    assert "readers, another part of the job, fits nowhere in the cluster" in reports["trainers", "gpus"].words
    assert {report.code for report in fleet.explain(TRAIN) if report.fits} == {"fits"}


def test_a_quota_holds_all_parts_or_none() -> None:
    fleet = two_regions()
    bid = bid_for(fleet, replace(TRAIN, tenant="lab"))
    assert (bid.over_quota, bid.tier) == (True, 2)
    small = replace(TRAIN, tenant="lab", parts=(Part("a", 1, 4000), Part("b", 1, 3000)))
    assert not bid_for(fleet, small).over_quota
    fleet.place_and_commit(small)
    assert bid_for(fleet, Job("one", TRAIN.tier, mgpu=500, tenant="lab")).over_quota
    assert not bid_for(fleet, Job("one", 0, mgpu=500, tenant="lab")).over_quota


def test_what_hosts_report_of_parts() -> None:
    fleet = two_regions()
    job = Job("j", 1, parts=(Part("a", 1, 1000, 2), Part("b", 2, 500, 1)))
    shares = (Share("g1", 2, {1: 1000}, "b"), Share("g1", 1, {0: 1000}, "a"))
    assert fleet.adopt(job, shares) == ()
    assert fleet.shares("j") == shares[::-1]
    assert fleet.jobs_on("g1") == ("j",)
    assert_exact(fleet._books)
    version = fleet._versions.now
    assert fleet.adopt(job, shares) == ()
    assert fleet._versions.now == version
    crowded = replace(job, parts=(Part("a", 1, 1000, 2), Part("b", 2, 500, 4)))
    assert fleet.adopt(crowded, shares) == ("g1",)
    assert_exact(fleet._books)
    for wrong in (
        shares[:1],
        (Share("g1", 3, {0: 1000, 1: 1000}),),
        (*shares, Share("g2", 1, {}, "c")),
        (replace(shares[0], tasks=1), shares[1]),
        (*shares, Share("g1", 1, {}, "b")),
    ):
        with pytest.raises(UsageError):
            fleet.adopt(job, wrong)
    with pytest.raises(UsageError, match="has no parts"):
        fleet.adopt(Job("k", 1), (Share("g1", 1, {0: 1000}, "a"),))
    fleet.release("j")
    assert fleet.over_booked() == ()
    assert_exact(fleet._books)


def test_pools_hold_no_more_than_numbers_can() -> None:
    fleet = Fleet([Server("pool", "r", "c", "b", "k", 2_000_000, 9, 9)])
    job = Job("j", 0, parts=(Part("a", 1), Part("b", 1)))
    everything = {0: 2_000_000_000}
    with pytest.raises(UsageError, match="no server has so many"):
        fleet.adopt(job, (Share("pool", 1, everything, "a"), Share("pool", 1, everything, "b")))
    fleet.place_and_commit(Job("j", 0, parts=(Part("a", 1_000_000), Part("b", 1_000_000))))
    assert fleet.gpus() == (2_000_000_000, 2_000_000_000)


def test_what_is_not_done_with_parts_is_refused() -> None:
    fleet = two_regions()
    fleet.place_and_commit(TRAIN)
    other = replace(TRAIN, name="other")
    for refused in (
        lambda: fleet.resize("train", 2),
        lambda: fleet.defragment(MoveBudget(), [other]),
        lambda: fleet.defragment(MoveBudget(), movable={"train": 1.0}),
    ):
        with pytest.raises(UnsupportedOption, match=r"parts"):
            refused()
    assert fleet.defragment(MoveBudget(), [Job("one", 0, mgpu=4000)]).moves == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"parts": (Part("a"), Part("a"))},
        {"parts": ("a",)},
        {"parts": "a"},
        {"tasks": 2},
        {"mgpu": 2000},
        {"gpu_types": {"h100": 1000}},
        {"within": "planet"},
        {"prefer": "region"},
        {"parts": (), "within": "region"},
    ],
)
def test_jobs_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(TRAIN, **changes)


@pytest.mark.parametrize("changes", [{"within": "region"}, {"mgpu": 1500}, {"tasks": 0}, {"name": 3}])
def test_parts_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(TRAIN.parts[0], **changes)


def test_a_changed_bid_is_refused_and_changes_nothing() -> None:
    fleet = two_regions()
    fleet.place_and_commit(Job("load", 0, mgpu=2000), regions=["west"])
    bid = bid_for(fleet, TRAIN)
    first, second, third = bid.shares
    for shares in (
        (first, second),
        (first, second, replace(third, part="trainers")),
        (first, second, replace(third, part="")),
        (first, second, replace(third, tasks=3)),
        (first, second, replace(third, server="w1")),
        (first, second, replace(third, server="g1")),
        (first, replace(second, server="g1"), third),
    ):
        with pytest.raises(UsageError):
            fleet.commit(replace(bid, shares=shares))
    assert fleet.running() == ("load",)
    assert_exact(fleet._books)
    fleet.cordon("c1")
    with pytest.raises(StaleBid):
        fleet.commit(bid)


def test_a_bid_on_given_gpus() -> None:
    """It is the one of the search; where others run there is none, unless they may be stopped and are."""
    fleet = two_regions()
    bid = bid_for(fleet, TRAIN)
    assert fleet.bid_on(TRAIN, bid.shares) == bid
    assert fleet.bid_on(TRAIN, bid.shares[:-1]) is None
    fleet.adopt(Job("there", 2, preemptible=True), (Share("g1", 1, {0: 1000}),))
    before = fleet.snapshot_bytes()
    assert fleet.bid_on(TRAIN, bid.shares) is None
    assert fleet.bid_on(replace(TRAIN, tier=2), bid.shares, ("there",)) is None
    stopping = fleet.bid_on(TRAIN, bid.shares, ("there",))
    assert fleet.snapshot_bytes() == before
    assert stopping is not None
    assert stopping.victim_tier == 2
    assert fleet.commit(stopping) == ("there",)
    assert fleet.shares("train") == bid.shares


def test_parts_survive_a_restart_and_leave_no_trace_in_a_trial() -> None:
    fleet = two_regions()
    fleet.place_and_commit(replace(TRAIN, name="other", parts=(Part("a", 1, 300), Part("b", 2, 200, 1))))
    before = fleet.snapshot_bytes()
    with fleet.trial():
        fleet.place_and_commit(TRAIN)
        fleet.place_and_commit(Job("urgent", 0, 2, 4000))
        assert "other" not in fleet.running()
    assert fleet.snapshot_bytes() == before
    again = Fleet.from_bytes(before)
    assert again.snapshot_bytes() == before
    assert again.job("other") == fleet.job("other")
    assert again.place(TRAIN) == fleet.place(TRAIN)
    assert_exact(again._books)


def test_a_job_of_one_part_is_a_job_without() -> None:
    """In random states of a fleet, both get the same place at the expense of the same victims, or none."""
    rng, found = np.random.default_rng(3), [0, 0, 0]
    fleet = small_fleet(rng)
    for number in range(600):
        random_operation(rng, fleet, number)
        plain = new_job(rng, f"asked{number}")
        part = Part("p", plain.tasks, plain.mgpu, plain.cpu_mcores, plain.memory_mib, plain.gpu_types, plain.within)
        whole = replace(new_multipart_job(rng, plain.name), within=str(rng.choice(["region", "cluster"])))
        shared = ("tier", "datasets", "prefer", "preemptible", "gpu_hours_at_risk", "tenant")
        whole = replace(whole, parts=(part,), **{what: getattr(plain, what) for what in shared})
        if rng.random() < 0.5:
            whole = replace(whole, parts=(replace(part, within="cluster"),), within=plain.within)
        one, other = fleet.place(plain), fleet.place(whole)
        if isinstance(one, Refused):
            assert isinstance(other, Refused)
            assert other.code == one.code
            found[0] += 1
            continue
        found[1 if one.victims else 2] += 1
        assert isinstance(other, Bid)
        assert (one.victims != ()) == (other.victims != ())
        if plain.within != "cluster" and whole.within == plain.within:
            continue  # of racks and servers, the fullest is taken, whatever the loss of value
        assert other == replace(one, job=whole, shares=other.shares, parts=other.parts)
        assert tuple(replace(share, part="") for share in other.shares) == one.shares
    assert min(found) > 10, found
