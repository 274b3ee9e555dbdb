"""What servers could give, against a sum over the jobs that they hold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from mast_opt.live.loop import reclaimable
from mast_opt.live.loop.reclaimable import Reclaimable
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share

TIERS = (0, 2, 5)


def servers(names: str) -> list[Server]:
    return [Server(name, f"region-{name}", f"c-{name}", "r", "H100", 8, 0, 0) for name in names]


class Holders:
    """A fleet with jobs on whole GPUs of its servers, the least used ones of each."""

    def __init__(self, servers: Iterable[Server]) -> None:
        self.fleet = Fleet(servers, tiers=TIERS)
        self.kept = Reclaimable(self, TIERS)
        self.started = 0
        self.held: list[tuple[str, str, int, int | None, tuple[int, ...]]] = []
        """Job, server, milli-GPUs, tier of one that may be stopped, GPUs."""

    def room(self, server: str) -> int:
        return 8 - sum(len(gpus) for _, at, _, _, gpus in self.held if at == server)

    def start(self, server: str, gpus: int, stoppable_tier: int | None) -> None:
        used = [gpu for _, at, _, _, taken in self.held if at == server for gpu in taken]
        taken = tuple(sorted(range(8), key=used.count)[:gpus])
        name, tier = f"j{self.started}", TIERS[0] if stoppable_tier is None else stoppable_tier
        job = Job(name, tier, mgpu=1000 * gpus, preemptible=stoppable_tier is not None)
        self.fleet.adopt(job, (Share(server, 1, dict.fromkeys(taken, 1000)),))
        self.kept.shrink(server)
        self.started += 1
        self.held.append((name, server, 1000 * gpus, stoppable_tier, taken))

    def end(self, number: int) -> str:
        name, server, *_ = self.held.pop(number)
        self.fleet.release(name)
        self.kept.grow(server)
        return server


@pytest.mark.parametrize("seed", range(3))
def test_against_a_list_of_jobs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = Holders(servers("abc"))
    kept = jobs.kept
    for _ in range(150):
        since, changes, server = kept.count, kept.changes, str(rng.choice(list("abc")))
        if jobs.held and (rng.random() < 0.4 or not jobs.room(server)):
            server = jobs.end(int(rng.integers(len(jobs.held))))
            assert list(kept.grown(since) or ()) == [server]
        else:
            tier = [None, *TIERS][int(rng.integers(4))]
            jobs.start(server, int(rng.integers(1, jobs.room(server) + 1)), tier)
            assert list(kept.grown(since) or ()) == []
        assert list(kept.changed(changes) or ()) == [server]
        for server in "abc":
            for tier in TIERS:
                firm = sum(m for _, at, m, own, _ in jobs.held if at == server and (own is None or own <= tier))
                assert kept.most(server, tier) == 8000 - firm
            most = int(rng.integers(8001))
            assert kept.tiers_with(server, most) == sum(kept.most(server, tier) >= most for tier in TIERS)


def test_a_server_that_takes_no_work_gives_nothing() -> None:
    jobs = Holders(servers("ab"))
    jobs.start("a", 3, 5)
    jobs.fleet.cordon("a")
    assert (jobs.kept.most("a", 0), jobs.kept.most("b", 0)) == (0, 8000)
    jobs.fleet.uncordon("a")
    assert (jobs.kept.most("a", 0), jobs.kept.most("a", 5)) == (8000, 5000)


def test_what_has_grown_too_long_ago_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaimable, "MOST_KEPT", 4)
    kept = Holders(servers("a")).kept
    for server in "abcdefghi":
        kept.grow(server)
    assert kept.count == 9
    assert (kept.grown(3), kept.changed(3)) == (None, None)
    assert list(kept.grown(4) or ()) == list("efghi")
