"""Rights of running work in a live fleet: they follow what tenants use, and their quotas."""

from __future__ import annotations

import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Server, Share
from tests.job_placement.fleets import bid_for, refused_for
from tests.job_placement.reference import assert_exact

A, C = Job("a", 0, mgpu=2000, tenant="t"), Job("c", 0, mgpu=2000, tenant="t")
FILL, NEXT = Job("fill", 0, mgpu=4000), Job("next", 1, mgpu=4000)


def fleet_of(mgpu: int = 2000) -> Fleet:
    return Fleet([Server("s", "r", "c", "b", "A", 8, 99, 99)], tiers=(0, 1, 2), quotas={"t": mgpu})


def test_a_job_is_within_the_quota_again_when_another_one_ends() -> None:
    fleet = fleet_of()
    assert [fleet.place_and_commit(job).over_quota for job in (A, C, FILL)] == [False, True, False]  # type: ignore[union-attr]
    fleet.release("a")
    assert not fleet.is_over_quota("c")
    assert refused_for(fleet, NEXT).code == "in-use"
    assert_exact(fleet._books)


def test_a_quota_that_changes_under_running_work() -> None:
    fleet = fleet_of(4000)
    for job in (A, C, FILL):
        fleet.place_and_commit(job)
    fleet.set_quota("t", 2000)
    assert (fleet.is_over_quota("a"), fleet.is_over_quota("c")) == (False, True)
    assert bid_for(fleet, Job("next", 1, mgpu=2000)).victims == ("c",)
    fleet.set_quota("t", 10_000)
    assert refused_for(fleet, Job("next", 1, mgpu=2000)).code == "in-use"
    assert_exact(fleet._books)


def test_a_first_quota_and_a_trial_of_one() -> None:
    fleet = Fleet([Server("s", "r", "c", "b", "A", 8, 99, 99)], tiers=(0, 1, 2))
    for job in (A, FILL, C):
        fleet.place_and_commit(job)
    before = fleet.snapshot_bytes()
    with fleet.trial():
        fleet.set_quota("t", 2000, "A")
        assert bid_for(fleet, Job("next", 2, mgpu=1000)).victims == ("c",)
    assert fleet.snapshot_bytes() == before
    assert_exact(fleet._books)
    fleet.set_quota("t", 2000, "A")
    assert fleet.is_over_quota("c")
    assert_exact(fleet._books)


def test_work_over_quota_keeps_its_order() -> None:
    fleet = fleet_of(0)
    for tier in (2, 0, 1):
        fleet.place_and_commit(Job(f"of {tier}", tier, mgpu=2000, tenant="t", gpu_hours_at_risk=9 * tier))
    fleet.place_and_commit(Job("fill", 0, mgpu=2000))
    assert bid_for(fleet, Job("within", 2, mgpu=2000)).victims == ("of 2",)
    borrower = bid_for(fleet, Job("more", 1, mgpu=2000, tenant="t"))
    assert (borrower.over_quota, borrower.victims) == (True, ("of 2",))
    assert refused_for(fleet, Job("more", 2, mgpu=2000, tenant="t")).code == "in-use"


def test_what_runs_over_quota_is_so_however_the_fleet_learned_of_it() -> None:
    """A batch, the fleet of its instance and one that adopts the work stop it for less important work within quota."""
    needs = {"tasks": [1], "gpus": [4], "cpu_cores": [1], "memory_gb": [1]}
    tables = {
        "regions": {"region": ["r"]},
        "clusters": {"cluster": ["c"], "region": ["r"]},
        "servers": {"server": ["s"], "cluster": ["c"], "rack": ["b"], "gpu_type": ["A"], "gpus": [4]}
        | {"cpu_cores": [9], "memory_gb": [9]},
        "jobs": {name: 2 * column for name, column in needs.items()}
        | {"job": ["n", "low"], "tier": [1, 3], "tenant": ["u", ""]},
        "running": {"job": ["v"], "tier": [0], "preemptible": [True], "gpu_hours_at_risk": [0], "tenant": ["t"]},
        "allocations": {"job": ["v"], "server": ["s"]} | needs,
        "quotas": {"tenant": ["t"], "gpus": [0]},
        "job_gpu_types": {"job": [], "gpu_type": []},
        "job_datasets": {"job": [], "dataset": []},
        "replicas": {"dataset": [], "region": []},
    }
    problem = mast_opt.from_tables("job-placement", tables)
    for solver in ("highs", "exhaustive"):
        verdict = mast_opt.solve(problem, solver).verdict
        assert verdict is not None
        assert (verdict.metrics["admitted_jobs"], verdict.metrics["preempted_jobs"]) == (1, 1)
    assert bid_for(Fleet.of(problem), Job.of(problem, 0)).victims == ("v",)
    fleet = Fleet([Server("s", "r", "c", "b", "A", 4, 99, 99)], tiers=(0, 1, 3), quotas={"t": 0})
    fleet.adopt(Job("v", 0, mgpu=4000, tenant="t"), (Share("s", 1, dict.fromkeys(range(4), 1000)),))
    assert bid_for(fleet, Job("n", 1, mgpu=4000, tenant="u")).victims == ("v",)


