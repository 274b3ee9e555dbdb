"""Trials that leave no trace, and jobs that grow and shrink."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import permutations

import numpy as np
import pytest

from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.live_fleet.answers import Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from tests.job_placement.fleets import bid_for
from tests.job_placement.operations import any_job, random_operation, small_fleet
from tests.job_placement.reference import assert_exact


def server(name: str, rack: str = "b", cluster: str = "c", gpus: int = 4) -> Server:
    return Server(name, "r", cluster, rack, "a100", gpus, 64, 64)


def test_a_trial_leaves_no_trace() -> None:
    rng = np.random.default_rng(41)
    fleet = small_fleet(rng)
    for number in range(80):
        random_operation(rng, fleet, number)
        job = any_job(rng, "asked")
        fleet.place(job)
        before, answer = fleet.snapshot_bytes(), fleet.place(job)
        with fleet.trial():
            for more in range(int(rng.integers(1, 12))):
                random_operation(rng, fleet, 1000 * (number + 1) + more)
            assert_exact(fleet._books)
        assert fleet.snapshot_bytes() == before
        assert fleet.place(job) == answer
        assert_exact(fleet._books)


@pytest.mark.parametrize("names", list(permutations("abc")))
def test_victims_on_one_server_are_back_after_a_trial(names: tuple[str, ...]) -> None:
    """Also where other jobs have had their places meanwhile."""
    fleet = Fleet([server("s", gpus=3)], tiers=(0, 1))
    for name in "abc":
        fleet.place_and_commit(Job(name, 1, preemptible=True, gpu_hours_at_risk=names.index(name)))
    before = fleet.snapshot_bytes()
    with fleet.trial():
        assert set(fleet.commit(bid_for(fleet, Job("x", 0, mgpu=3000)))) == {"a", "b", "c"}
        for name in "qr":
            fleet.place_and_commit(Job(name, 1, mgpu=0, cpu_mcores=1))
    assert fleet.snapshot_bytes() == before
    assert_exact(fleet._books)


@pytest.mark.parametrize("cordoned", [True, False])
def test_a_server_takes_work_after_a_trial_as_before_it(cordoned: bool) -> None:
    """Also where its capacity changed in the trial, before it was cordoned or opened."""
    fleet = Fleet([server("s", gpus=3)], tiers=(0, 1))
    if cordoned:
        fleet.cordon("s")
    with fleet.trial():
        fleet.set_capacity("s", gpus=2)
        (fleet.uncordon if cordoned else fleet.cordon)("s")
    assert isinstance(fleet.place(Job("x", 0)), Refused) == cordoned
    assert_exact(fleet._books)


def test_bids_of_before_a_trial_stay_good_and_those_of_a_trial_do_not() -> None:
    fleet = Fleet([server("s"), server("t")], tiers=(0, 1))
    victim = Job("victim", 1, mgpu=4000, preemptible=True)
    fleet.commit(bid_for(fleet, victim))
    bid = bid_for(fleet, Job("new", 0, mgpu=3000))
    with fleet.trial():
        fleet.commit(bid)
        assert fleet.running() == ("victim", "new")
        inner = bid_for(fleet, Job("more", 0, mgpu=4000))
        with fleet.trial():
            assert fleet.commit(inner) == ("victim",)
        assert fleet.running() == ("victim", "new")
        assert fleet.commit(inner) == ("victim",)
        fleet.set_quota("lab", 0)
        fleet.set_replicas("logs", {"r"})
    assert fleet.running() == ("victim",)
    assert not bid_for(fleet, Job("lab", 0, tenant="lab")).over_quota
    assert isinstance(fleet.place(Job("reads", 0, datasets=("logs",))), Refused)
    with pytest.raises(StaleBid, match="made in a trial that has ended"):
        fleet.commit(inner)
    assert fleet.commit(bid) == ()
    assert_exact(fleet._books)


def test_a_trial_ends_by_an_exception_too_and_other_threads_wait_for_it() -> None:
    fleet = Fleet([server("s")], tiers=(0,))
    seen: list[tuple[str, ...]] = []
    other = threading.Thread(target=lambda: seen.append(fleet.running()))
    with suppress(ZeroDivisionError), fleet.trial():
        fleet.place_and_commit(Job("tried", 0))
        other.start()
        other.join(0.05)
        assert not seen
        raise ZeroDivisionError
    other.join()
    assert seen == [()]


def test_a_search_for_victims_takes_as_long_as_its_limits_allow() -> None:
    """Whole GPUs from jobs that share GPUs: with one subset a server nothing is proven, but a place is found."""
    fleet = Fleet([server(f"s{n}") for n in range(3)], tiers=(0, 1))
    for n in range(24):
        fleet.commit(bid_for(fleet, Job(f"f{n}", 1, mgpu=500, preemptible=True, gpu_hours_at_risk=n)))
    gang = Job("gang", 0, tasks=2, mgpu=2000)
    best = bid_for(fleet, gang)
    assert best.proven
    with fleet.trial():
        fleet.set_search_limits(SearchLimits(nodes=1, subsets=1))
        quick = bid_for(fleet, gang)
        assert (quick.proven, quick.gpu_hours_lost >= best.gpu_hours_lost) == (False, True)
        assert Fleet.from_bytes(fleet.snapshot_bytes()).place(gang) == quick
        assert fleet.commit(quick) == quick.victims
        assert_exact(fleet._books)
    assert bid_for(fleet, gang) == best
    with pytest.raises(UsageError, match=r"search_limits.candidates is 63"):
        fleet.set_search_limits(SearchLimits(candidates=63))


def test_a_job_grows_next_to_where_it_runs_and_shrinks_where_it_is_least() -> None:
    racks = {"s0": "b0", "s1": "b0", "s2": "b1"}
    fleet = Fleet([*(server(name, rack) for name, rack in racks.items()), server("x", cluster="d")], tiers=(0, 1))
    fleet.adopt(Job("job", 1, tasks=3, within="cluster"), (Share("s0", 3, dict.fromkeys(range(3), 1000)),))
    fleet.adopt(Job("fixed", 0, mgpu=2000), (Share("s1", 1, {0: 1000, 1: 1000}),))
    assert [share.tasks for share in _grown(fleet, 4)] == [4]
    assert [(share.server, share.tasks) for share in _grown(fleet, 6)] == [("s0", 4), ("s1", 2)]
    assert [(share.server, share.tasks) for share in _grown(fleet, 9)] == [("s0", 4), ("s1", 2), ("s2", 3)]
    assert fleet.running() == ("job", "fixed")
    before, bid = fleet.snapshot_bytes(), bid_for(fleet, Job("new", 0))
    refused = fleet.resize("job", 11)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.reason) == ("no-room", "the servers near it have no room for 2 further tasks")
    assert fleet.snapshot_bytes() == before
    assert fleet.commit(bid) == ()
    assert [(share.server, share.tasks) for share in _grown(fleet, 7)] == [("s0", 4), ("s2", 3)]
    fleet.cordon("s0")
    assert _grown(fleet, 4) == (Share("s0", 1, {0: 1000}), Share("s2", 3, dict.fromkeys(range(3), 1000)))
    assert fleet.job("job").tasks == 4


def _grown(fleet: Fleet, tasks: int) -> tuple[Share, ...]:
    answer = fleet.resize("job", tasks)
    assert isinstance(answer, tuple)
    assert fleet.shares("job") == answer
    assert_exact(fleet._books)
    return answer


def test_resizing_respects_within_quotas_fractions_and_rounds() -> None:
    fleet = Fleet([server("s0"), server("s1")], tiers=(0, 1, 2), quotas={"lab": 1500})
    fleet.adopt(Job("job", 0, mgpu=300, tasks=4, within="server", tenant="lab"), (Share("s0", 4, {0: 900, 3: 300}),))
    assert _grown(fleet, 5) == (Share("s0", 5, {0: 900, 3: 600}),)
    with fleet.round():
        assert isinstance(fleet.resize("job", 12), tuple)
        assert isinstance(fleet.resize("job", 13), Refused)
    assert_exact(fleet._books)
    assert bid_for(fleet, Job("whole", 1, tasks=2, mgpu=4000)).victims == ("job",)
    _grown(fleet, 4)
    assert isinstance(fleet.place(Job("whole", 1, tasks=2, mgpu=4000)), Refused)
    with pytest.raises(UsageError, match="tasks is 0"):
        fleet.resize("job", 0)
    with pytest.raises(UsageError, match="no job called nobody"):
        fleet.resize("nobody", 1)


def test_jobs_of_an_instance_are_resized_once_their_needs_are_known() -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(3))
    fleet = Fleet.of(problem)
    name = next(name for name in fleet.running() if sum(fleet.shares(name)[0].gpus.values()) >= 1000)
    with pytest.raises(UsageError, match=f"what a task of {name} needs is unknown"):
        fleet.resize(name, fleet.job(name).tasks + 1)
