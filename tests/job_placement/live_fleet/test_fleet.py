"""The live fleet: exact whatever happens, honest about stale bids and bad input, safe from several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from tests.job_placement.engine.test_search import best_bid
from tests.job_placement.fleets import admit, bid_for, crowded, refused_for, server
from tests.job_placement.operations import any_job, new_job, random_operation, small_fleet
from tests.job_placement.reference import assert_exact

FRACTION: Any = 1.5
TEXT: Any = "logs"
"""What a type checker would refuse."""


@pytest.mark.parametrize("operations", [1_000, pytest.param(4_000, marks=pytest.mark.second_tier)])
def test_the_ledger_is_exact_after_random_operations(operations: int) -> None:
    rng = np.random.default_rng(6)
    fleet = small_fleet(rng)
    seen: dict[str, int] = {}
    for number in range(operations):
        what = random_operation(rng, fleet, number)
        seen[what] = seen.get(what, 0) + 1
        if number % 20 == 0:
            assert_exact(fleet._books)
    rare = ["fail", "cordon", "uncordon", "drain", "add", "remove", "capacity", "capacity in use", "resize", "adopt"]
    rare += ["resize without room", "resize of unknown needs", "trial", "trial in a round"]
    assert min(seen.get(what, 0) for what in rare) >= operations // 500, seen
    assert min(seen["release"], seen["placed"], seen["refused"]) > operations // 10
    assert seen["placed with victims"] > operations // 50
    in_parts = [seen[f"{what} in parts"] for what in ("placed", "placed with victims", "refused")]
    assert min(in_parts) > operations // 400, seen
    assert len(fleet.running()) > 0


def test_a_round_ends_exact() -> None:
    rng = np.random.default_rng(2)
    fleet = small_fleet(rng)
    for number in range(60):
        with fleet.round():
            for more in range(12):
                answer = fleet.place(any_job(rng, f"j{number}-{more}"))
                if isinstance(answer, Bid):
                    fleet.commit(answer)
                elif fleet.running():
                    fleet.release(str(rng.choice(fleet.running())))
        assert_exact(fleet._books)


def test_a_bid_of_another_fleet_is_refused() -> None:
    """Two fleets of the same servers after one change each; in the second the GPUs of the bid are taken."""
    ours, theirs = (Fleet([server("s", gpus=4)], tiers=(0, 1)) for _ in range(2))
    admit(ours, Job("small", 0, mgpu=1000))
    admit(theirs, Job("large", 0, mgpu=4000))
    bid = ours.place(Job("new", 0, mgpu=3000))
    assert isinstance(bid, Bid)
    with pytest.raises(UsageError, match="the bid for new is another fleet's; ask this one"):
        theirs.commit(bid)
    assert theirs.running() == ("large",)
    assert ours.commit(bid) == ()


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint32, np.int64])
def test_numbers_of_numpy_are_as_good_as_plain_ones(kind: type) -> None:
    here = Server("s", "north", "c1", "b1", "a100", kind(8), kind(100), kind(100))
    job = Job("x", 0, kind(4), kind(0), kind(3), kind(2), {"a100": kind(100)})
    assert here == Server("s", "north", "c1", "b1", "a100", 8, 100, 100)
    assert job == Job("x", 0, 4, 0, 3, 2, {"a100": 100})
    plain = (here.gpus, here.cpu_mcores, here.memory_mib, job.tasks, job.mgpu, job.cpu_mcores, job.memory_mib)
    assert {type(number) for number in (*plain, *(job.gpu_types or {}).values())} == {int}
    assert isinstance(Fleet([here], quotas={"lab": kind(1)}).place(replace(job, tenant="lab")), Bid)


def test_no_more_hours_are_lost_than_are_at_risk() -> None:
    """Some thousandths of an hour, times a thousand, are a little more than a whole number."""
    hours = next(n / 1000 for n in range(1, 100_000) if n / 1000 * 1000 > n)
    fleet = Fleet([server("s", gpus=4)], tiers=(0, 1))
    admit(fleet, Job("old", 1, mgpu=4000, preemptible=True, gpu_hours_at_risk=hours))
    answer = fleet.place(Job("new", 0, mgpu=1000))
    assert isinstance(answer, Bid)
    assert answer.gpu_hours_lost == hours


def test_what_a_victim_frees_serves_only_more_important_work_until_the_round_ends() -> None:
    fleet = Fleet([server("s", gpus=4)], tiers=(0, 1, 2))
    admit(fleet, Job("old", 2, mgpu=4000, preemptible=True))
    with fleet.round():
        assert admit(fleet, Job("urgent", 0, mgpu=1000)) == ("old",)
        assert isinstance(fleet.place(Job("equal", 2, mgpu=1000)), Refused)
        assert isinstance(fleet.place(Job("better", 1, mgpu=1000)), Bid)
    assert isinstance(fleet.place(Job("equal", 2, mgpu=1000)), Bid)


@pytest.mark.parametrize("seed", range(60))
def test_a_bid_is_the_best_there_is(seed: int) -> None:
    problem = crowded(np.random.default_rng([seed, 7]), fractions=seed % 2 == 1)
    fleet, job = Fleet.of(problem), Job.of(problem, 0)
    answer, best = fleet.place(job), best_bid(problem)
    bids = fleet.bids(job)
    if best is None:
        assert isinstance(answer, Refused)
        assert bids == ()
        return
    assert isinstance(answer, Bid)
    assert bids[0] == answer
    assert len({bid.region for bid in bids}) == len(bids)
    assert (answer.gpu_hours_lost * 1000, len(answer.victims)) == pytest.approx(best[1:3])
    assert (answer.cluster, answer.gpu_type) == (
        problem.clusters.labels[int(problem.server_cluster[best[6]])],
        problem.gpu_types[int(problem.servers.gpu_type[best[6]])],
    )
    assert any(report.fits for report in fleet.explain(job))
    fleet.commit(answer)
    assert sum(share.tasks for share in fleet.shares(job.name)) == job.tasks


def test_refused_jobs_fit_in_no_cluster_and_every_report_says_why() -> None:
    refused = 0
    for seed in range(150):
        problem = crowded(np.random.default_rng([seed, 9]))
        fleet, job = Fleet.of(problem), Job.of(problem, 0)
        answer = fleet.place(job)
        reports = fleet.explain(job)
        assert any(report.fits for report in reports) == isinstance(answer, Bid)
        assert all(report.words for report in reports)
        if isinstance(answer, Refused):
            refused += 1
            assert answer.reason
            assert not answer.remembered
            assert fleet.place(job) == Refused(job, answer.reason, answer.code, remembered=True)
    assert refused > 10


def test_the_negative_cache_is_dropped_when_capacity_that_could_help_appears() -> None:
    fleet = Fleet([server("a", "a100"), server("h", "h100")], tiers=(0, 1))
    admit(fleet, Job("on-a", 0, mgpu=2000, gpu_types={"a100": 2000}))
    admit(fleet, Job("on-h", 0, mgpu=2000, gpu_types={"h100": 2000}))
    wants_a = Job("wants", 0, gpu_types={"a100": 1000})
    assert not refused_for(fleet, wants_a).remembered
    assert refused_for(fleet, wants_a).remembered
    larger = Job("larger", 1, tasks=2, gpu_types={"a100": 2000}, cpu_mcores=1)
    assert refused_for(fleet, larger).remembered
    fleet.release("on-h")
    assert refused_for(fleet, wants_a).remembered
    fleet.release("on-a")
    assert isinstance(fleet.place(wants_a), Bid)


def test_what_is_at_risk_is_set_for_all_these_jobs_or_for_none() -> None:
    fleet = Fleet([server("s", gpus=2)], tiers=(0, 1))
    for name in ("a", "b"):
        admit(fleet, Job(name, 1, preemptible=True, gpu_hours_at_risk=5.0))
    with pytest.raises(UsageError, match="no job called c"):
        fleet.set_at_risk({"b": 1.0, "c": 1.0})
    assert [fleet.job(name).gpu_hours_at_risk for name in ("a", "b")] == [5.0, 5.0]
    fleet.set_at_risk({"a": 2.0, "b": 1.0})
    assert_exact(fleet._books)
    bid = bid_for(fleet, Job("new", 0))
    assert (bid.victims, bid.gpu_hours_lost) == (("b",), 1.0)


def test_the_last_bid_is_checked_again_if_it_was_changed() -> None:
    fleet = Fleet([server("s", gpus=4)])
    bid = bid_for(fleet, Job("a", 0))
    with pytest.raises(UsageError, match="no server called t"):
        fleet.commit(replace(bid, shares=(replace(bid.shares[0], server="t"),)))
    fleet.commit(bid)
    assert_exact(fleet._books)


def test_a_job_under_another_name_asks_for_the_same() -> None:
    job = Job("a", 1, tasks=2, mgpu=500, gpu_types={"a100": 500}, costs={"c": 1.0}, preemptible=True)
    assert job.named("b") == replace(job, name="b")
    assert job.at_risk(3.5) == replace(job, gpu_hours_at_risk=3.5)
    assert job.on("a100") == job
    with pytest.raises(UsageError, match="cannot run on h100; it accepts a100"):
        job.on("h100")
    with pytest.raises(UsageError, match="name"):
        job.named(1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="gpu_hours"):
        job.at_risk(-1)


def test_a_bid_from_an_older_state_is_stale_and_changes_nothing() -> None:
    fleet = Fleet([server("s", gpus=4)])
    first, second = bid_for(fleet, Job("a", 0)), bid_for(fleet, Job("b", 0))
    fleet.commit(first)
    assert first.shares[0].server == second.shares[0].server
    with pytest.raises(StaleBid, match="older state"):
        fleet.commit(second)
    assert fleet.running() == ("a",)
    assert_exact(fleet._books)


def test_failures_end_whole_gangs_and_drains_spare_what_may_not_be_stopped() -> None:
    fleet = Fleet([server("s1"), server("s2"), server("s3")])
    admit(fleet, Job("gang", 1, tasks=2, mgpu=2000, preemptible=True))
    admit(fleet, Job("fixed", 1, mgpu=1000))
    on = fleet.shares("gang")
    lost = fleet.fail(on[0].server)
    assert lost == ("gang",)
    assert fleet.gpus() == (1000, 6000)
    drained = fleet.drain(fleet.shares("fixed")[0].server)
    assert (drained.stopped, drained.staying) == ((), ("fixed",))
    assert isinstance(fleet.place(Job("wide", 0, tasks=2, mgpu=2000)), Refused)
    fleet.uncordon(on[0].server)
    assert isinstance(fleet.place(Job("wide", 0, tasks=2, mgpu=2000)), Bid)


def test_over_quota_work_has_the_lowest_tier_and_may_be_stopped() -> None:
    fleet = Fleet([server("s", gpus=4)], tiers=(0, 1, 2), quotas={"lab": 2000})
    admit(fleet, Job("within", 0, mgpu=2000, tenant="lab"))
    bid = bid_for(fleet, Job("beyond", 0, mgpu=2000, tenant="lab"))
    assert (bid.tier, bid.over_quota) == (2, True)
    fleet.commit(bid)
    assert admit(fleet, Job("other", 1, mgpu=2000)) == ("beyond",)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Job("j", 0, tasks=9, mgpu=2000), "it needs 18 GPUs"),
        (
            Job("j", 0, tasks=8, gpu_types={"a100": 2000, "h100": 1000}),
            "it needs 16 GPUs of type a100 in one cluster; the largest that it may use has 4$",
        ),
        (Job("j", 0, gpu_types={"tpu": 1000}), "no server has a GPU type that it accepts \\(tpu\\)"),
        (Job("j", 0, datasets=("gone",)), "no region holds all of its data \\(gone\\)"),
    ],
)
def test_hopeless_jobs_get_a_stated_reason(job: Job, words: str) -> None:
    fleet = Fleet([server("s1"), server("s2"), server("h", "h100", gpus=1)])
    answer = fleet.place(job)
    assert isinstance(answer, Refused)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(answer.reason)
    assert fleet.gpus() == (0, 5000)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda fleet: fleet.place(Job("x", 7)), "tier 7"),
        (lambda fleet: fleet.place(Job("runs", 0)), "runs already"),
        (lambda fleet: fleet.place(Job("x", 0), avoid=["s9"]), "avoid names server s9"),
        (lambda fleet: fleet.release("nobody"), "nobody runs here"),
        (lambda fleet: fleet.fail("nowhere"), "nowhere"),
        (lambda fleet: fleet.remove_server("s1"), "still runs runs"),
        (lambda fleet: fleet.replace_server(server("s1")), "still runs runs"),
        (lambda fleet: fleet.replace_server(server("s2", region="elsewhere")), "belongs to one region"),
        (lambda fleet: fleet.replace_server(server("s9")), "no server called s9"),
        (lambda fleet: fleet.add_servers([server("s1")]), "called s1 already"),
        (lambda fleet: fleet.add_servers([server("s9", region="elsewhere")]), "belongs to one region"),
        (lambda fleet: Job("x", 0, mgpu=1500), "whole GPUs, or less than one"),
        (lambda fleet: Job("x", 0, tasks=0), "at least 1"),
        (lambda fleet: Job("x", 0, tasks=2 * 10**9), "tasks is 2,000,000,000; expected at most 1,000,000,000"),
        (lambda fleet: Job("x", 0, tasks=FRACTION), "tasks is 1.5; expected a whole number"),
        (lambda fleet: Job("x", 0, mgpu=FRACTION), "mgpu is 1.5; expected a whole number"),
        (lambda fleet: Job("x", 0, gpu_types={"a100": -1}), "mgpu is -1; expected at least 0"),
        (lambda fleet: Job("x", 0, tasks=2, memory_mib=2**53), "memory_mib is 9,007,199,254,740,992; expected at most"),
        (lambda fleet: Job("x", 0, datasets=TEXT), "datasets: 'logs' is one string"),
        (lambda fleet: fleet.set_replicas("logs", "east"), "replicas of logs: 'east' is one string"),
        (lambda fleet: Fleet([server("s3")], replicas={"logs": "east"}), "replicas of logs: 'east' is one string"),
        (lambda fleet: Fleet([server("s3")], quotas={"vision": -5}), "quota is -5; expected at least 0"),
        (
            lambda fleet: fleet.add_servers([replace(server("s3"), gpus=FRACTION)]),
            "gpus is 1.5; expected a whole number",
        ),
        (lambda fleet: replace(server("s3"), gpus=3_000_000), "gpus is 3,000,000; expected at most 2,000,000"),
        (lambda fleet: Job("x", 0, within="room"), "expected one of"),
        (lambda fleet: Fleet([]), "at least one server"),
    ],
)
def test_bad_input_is_refused_and_nothing_changes(wrong: Callable[[Fleet], object], words: str) -> None:
    fleet = Fleet([server("s1"), server("s2")])
    admit(fleet, Job("runs", 0, mgpu=2000))
    bid = bid_for(fleet, Job("next", 0))
    with pytest.raises(UsageError, match=words):
        wrong(fleet)
    fleet.commit(bid)
    assert_exact(fleet._books)


def test_the_only_server_can_become_another_one() -> None:
    fleet = Fleet([server("s1")])
    fleet.replace_server(replace(server("s1"), region="elsewhere", gpus=1))
    assert fleet.gpus() == (0, 1000)
    assert isinstance(fleet.place(Job("x", 0, mgpu=2000)), Refused)
    assert bid_for(fleet, Job("x", 0)).region == "elsewhere"
    assert_exact(fleet._books)


def test_several_threads_lose_nothing() -> None:
    fleet = small_fleet(np.random.default_rng(5))
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for number in range(150):
                answer = fleet.place(new_job(rng, f"t{seed}-{number}"))
                if isinstance(answer, Bid):
                    try:
                        fleet.commit(answer)
                    except StaleBid:
                        continue
                mine = [name for name in fleet.running() if name.startswith(f"t{seed}-")]
                if mine and rng.random() < 0.4:
                    try:
                        fleet.release(mine[0])
                    except UsageError:
                        continue
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert_exact(fleet._books)


def test_a_fleet_from_an_instance_holds_what_runs_there() -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(3))
    fleet = Fleet.of(problem)
    used = int(problem.servers.supply[:, 0].sum() - problem.free[:, 0].sum())
    assert fleet.gpus() == (used, problem.all_mgpu)
    assert set(fleet.running()) == set(problem.running.labels)


def test_a_fleet_from_an_instance_takes_tiers_that_do_not_occur_there() -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(3))
    first, last = min(problem.tiers) - 1, max(problem.tiers) + 1
    plain, wider = Fleet.of(problem), Fleet.of(problem, tiers=(last, first))
    fitting = 0
    for j in range(len(problem.jobs)):
        job = Job.of(problem, j)
        answer = wider.place(job)
        expected = answer
        if isinstance(answer, Bid) and answer.over_quota:  # what a tenant has no quota for has the lowest tier
            expected = replace(answer, tier=max(problem.tiers))
        assert expected == plain.place(job)
        for tier in (first, last):
            with pytest.raises(UsageError, match=f"has tier {tier}"):
                plain.place(replace(job, tier=tier))
        fits = isinstance(answer, Bid)
        fitting += fits
        assert isinstance(wider.place(replace(job, tier=first)), Bid) >= fits
        assert isinstance(wider.place(replace(job, tier=last)), Bid) <= fits
    assert fitting