def test_work_within_its_quota_does_not_take_its_tenant_beyond_the_borrowing_limit() -> None:
    """There is room for all, but t may hold 3 GPUs at most: its least important, newest job makes way, or others'."""
    fleet = fleet_of()
    fleet.set_quota("t", 2000, borrowing=1000)
    for job in (Job("old", 2, mgpu=1000, tenant="t"), Job("late", 2, mgpu=2000, tenant="t")):
        fleet.place_and_commit(job)
    assert refused_for(fleet, Job("more", 2, mgpu=500, tenant="t")).code == "quota"
    bid, before = bid_for(fleet, A), fleet.snapshot_bytes()
    assert (bid.victims, bid.over_quota, bid.gpu_hours_lost, bid.victim_rank) == (("late",), False, 0, 5)
    assert [one.code for one in fleet.explain(A)] == ["victims"]
    assert fleet.snapshot_bytes() == before
    assert isinstance(fleet.place(A, preempt=False), Refused)
    assert fleet.commit(bid) == ("late",)
    assert (fleet.ledger.use("t"), fleet.is_over_quota("old")) == (3000, True)
    assert isinstance(fleet.resize("a", 2), Refused)
    assert_exact(fleet._books)


def test_the_type_on_which_a_job_is_put_decides() -> None:
    servers = [Server(kind, "r", kind, "b", kind, 4, 99, 99) for kind in "AB"]
    fleet = Fleet(servers, tiers=(0, 1), type_quotas={"t": {"A": 2000}})
    job = Job("j", 0, mgpu=4000, tenant="t", gpu_types={"A": 4000, "B": 4000})
    bid = bid_for(fleet, job)
    assert (bid.gpu_type, bid.over_quota) == ("B", False)
    fleet.place_and_commit(Job("low", 1, mgpu=4000, preemptible=True, gpu_types={"B": 4000}))
    bid = bid_for(fleet, job)  # nobody stops for work that could start without
    assert (bid.gpu_type, bid.over_quota, bid.victims) == ("A", True, ())
    assert isinstance(fleet.place_and_commit(job), Bid)
    assert fleet.is_over_quota("j")


def test_which_work_within_its_quota_stops_what_borrows_is_a_parameter() -> None:
    """t has no quota; its jobs of all tiers borrow, one of them may be stopped even within a quota."""
    fleet = fleet_of(0)
    for tier in (0, 1, 2):
        fleet.place_and_commit(Job(f"of {tier}", tier, mgpu=2000, tenant="t", preemptible=tier == 1))
    fleet.place_and_commit(Job("fill", 0, mgpu=2000))
    found = {}
    for reclaim in ("any", "lower-priority", "never", "any"):
        fleet.set_reclaim(reclaim)
        answers = [fleet.place(Job("within", tier, mgpu=2000)) for tier in (0, 1, 2)]
        found[reclaim] = [one.victims if isinstance(one, Bid) else None for one in answers]
        assert_exact(fleet._books)
        assert Fleet.from_bytes(fleet.snapshot_bytes()).place(Job("within", 0, mgpu=2000)) == answers[0]
    assert found == {
        "any": [("of 2",)] * 3,
        "lower-priority": [("of 2",), ("of 2",), None],
        "never": [("of 1",), None, None],
    }
    with pytest.raises(UsageError, match="reclaim is 'always'; expected one of any, lower-priority, never"):
        fleet.set_reclaim("always")


def test_what_a_host_runs_beyond_a_borrowing_limit_counts_as_borrowed() -> None:
    fleet = fleet_of(0)
    fleet.set_quota("t", 0, borrowing=0)
    fleet.adopt(A, (Share("s", 1, {0: 1000, 1: 1000}),))
    assert fleet.is_over_quota("a")
    assert fleet._books.running["a"].tier == 3  # the first level behind the tiers
    assert bid_for(fleet, Job("next", 2, mgpu=8000)).victims == ("a",)
    assert_exact(fleet._books)


def test_a_job_of_parts_may_stand_better_where_it_is_put_than_by_a_type_after_the_other() -> None:
    """The first part on A leaves too little of the quota for the second one; it is put on B, which the quota covers."""
    servers = [Server("a", "r", "a", "b", "A", 6, 99, 99), Server("b", "r", "b", "b", "B", 4, 99, 99)]
    fleet = Fleet(servers, tiers=(0, 1), type_quotas={"t": {"A": 7000, "B": 4000}})
    parts = (Part("small", 3, mgpu=1000), Part("large", 3, mgpu=2000))
    bid = bid_for(fleet, Job("j", 0, tenant="t", within="region", parts=parts))
    assert not bid.over_quota
    assert fleet.commit(bid) == ()
    assert not fleet.is_over_quota("j")
    assert_exact(fleet._books)


def test_a_job_of_one_part_has_rights_by_type() -> None:
    """Its group may hold no more of A unless u's job stops; B is covered by its quota, and full."""
    servers = [Server("a", "r", "a", "b", "A", 4, 99, 99), Server("b", "r", "b", "b", "B", 4, 99, 99)]
    fleet = Fleet(servers, tiers=(0, 1))
    for kind in "AB":
        fleet.set_quota("group", 0, kind, borrowing=0)
        for tenant in "tu":
            fleet.set_quota(tenant, 2000, kind, parent="group")
    fleet.adopt(Job("full", 0, mgpu=4000, preemptible=False), (Share("b", 1, dict.fromkeys(range(4), 1000)),))
    fleet.adopt(Job("borrows", 0, mgpu=4000, tenant="u"), (Share("a", 1, dict.fromkeys(range(4), 1000)),))
    bid = bid_for(fleet, Job("j", 0, tenant="t", parts=(Part("only", mgpu=2000),)))
    assert (bid.gpu_type, bid.victims) == ("A", ("borrows",))
    assert fleet.commit(bid) == ("borrows",)
    assert_exact(fleet._books)
