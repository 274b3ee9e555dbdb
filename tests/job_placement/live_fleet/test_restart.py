"""Snapshots in bytes: the same bids afterwards as without, and nothing but whole ones of the same fleet and version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
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
    with pytest.raises(UsageError, match=words):
        Fleet.from_bytes(damage(data))
    assert fleet.commit(bid) == ()
    assert Fleet.from_bytes(data).running() == ()


def test_a_snapshot_is_bytes() -> None:
    with pytest.raises(UsageError, match="takes bytes, not a str"):
        Fleet.from_bytes("snapshot")  # type: ignore[arg-type]
