"""Snapshots in bytes: the same bids afterwards as without, and nothing but whole ones of the same fleet and version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.snapshot_format import DIGEST, HEAD, MAGIC, VERSION
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from tests.job_placement.fleets import bid_for
from tests.job_placement.operations import new_job, random_operation, small_fleet
from tests.job_placement.reference import assert_exact


def server(name: str) -> Server:
    return Server(name, "r", "c", "b", "a100", 4, 64, 64)


@pytest.mark.parametrize("seed", [1, 3])
def test_after_a_restart_the_same_calls_give_the_same_bids(seed: int) -> None:
    rng = np.random.default_rng([seed, 31])
    fleet = small_fleet(rng)
    for number in range(150):
        random_operation(rng, fleet, number)
    saved = fleet.snapshot_bytes()
    again = Fleet.from_bytes(saved)
    assert again.snapshot_bytes() == saved
    ours, theirs = (np.random.default_rng([seed, 32]) for _ in range(2))
    bids = 0
    for number in range(1000, 1300):
        jobs = [replace(new_job(rng, f"asked{number}"), tier=0, mgpu=2000) for rng in (ours, theirs)]
        answers = [one.place(job) for one, job in zip((fleet, again), jobs)]
        if isinstance(answers[0], Bid):
            assert answers[0] == answers[1]
            bids += bool(answers[0].victims)
        else:
            assert not isinstance(answers[1], Bid)
        assert random_operation(ours, fleet, number) == random_operation(theirs, again, number)
    assert again.snapshot_bytes() == fleet.snapshot_bytes()
    assert_exact(again._books)
    assert bids > 3


def test_the_fleet_of_an_instance_is_saved_whole() -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(3))
    fleet = Fleet.of(problem)
    again = Fleet.from_bytes(fleet.snapshot_bytes())
    for j in range(len(problem.jobs)):
        assert again.place(Job.of(problem, j)) == fleet.place(Job.of(problem, j))
    assert again.snapshot_bytes() == fleet.snapshot_bytes()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: b"", "no snapshot of a live fleet"),
        (lambda data: b"PK" + data[2:], "no snapshot of a live fleet"),
        (lambda data: MAGIC + (VERSION + 1).to_bytes(4, "big") + data[HEAD:], f"version {VERSION + 1} of the format"),
        (lambda data: data[:HEAD], "digest"),
        (lambda data: data[:-1], "digest"),
        (lambda data: data[: HEAD + DIGEST], "digest"),
        (lambda data: data + b"\0", "digest"),
        (lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], "digest"),
        (lambda data: data[:HEAD] + bytes(DIGEST) + data[HEAD + DIGEST :], "digest"),
    ],
)
def test_what_is_no_whole_snapshot_is_refused_and_changes_nothing(damage: Callable[[bytes], bytes], words: str) -> None:
    fleet = Fleet([server("s")], tiers=(0,))
    data = fleet.snapshot_bytes()
    fleet.commit(bid_for(fleet, Job("runs", 0)))
    bid = bid_for(fleet, Job("next", 0))
    for read in (fleet.restore, Fleet.from_bytes):
        with pytest.raises(UsageError, match=words):
            read(damage(data))
    assert fleet.commit(bid) == ()
    fleet.restore(data)
    assert fleet.running() == ()


def test_a_snapshot_of_another_fleet_is_refused_unless_it_is_wanted() -> None:
    fleet = Fleet([server("s"), server("t")], tiers=(0,))
    others = {
        "this fleet has no server u": Fleet([server("s"), server("t"), server("u")], tiers=(0,)),
        "it has no server t": Fleet([server("s")], tiers=(0,)),
        "its server t has rack other, not b": Fleet(
            [server("s"), Server("t", "r", "c", "other", "a100", 4, 64, 64)], tiers=(0,)
        ),
        r"its tiers is \(0, 1\)": Fleet([server("s"), server("t")], tiers=(0, 1)),
        "its sampling is None": Fleet([server("s"), server("t")], tiers=(0,), placement="best-fit"),
    }
    for words, other in others.items():
        other.place_and_commit(Job("theirs", 0))
        bid = bid_for(fleet, Job("ours", 0))
        for snapshot in (other.snapshot(), other.snapshot_bytes()):
            with pytest.raises(UsageError, match=words):
                fleet.restore(snapshot)
        assert fleet.commit(bid) == ()
        fleet.release("ours")
    same = Fleet([server("s"), server("t")], tiers=(0,))
    same.set_capacity("t", gpus=3)
    same.place_and_commit(Job("theirs", 0))
    fleet.restore(same.snapshot_bytes())
    assert (fleet.running(), fleet.gpus()) == (("theirs",), (1000, 7000))
    bid = bid_for(fleet, Job("ours", 0))
    fleet.restore(others["its tiers is \\(0, 1\\)"].snapshot(), other_fleet=True)
    with pytest.raises(StaleBid):
        fleet.commit(bid)
    assert isinstance(fleet.place(Job("low", 1)), Bid)
    with pytest.raises(UsageError, match="takes a snapshot, not a str"):
        fleet.restore("snapshot")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="takes bytes, not a str"):
        Fleet.from_bytes("snapshot")  # type: ignore[arg-type]
