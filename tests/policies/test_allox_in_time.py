"""AlloX in the loop: the least total completion time of jobs that are all there, and no job stopped for another."""

from __future__ import annotations

import itertools
import random

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.events import Finished, Placed, StopAsked
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.simulation.run import run_trace
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.simulation.test_order_only import trace_of


def run(rows: list[dict[str, int]], gpus: int) -> tuple[dict[str, int], dict[str, int]]:
    """When each job starts and ends."""
    servers = tuple(Server(f"n{at}", "r", "c-r", "k", "h100", 1, 0, 0) for at in range(gpus))
    log = list(run_trace(trace_of(*rows, servers=servers), "allox").events())
    assert check_log(log, all_end=True, durations=True) == ()
    assert not any(isinstance(one.event, StopAsked) for one in log)
    starts = {one.event.job: one.at_ms for one in log if isinstance(one.event, Placed)}
    return starts, {one.event.job: one.at_ms for one in log if isinstance(one.event, Finished)}


def least(times: list[int], gpus: int) -> int:
    """The least sum of completion times over all orders, each served by the GPU that is free first."""
    best = None
    for order in itertools.permutations(times):
        free, total = [0] * gpus, 0
        for time in order:
            free.sort()
            free[0] += time
            total += free[0]
        best = total if best is None else min(best, total)
    assert best is not None
    return best


@pytest.mark.parametrize("seed", range(6))
def test_jobs_that_are_all_there_complete_at_the_least_total(seed: int) -> None:
    rng = random.Random(seed)
    times = [rng.randint(1, 50) * 1000 for _ in range(6)]
    _, ends = run([{"duration_ms": time, "submitted_ms": 0} for time in times], 2)
    assert sum(ends.values()) == least(times, 2)


def test_a_gpu_never_idles_until_the_next_round_and_no_filler_is_stopped() -> None:
    """A plan is made when a job ends or comes: the short job that comes at 5 s is next."""
    rows = [
        {"duration_ms": 10_000, "submitted_ms": 0},
        {"duration_ms": 60_000, "submitted_ms": 1_000},
        {"duration_ms": 2_000, "submitted_ms": 5_000},
    ]
    starts, _ = run(rows, 1)
    assert starts == {"j0": 0, "j2": 10_000, "j1": 12_000}


def test_gangs_and_jobs_of_unknown_duration_are_refused() -> None:
    with pytest.raises(UsageError, match="job j0 does not take exactly one GPU; allox places no others"):
        run([{"mgpu": 2000, "duration_ms": 5}], 2)
