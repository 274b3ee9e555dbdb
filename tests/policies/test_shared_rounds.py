"""Rounds in the loop: every objective keeps what must hold of any log, and follows its shares."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.event_log import log_lines
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.loop.state import State
from mast_opt.live.policies.round_params import RoundParams
from mast_opt.live.policies.share_rules import OBJECTIVES
from mast_opt.live.policies.shared_rounds import gavel
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server

SERVERS = tuple(
    Server(f"{region}-{kind}-{n}", region, f"{region}-c", "k", kind, 2, 0, 0)
    for region in ("east", "west")
    for kind in ("fast", "slow")
    for n in range(2)
)
KINDS = {server.name: server.gpu_type for server in SERVERS}
SPEEDS = Speeds(
    {("lm", "fast", n): 8 * n for n in (1, 2, 4)}
    | {("lm", "slow", n): 2 * n for n in (1, 2, 4)}
    | {("rl", "slow", n): 3 * n for n in (1, 2, 4)}
)
DATA = {"text": ("east", "west"), "games": ("west",)}


def run(
    params: RoundParams, jobs: list[tuple[int, JobSpec]], until_ms: int | None = None
) -> tuple[list[ev.Stored], State]:
    specs = {f"j{at}": spec for at, (_, spec) in enumerate(jobs)}
    work = {name: Work(spec.duration_ms or 0, spec.checkpoint_ms, spec.restart_ms) for name, spec in specs.items()}
    host = SimulatedHost(
        work, lambda job, server, other, tasks: SPEEDS.rate(specs[job], KINDS[server], specs.get(other))
    )
    state = State(SERVERS, tiers=(0, 1), replicas=DATA)
    log: list[ev.Stored] = []
    coming = [(at, ev.Submitted(name, specs[name])) for name, (at, _) in zip(specs, jobs, strict=True)]
    simulate(
        Engine(state, gavel(params, SPEEDS)), host, coming, until_ms=until_ms, on_turn=lambda t: log.extend(t.events)
    )
    return log, state


def drawn(seed: int, jobs: int, *, gangs: bool) -> list[tuple[int, JobSpec]]:
    rng = np.random.default_rng(seed)
    found = []
    for number in range(jobs):
        model = str(rng.choice(["lm", "rl"]))
        spec = JobSpec(
            tier=1, tasks=int(rng.choice([1, 2, 4])) if gangs else 1, preemptible=number % 5 > 0, model=model,
            gpu_types=dict.fromkeys(SPEEDS.runs[model, 1], 1000), checkpoint_ms=700, restart_ms=300,
            duration_ms=int(rng.integers(1_000, 60_000)), datasets=("games",) if model == "rl" else ("text",),
        )  # fmt: skip
        found.append((number * 700, spec))
    return found


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("aware", [True, False])
def test_every_objective(objective: str, aware: bool) -> None:
    params = RoundParams(objective=objective, aware=aware, round_s=5, reset_s=10)
    jobs = drawn(3, 20, gangs=objective != "allox")
    log, _ = run(params, jobs)
    assert check_log(log, replicas=DATA, all_end=True, durations=True, speeds=SPEEDS.alone) == ()
    stopped = {stored.event.job for stored in log if isinstance(stored.event, ev.StopAsked)}
    assert all(jobs[int(name[1:])][1].preemptible for name in stopped)
    assert bool(stopped) or objective in ("fifo", "allox")
    held = metrics(job_log(log)).held_gpu_s
    assert held.all == pytest.approx(held.useful + held.lost + held.restarting, rel=1e-12)
    assert list(log_lines(run(params, jobs)[0])) == list(log_lines(log))


def test_equal_jobs_have_equal_time() -> None:
    spec = JobSpec(
        tier=1, tasks=4, preemptible=True, model="lm", gpu_types={"fast": 1000}, duration_ms=100_000, datasets=("text",)
    )
    _, state = run(RoundParams(round_s=5, reset_s=10_000), [(0, spec)] * 4, until_ms=80_000)
    had = [record.attained_mgpu_ms / 4_000_000 for record in state.jobs.values()]  # 2 regions hold one gang each
    assert had == pytest.approx([40, 40, 40, 40], abs=5)


def test_what_runs_goes_on() -> None:
    spec = JobSpec(tier=1, tasks=2, preemptible=True, model="lm", gpu_types={"fast": 1000}, duration_ms=50_000)
    log, _ = run(RoundParams(round_s=5), [(0, spec), (1000, spec)])
    assert not [stored for stored in log if isinstance(stored.event, ev.StopAsked)]
    assert metrics(job_log(log)).makespan_s == 55.0  # the second one waits for the next round


def test_a_policy_that_begins_with_running_jobs_keeps_them() -> None:
    _, state = run(RoundParams(round_s=5), drawn(1, 12, gangs=True), until_ms=12_000)
    policy = gavel(RoundParams(round_s=5), SPEEDS)
    turn = Engine(state, policy).advance(12_001, [])
    running = {record.name for record in state.jobs.values() if record.shares}
    assert running
    assert policy.every_ms == 5000
    assert len([stored for stored in turn.events if isinstance(stored.event, ev.StopAsked)]) < len(running)


def test_wrong_parameters() -> None:
    with pytest.raises(UsageError, match="objective is 'least'; expected one of fifo, max-min"):
        RoundParams(objective="least")
    with pytest.raises(UsageError, match="round_s and reset_s are 0 and 1920"):
        RoundParams(round_s=0)
    unknown = JobSpec(tier=1, model="lm", gpu_types={"fast": 1000})
    with pytest.raises(UsageError, match="job j0 has no duration"):
        run(RoundParams(objective="makespan"), [(0, unknown)])
    gang = JobSpec(tier=1, tasks=2, model="lm", gpu_types={"fast": 1000}, duration_ms=5)
    with pytest.raises(UsageError, match="job j0 does not take exactly one GPU"):
        run(RoundParams(objective="allox"), [(0, gang)])
