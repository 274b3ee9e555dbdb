"""What servers could give, against a sum over the jobs that they hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from mast_opt.live.loop import reclaimable
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.reclaimable import Reclaimable
from mast_opt.problems.job_placement.live_fleet.types import Share

TIERS = (0, 2, 5)


def holder(server: str, mgpu: int, stoppable_tier: int | None) -> JobRecord:
    """A job that holds so much of a server."""
    shares = (Share(server, 1, {0: mgpu}),)
    return cast(JobRecord, SimpleNamespace(shares=shares, stoppable_tier=stoppable_tier, over_quota=False))


@pytest.mark.parametrize("seed", range(5))
def test_against_a_list_of_jobs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kept = Reclaimable(TIERS)
    for server in "abc":
        kept.add(server, f"region-{server}", 100)
    jobs: list[tuple[str, int, int | None]] = []
    for _ in range(300):
        since, changes = kept.count, kept.changes
        if jobs and rng.random() < 0.5:
            job = jobs.pop(int(rng.integers(len(jobs))))
            kept.holds(holder(*job), -1)
            assert kept.grown(since) == [(f"region-{job[0]}", job[0])]
            assert list(kept.changed(changes) or ()) == [job[0]]
        else:
            tier = [None, *TIERS][int(rng.integers(4))]
            jobs.append((str(rng.choice(list("abc"))), int(rng.integers(1, 9)), tier))
            kept.holds(holder(*jobs[-1]), 1)
            assert kept.grown(since) == []
            assert list(kept.changed(changes) or ()) == [jobs[-1][0]]
        for server in "abc":
            for tier in TIERS:
                firm = sum(mgpu for at, mgpu, own in jobs if at == server and (own is None or own <= tier))
                assert kept.most(server, tier) == 100 - firm
            most = int(rng.integers(101))
            assert kept.tiers_with(server, most) == sum(kept.most(server, tier) >= most for tier in TIERS)


def test_what_has_grown_too_long_ago_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaimable, "MOST_KEPT", 4)
    kept = Reclaimable(TIERS)
    for server in "abcdefghi":
        kept.add(server, "east", 1)
    assert kept.count == 9
    assert (kept.grown(3), kept.changed(3)) == (None, None)
    assert kept.grown(4) == [("east", server) for server in "efghi"]
