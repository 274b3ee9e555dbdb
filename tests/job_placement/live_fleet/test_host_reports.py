"""What a host reports to a live fleet: work that runs where it should not, other capacities, pools without numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from tests.job_placement.fleets import bid_for, refused_for
from tests.job_placement.reference import assert_exact


def server(name: str, gpus: int = 4, rack: str = "b") -> Server:
    return Server(name, "r", "c", rack, "a100", gpus, 64, 64)


def test_an_adopted_job_runs_where_it_is_and_an_over_booked_server_takes_no_work() -> None:
    fleet = Fleet([server("s0"), server("s1")], tiers=(0, 1))
    fleet.commit(bid_for(fleet, Job("ours", 1, mgpu=4000, preemptible=True)))
    home = fleet.shares("ours")[0].server
    other = "s1" if home == "s0" else "s0"
    theirs = Job("theirs", 0, mgpu=2000, cpu_mcores=60)
    assert fleet.adopt(theirs, (Share(home, 1, {0: 1000, 1: 1000}),)) == (home,)
    assert (fleet.over_booked(), fleet.gpus()) == ((home,), (6000, 8000))
    assert_exact(fleet._books)
    assert bid_for(fleet, Job("new", 0, mgpu=1000)).shares[0].server == other
    report = fleet.explain(Job("large", 0, tasks=2, mgpu=4000))[0]
    assert (report.fits, report.code) == (False, "out-of-service")
    assert isinstance(fleet.place(Job("large", 0, tasks=2, mgpu=4000)), Refused)
    fleet.cordon(other)
    assert isinstance(fleet.place(Job("new", 0, mgpu=1000)), Refused)  # the victim there would free no room for it
    fleet.release("ours")
    assert fleet.over_booked() == ()
    assert bid_for(fleet, Job("new", 0, mgpu=2000)).shares[0].server == home
    assert_exact(fleet._books)


def test_a_job_that_is_elsewhere_than_the_fleet_thought_is_moved_and_a_known_one_changes_nothing() -> None:
    fleet = Fleet([server("s0"), server("s1")], tiers=(0,), quotas={"lab": 3000})
    job = Job("job", 0, tasks=2, tenant="lab")
    fleet.commit(bid_for(fleet, job))
    here = fleet.shares("job")
    bid = bid_for(fleet, Job("new", 0))
    assert fleet.adopt(job, here) == ()
    assert fleet.commit(bid) == ()
    there = "s1" if here[0].server == "s0" else "s0"
    assert fleet.adopt(job, (Share(there, 2, {3: 1000, 2: 1000}),)) == ()
    assert fleet.shares("job") == (Share(there, 2, {2: 1000, 3: 1000}),)
    assert (fleet.gpus()[0], fleet.running()) == (3000, ("new", "job"))
    assert not bid_for(fleet, Job("more", 0, tenant="lab")).over_quota
    assert bid_for(fleet, Job("much", 0, tasks=2, tenant="lab")).over_quota
    assert_exact(fleet._books)


def test_work_over_quota_is_adopted_with_the_lowest_tier() -> None:
    fleet = Fleet([server("s0")], tiers=(0, 1, 2), quotas={"lab": 1000})
    fleet.adopt(Job("job", 0, mgpu=4000, tenant="lab"), (Share("s0", 1, dict.fromkeys(range(4), 1000)),))
    assert not fleet.job("job").preemptible
    assert fleet.commit(bid_for(fleet, Job("urgent", 1))) == ("job",)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((Share("s9", 1, {0: 1000}),), "the fleet has no server called s9"),
        ((Share("s0", 1, {0: 1000}), Share("s9", 1, {0: 1000})), "no server called s9"),
        ((Share("s0", 1, {4: 1000}),), "a GPU of s0 is 4; expected at most 3"),
        ((Share("s0", 1, {0: 1001}),), "milli-GPUs of GPU 0 on s0 is 1,001"),
        ((Share("s0", 2, {0: 1000}),), "its shares have 2 tasks; expected the 1 of the job"),
        ((Share("s0", 0, {}), Share("s1", 1, {})), "tasks on s0 is 0; expected at least 1"),
        ((Share("s0", 1, {}), Share("s0", 1, {})), "expected each server once"),
        ((), "expected a tuple of at least one Share"),
    ],
)
def test_what_cannot_be_adopted_is_refused_and_changes_nothing(shares: tuple[Share, ...], words: str) -> None:
    fleet = Fleet([server("s0"), server("s1")], tiers=(0,))
    fleet.commit(bid_for(fleet, Job("job", 0)))
    before, bid = fleet.snapshot_bytes(), bid_for(fleet, Job("new", 0))
    with pytest.raises(UsageError, match=words):
        fleet.adopt(Job("job", 0), shares)
    with pytest.raises(UsageError, match="tier 7"):
        fleet.adopt(Job("job", 7), (Share("s0", 1, {}),))
    assert fleet.snapshot_bytes() == before
    assert fleet.commit(bid) == ()


def test_capacities_change_while_jobs_run() -> None:
    fleet = Fleet([server("s0", 2), server("s1", 8)], tiers=(0, 1))
    fleet.commit(bid_for(fleet, Job("wide", 0, mgpu=6000)))
    held = fleet.shares("wide")
    for gpus in (6, 8, 7, 20, 6):  # 20 are more than any server had before
        fleet.set_capacity("s1", gpus=gpus)
        assert (fleet.gpus(), fleet.shares("wide")) == ((6000, (gpus + 2) * 1000), held)
        assert_exact(fleet._books)
        assert isinstance(fleet.place(Job("one", 0, mgpu=(gpus - 6) * 1000 or 3000)), Bid if gpus > 6 else Refused)
    refused_for(fleet, Job("many", 0, cpu_mcores=65))
    fleet.set_capacity("s0", cpu_mcores=65, memory_mib=1)
    assert bid_for(fleet, Job("many", 0, cpu_mcores=65)).shares[0].server == "s0"
    assert_exact(fleet._books)
    fleet.add_servers([server("s2", 3)])
    fleet.remove_server("s0")
    assert fleet.shares("wide") == held
    assert_exact(fleet._books)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda fleet: fleet.set_capacity("s0", gpus=3), "gpus is 3, but GPU 3 is in use"),
        (lambda fleet: fleet.set_capacity("s0", cpu_mcores=39), "cpu_mcores is 39; what runs there holds 40"),
        (lambda fleet: fleet.set_capacity("s0", memory_mib=19), "memory_mib is 19; what runs there holds 20"),
        (lambda fleet: fleet.set_capacity("s0", gpus=5000), "cannot become or cease to be a pool"),
        (lambda fleet: fleet.set_capacity("s9", gpus=3), "no server called s9"),
        (lambda fleet: fleet.set_capacity("s0", gpus=-1), "gpus is -1"),
    ],
)
def test_shrinking_below_use_is_refused_and_changes_nothing(change: Callable[[Fleet], None], words: str) -> None:
    fleet = Fleet([server("s0"), server("s1")], tiers=(0,))
    fleet.adopt(Job("job", 0, mgpu=1000, cpu_mcores=40, memory_mib=20), (Share("s0", 1, {3: 1000}),))
    before = fleet.snapshot_bytes()
    with pytest.raises(UsageError, match=words):
        change(fleet)
    assert fleet.snapshot_bytes() == before
    fleet.set_capacity("s0", cpu_mcores=40, memory_mib=20)
    assert_exact(fleet._books)


def test_an_over_booked_server_may_grow_back_to_what_runs_there() -> None:
    fleet = Fleet([server("s0")], tiers=(0,))
    for name in ("a", "b"):
        fleet.adopt(Job(name, 0, mgpu=1000, cpu_mcores=60), (Share("s0", 1, {0: 500}),))
    fleet.set_capacity("s0", cpu_mcores=100)
    assert fleet.over_booked() == ("s0",)
    with pytest.raises(UsageError, match="holds 120"):
        fleet.set_capacity("s0", cpu_mcores=99)
    fleet.set_capacity("s0", cpu_mcores=121)
    assert fleet.over_booked() == ()
    assert bid_for(fleet, Job("c", 0, cpu_mcores=1)).shares[0].server == "s0"
    assert_exact(fleet._books)


def test_gangs_on_hundreds_of_servers_stay_where_they_are_when_servers_come() -> None:
    fleet = Fleet([server(f"s{n}", 1) for n in range(400)], tiers=(0,))
    fleet.commit(bid_for(fleet, Job("gang", 0, tasks=400)))
    fleet.add_servers([server("more", 1)])
    assert_exact(fleet._books)
    assert len(fleet.shares("gang")) == 400


POOL = Server("pool", "r", "c", "b", "a100", 50_000, 64_000_000, 64_000_000)


def test_a_pool_has_gpus_without_numbers() -> None:
    fleet = Fleet([POOL, replace(POOL, name="small", gpus=8, cluster="d")], tiers=(0, 1, 2))
    large = bid_for(fleet, Job("large", 2, tasks=5000, mgpu=8000, preemptible=True, gpu_hours_at_risk=9))
    assert large.shares == (Share("pool", 5000, {0: 40_000_000}),)
    assert large.level == "server"
    fleet.commit(large)
    for n in range(40):
        fleet.commit(bid_for(fleet, Job(f"f{n}", 2, tasks=100, mgpu=400, preemptible=True, gpu_hours_at_risk=1)))
    assert_exact(fleet._books)
    assert fleet.gpus() == (41_600_000, 50_008_000)
    urgent = bid_for(fleet, Job("urgent", 0, tasks=1060, mgpu=8000))
    assert urgent.victims == ("f0", "f1")
    fleet.commit(urgent)
    assert_exact(fleet._books)
    assert isinstance(fleet.place(Job("giant", 1, tasks=50_000)), Refused)
    with pytest.raises(UsageError, match="gpus is 49,000; what runs there holds 50,000"):
        fleet.set_capacity("pool", gpus=49_000)
    fleet.set_capacity("pool", gpus=60_000)
    assert bid_for(fleet, Job("more", 1, tasks=10_000)).victims == ()
    again = Fleet.from_bytes(fleet.snapshot_bytes())
    assert again.snapshot_bytes() == fleet.snapshot_bytes()
    assert_exact(again._books)
    for name in fleet.running():
        fleet.release(name)
    fleet.set_capacity("pool", gpus=8)
    assert bid_for(fleet, Job("numbered", 1, mgpu=8000)).shares[0].gpus in (dict.fromkeys(range(8), 1000),)
    assert_exact(fleet._books)


def test_a_pool_takes_no_more_memory_than_a_server() -> None:
    pools, servers = (Fleet([replace(POOL, name=f"s{n}", gpus=gpus) for n in range(50)]) for gpus in (50_000, 8))
    sizes = [sum(array.nbytes for array in fleet._books.state) for fleet in (pools, servers)]
    assert sizes[0] <= sizes[1]
