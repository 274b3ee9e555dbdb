"""Every log passes the checker, and kernel and engine write the same one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.head_of_line import HeadOfLine
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.state import State
from mast_opt.live.policies.early_binding import EarlyBinding, EarlyBindingParams
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.kernel import POLICIES
from mast_opt.live.simulation.order_only import replay_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from tests.simulation import test_driver
from tests.simulation.test_order_only import trace_of

SMALL = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"


def dense(seed: int, jobs: int = 150, regions: tuple[str, ...] = ("a", "b")) -> JobTrace:
    rng = np.random.default_rng(seed)
    gangs = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 4), (3, 2)]
    rows = [
        {
            "submitted_ms": number * 4 + int(rng.integers(4)),
            "duration_ms": int(rng.integers(1, 60)),
            "tasks": tasks,
            "mgpu": gpus * 1000,
            "home_region": str(rng.choice(regions)),
            "checkpoint_ms": int(rng.integers(0, 12)),
            "restart_ms": int(rng.integers(0, 5)),
        }
        for number in range(jobs)
        for tasks, gpus in [gangs[int(rng.integers(len(gangs)))]]
    ]
    return trace_of(*rows, regions=regions)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_logs_of_kernels(policy: str, seed: int) -> None:
    log = replay_trace(dense(seed), policy, thresholds_gpu_s=None)
    assert check_log(log.events(), all_end=True, durations=True) == ()
    found = metrics(log.rows)
    assert metrics(job_log(log.events())) == found
    parts = found.held_gpu_s
    assert parts.all == pytest.approx(parts.useful + parts.lost + parts.restarting + parts.unfinished, rel=1e-12)
    assert parts.unfinished == 0
    work = log.rows.duration_ms * log.rows.mgpu
    assert parts.useful == pytest.approx(work.sum() / 1e6, rel=1e-12)
    assert found.finished == found.jobs == 150
    assert (found.preemptions > 0) == (policy in ("srtf", "las"))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_small_trace(policy: str) -> None:
    log = replay_trace(read_trace(SMALL), policy)
    assert check_log(log.events(), all_end=True, durations=True) == ()


def test_a_log_that_is_cut_passes() -> None:
    log = replay_trace(dense(1), "srtf", until_ms=300)
    assert check_log(log.events(), durations=True) == ()
    assert metrics(log.rows).waiting > 0
    assert metrics(log.rows) == metrics(job_log(log.events()))


@pytest.mark.parametrize("name", test_driver.POLICIES)
def test_logs_of_the_engine(name: str) -> None:
    _, log, _ = test_driver.run(name, seed=3)
    data = {"logs": {"west", "east"}, "images": {"west"}}
    limited = ("ads", "search")
    assert check_log(log, replicas=data, limited=limited, all_end=True, durations=True) == ()
    found = metrics(job_log(log))
    assert found.finished + found.cancelled == found.jobs == 60
    assert found.allocation is not None
    assert 0 < found.allocation <= 1


def run_engine(trace: JobTrace, policy: str) -> list[ev.Stored]:
    """The log of the engine on the same trace; with several regions each job goes to its home."""
    jobs = trace.submissions
    chosen = HeadOfLine(policy) if len(trace.regions) == 1 else EarlyBinding(EarlyBindingParams("home"))
    engine, log = Engine(State(trace.servers, tiers=(1,), placement="best-fit"), chosen), list[ev.Stored]()
    work = {name: Work(int(jobs.duration_ms[j]), 0) for j, name in enumerate(jobs.labels)}
    coming = [(int(jobs.submitted_ms[j]), ev.Submitted(name, jobs.spec(j))) for j, name in enumerate(jobs.labels)]

    def keep(turn: Turn) -> None:
        log.extend(turn.events)

    simulate(engine, SimulatedHost(work), coming, on_turn=keep)
    return log


def placements(log: list[ev.Stored]) -> list[tuple[int, str, list[tuple[str, int]]]]:
    """Time, job, and tasks by server of every placement, in the order of time and job."""
    return sorted(
        (stored.at_ms, stored.event.job, sorted((share.server, share.tasks) for share in stored.event.shares))
        for stored in log
        if isinstance(stored.event, ev.Placed)
    )


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
@pytest.mark.parametrize("seed", range(2))
def test_engine_and_kernel_place_the_same_jobs_at_the_same_time(policy: str, seed: int) -> None:
    trace = dense(seed, regions=("a",))
    compiled = list(replay_trace(trace, policy).events())
    assert placements(run_engine(trace, policy)) == placements(compiled)
