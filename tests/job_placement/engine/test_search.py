"""The search for one job against everything that could be done, in the order in which bids compare."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.exhaustive.batch import exhaustively
from mast_opt.problems.job_placement.exhaustive.batch_state import batch_state_of
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.job_placement.brute import Brute
from tests.job_placement.fleets import crowded

INSTANCES = 700

Key = tuple[int, int, int, int, float, int, int]


def best_bid(problem: JobPlacement) -> Key | None:
    """The least key of any bid for the job: highest victim tier, GPU-hours, victims, level, load, first servers."""
    brute = Brute(problem)
    p, tier = problem, int(problem.queue_tier[0])
    may_stop = [v for v in range(brute.V) if p.running.preemptible[v] and p.running.tier[v] > tier]
    best = None
    for number in range(len(may_stop) + 1):
        for chosen in combinations(may_stop, number):
            stopped = tuple(v in chosen for v in range(brute.V))
            for c, k in {(brute.cluster[s], brute.kind[s]) for s in range(brute.S)}:
                level = closest_level(brute, c, k, stopped)
                if level is not None:
                    bid = key(brute, chosen, level, c, k)
                    best = bid if best is None else min(best, bid)
    return best


def key(brute: Brute, victims: tuple[int, ...], level: int, c: int, k: int) -> Key:
    p = brute.p
    r = int(p.clusters.region[c])
    here = [s for s in range(brute.S) if brute.region[s] == r]
    used = sum(brute.held[v, s][0] for v in range(brute.V) for s in here)
    return (
        max((brute.P - int(p.running.tier[v]) for v in victims), default=0),
        sum(int(p.running.at_risk_mgpu_hours[v]) for v in victims),
        len(victims),
        max(0, level - int(p.jobs.prefer[0])),
        used / sum(brute.supply[s][0] for s in here),
        here[0],
        min(s for s in here if (brute.cluster[s], brute.kind[s]) == (c, k)),
    )


def closest_level(brute: Brute, c: int, k: int, stopped: tuple[bool, ...]) -> int | None:
    p = brute.p
    if (0, k) not in brute.need:
        return None
    servers = [s for s in range(brute.S) if (brute.cluster[s], brute.kind[s]) == (c, k)]
    fit = {s: most_tasks(brute, s, stopped) for s in servers}
    by_rack: dict[int, int] = {}
    for s in servers:
        by_rack[brute.rack[s]] = by_rack.get(brute.rack[s], 0) + fit[s]
    widest = [max(fit.values()), max(by_rack.values()), sum(fit.values())]
    return next((level for level in range(int(p.jobs.within[0]) + 1) if widest[level] >= brute.tasks[0]), None)


def most_tasks(brute: Brute, s: int, stopped: tuple[bool, ...]) -> int:
    number = 0
    while number < brute.tasks[0] and brute.server_feasible(s, (((s, number + 1),),), stopped):
        number += 1
    return number


@pytest.mark.parametrize("fractions", [False, True])
def test_every_bid_is_the_best_there_is(fractions: bool) -> None:
    refused = stopped = 0
    for seed in range(INSTANCES):
        problem = crowded(np.random.default_rng([seed, fractions]), fractions=fractions)
        batch = batch_state_of(problem)
        offer = exhaustively()(batch, 0, batch.request(0))
        expected = best_bid(problem)
        if expected is None:
            assert offer is None, seed
            refused += 1
            continue
        assert offer is not None, seed
        assert offer.proven, seed
        victims = tuple(batch.victim[at] for at in offer.victims.tolist())
        c, k = int(batch.layout.group_cluster[offer.group]), int(batch.layout.group_type[offer.group])
        assert key(Brute(problem), victims, offer.level, c, k) == expected, seed
        batch.admit(0, batch.request(0), offer.placed, offer.victims)
        verdict = verify(problem, batch.plan())
        assert verdict.ok, (seed, verdict.violations)
        stopped += len(victims) > 0
    assert refused > INSTANCES // 20
    assert stopped > INSTANCES // 10
