"""Standing under quotas is the same in a batch (GMS), in the fast path and in the loop, for random trees and work."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Key, Quotas
from mast_opt.core.ranks import Ranks, Reclaim, Right
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from mast_opt.problems.job_placement.quota_standing import standing_of
from tests.core.test_ledger import Held
from tests.core.test_ledger_trees import random_tree

TYPES, TIERS = ("a", "b"), 3
SERVERS = [Server(kind, "r", f"c-{kind}", "b", kind, 5000, 10**6, 10**6) for kind in TYPES]
WHOLE = 1000


def in_gpus(tree: Quotas) -> Quotas:
    """The tree with GPUs for milli-GPUs."""
    rows: list[tuple[str, Key, Quota, str]] = []
    for name, key, one, parent in tree.rows():
        limits = (None if most is None else WHOLE * most for most in (one.borrowing, one.lending))
        rows.append((name, key, Quota(WHOLE * one.nominal, *limits), parent))
    return Quotas.of(rows)


def job_of(name: str, held: Held, *, preemptible: bool) -> tuple[Job, Share]:
    """A job that takes GPUs of one type, and where it runs."""
    tenant, tier, _, amounts = held
    ((kind, mgpu),) = amounts.items()
    job = Job(name, tier, mgpu=mgpu, tenant=tenant, preemptible=preemptible, gpu_types={kind: mgpu})
    return job, Share(kind, 1, {0: mgpu})


def spec_of(job: Job) -> JobSpec:
    return JobSpec(
        tier=job.tier, mgpu=job.mgpu, tenant=job.tenant, preemptible=job.preemptible, gpu_types=job.gpu_types
    )


@pytest.mark.parametrize("reclaim", Reclaim)
@pytest.mark.parametrize("seed", range(25))
def test_all_three_agree(seed: int, reclaim: Reclaim) -> None:
    """What each tenant may hold in addition, who stands where, who may be stopped for whom, and where a job would."""
    rng = np.random.default_rng(seed)
    quotas = in_gpus(random_tree(rng))
    running: list[Held] = [
        (
            f"t{rng.integers(6)}",
            int(rng.integers(TIERS)),
            number,
            {str(rng.choice(TYPES)): WHOLE * int(rng.integers(1, 5))},
        )
        for number in range(int(rng.integers(0, 9)))
    ]
    preemptible = [bool(rng.random() < 0.5) for _ in running]
    jobs = [job_of(f"v{n}", held, preemptible=preemptible[n]) for n, held in enumerate(running)]
    asked: Held = (
        f"t{rng.integers(6)}",
        int(rng.integers(TIERS)),
        99,
        {str(rng.choice(TYPES)): WHOLE * int(rng.integers(1, 5))},
    )
    job, _ = job_of("j", asked, preemptible=False)

    fleet = Fleet(SERVERS, tiers=range(TIERS), quotas=quotas)
    fleet.set_reclaim(reclaim)
    state = State(SERVERS, tiers=range(TIERS), quotas=quotas)
    state.fleet.set_reclaim(reclaim)
    happened: list[ev.Event] = [*state.opening()]
    for one, share in jobs:
        fleet.adopt(one, (share,))
        happened += [ev.Submitted(one.name, spec_of(one)), ev.Adopted(one.name, 1, "r", f"c-{share.server}", (share,))]
    for event in [*happened, ev.Submitted("j", spec_of(job))]:
        state.apply(state.seq + 1, 0, event)

    held = np.array([[amounts.get(kind, 0) for kind in TYPES] for _, _, _, amounts in running], np.int64).reshape(-1, 2)
    ((kind, mgpu),) = asked[3].items()
    batch = standing_of(
        quotas,
        Ranks(TIERS, quotas=True, reclaim=reclaim),
        [(*one[:2], may) for one, may in zip(running, preemptible, strict=True)],
        held,
        [asked[:2]],
        np.array([0]),
        np.array([0]),
        (np.array([0]), np.array([TYPES.index(kind)])),
        np.array([mgpu]),
        TYPES,
    )
    books, level = fleet._books, int(batch.job_level[0])
    may_stop = [name for name in fleet.running() if books.limit_of(books.running[name]) > level]
    assert may_stop == [
        f"v{v}" for v in range(len(running)) if (preemptible[v] or batch.exposed[v]) and batch.running_level[v] > level
    ]
    for name in fleet.running():
        assert state.jobs[name].over_quota == fleet.is_over_quota(name) == (books.ledger.standing(name) > Right.WITHIN)
        assert state.fleet._books.limit_of(state.fleet._books.running[name]) == books.limit_of(books.running[name])
    right = books.best_right(job)
    assert level == books.level_of(job, right)
    assert fleet.importance_of(job) == Snapshot(state, ()).importance(state.jobs["j"])
    assert [fleet.ledger.left(f"t{n}", key) for n in range(6) for key in (None, *TYPES)] == [
        state.fleet.ledger.left(f"t{n}", key) for n in range(6) for key in (None, *TYPES)
    ]
    assert bool(batch.barred[0]) == (not books.options(job))
