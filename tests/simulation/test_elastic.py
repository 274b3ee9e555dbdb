"""Elastic jobs: sizes that a policy of rounds changes while jobs run, and what follows for work, logs and figures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.loop.state import State
from mast_opt.live.policies.presets import GoodputParams, ServiceParams, preset_policy
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.store.recovery import replay
from mast_opt.live.store.state_format import state_bytes, state_from
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

CURVE = {1: 10, 2: 18, 4: 30, 8: 40}
SPEEDS = Speeds(
    {("lm", kind, n): speed // slower for kind, slower in (("h", 1), ("k", 2)) for n, speed in CURVE.items()}
)
ONE = (Server("s", "r", "c", "k", "h", 8, 0, 0),)
SPEC = JobSpec(
    tasks=2, min_tasks=1, max_tasks=8, preemptible=True, model="lm", gpu_types={"h": 1000}, restart_ms=1000
)  # fmt: skip
TWO = {"a": replace(SPEC, duration_ms=4_000_000), "b": replace(SPEC, duration_ms=900_000)}
Look = Callable[[State, Turn], None]


def run(
    servers: tuple[Server, ...], jobs: dict[str, tuple[int, JobSpec]], policy: str = "sia", look: Look | None = None
) -> list[ev.Stored]:
    kinds = {server.name: server.gpu_type for server in servers}
    work = {name: Work(spec.duration_ms or 0, spec.checkpoint_ms, spec.restart_ms) for name, (_, spec) in jobs.items()}
    host = SimulatedHost(work, lambda job, server, other, tasks: SPEEDS.rate(jobs[job][1], kinds[server], None, tasks))
    state, log = State(servers, tiers=(0, 1, 2)), list[ev.Stored]()
    params = ServiceParams if policy == "singularity" else GoodputParams
    rounds = preset_policy(policy, params(round_s=2, reset_s=2), SPEEDS)

    def keep(turn: Turn) -> None:
        log.extend(turn.events)
        if look is not None:
            look(state, turn)

    coming = [(at, ev.Submitted(name, spec)) for name, (at, spec) in jobs.items()]
    simulate(Engine(state, rounds), host, coming, on_turn=keep)
    return log


def sizes_in(log: list[ev.Stored]) -> list[tuple[int, str, int]]:
    """(time, job, tasks) of each placement and each change of size."""
    return [
        (one.at_ms, one.event.job, sum(share.tasks for share in one.event.shares))
        for one in log
        if isinstance(one.event, (ev.Placed, ev.Resized))
    ]


def test_one_job_shrinks_for_another_and_grows_again() -> None:
    log = run(ONE, {"a": (0, TWO["a"]), "b": (100_000, TWO["b"])})
    found = sizes_in(log)
    # Alone: 8 tasks, worth most. Two jobs (1 task is worth 1): 2 · 3^-½ = 1.155 with 4 tasks each, against
    # 4^-½ + 1.1 = 1.6 for one of them; that the first one leaves its size counts 0.9, 2.7^-½ + 3^-½ = 1.186.
    assert found == [(0, "a", 8), (100_000, "a", 4), (100_000, "b", 4), (640_000, "a", 8)]
    assert not any(isinstance(one.event, ev.StopAsked) for one in log)
    ends = {one.event.job: one for one in log if isinstance(one.event, ev.Finished)}
    shrunk_ms, b_ms, grown_ms = found[1][0], found[2][0], found[3][0]
    # Rates, of that with 2 tasks: 30/18 with 4, 40/18 with 8.
    assert ends["b"].at_ms == b_ms + 540_000
    done = shrunk_ms * 40 / 18 + (grown_ms - shrunk_ms - 1000) * 30 / 18
    assert ends["a"].at_ms == pytest.approx(grown_ms + 1000 + (4_000_000 - done) * 18 / 40, abs=2)
    held = metrics(job_log(log)).held_gpu_s
    restarts = 1000 * (4 + 8) / 1000
    assert held.restarting == pytest.approx(restarts)
    a_s, b_s = ends["a"].at_ms / 1000, 540 * 4
    assert held.all == pytest.approx(8 * a_s - 4 * (grown_ms - shrunk_ms) / 1000 + b_s)
    assert held.all == held.useful + held.restarting
    allocation = metrics(job_log(log), 0, ends["a"].at_ms).allocation
    assert allocation == pytest.approx(held.all / (8 * a_s))


def test_under_singularity_the_least_important_shrinks_before_it_is_stopped_and_grows_again() -> None:
    """Four GPUs: the first job has all of them, and gives up half when a second one comes."""
    servers = (replace(ONE[0], gpus=4),)
    spec = replace(SPEC, tasks=4, min_tasks=1, max_tasks=4)
    fixed = replace(spec, tasks=2, min_tasks=None, max_tasks=None, duration_ms=60_000)
    log = run(servers, {"low": (0, replace(spec, tier=2, duration_ms=600_000)), "high": (60_000, fixed)}, "singularity")
    found = sizes_in(log)
    assert found == [(0, "low", 4), (60_000, "low", 2), (60_000, "high", 2), (120_000, "low", 4)]
    assert not any(isinstance(one.event, ev.StopAsked) for one in log)
    stays = run(servers, {"low": (0, replace(fixed, tier=2, tasks=4)), "high": (30_000, fixed)}, "singularity")
    assert any(isinstance(one.event, ev.StopAsked) for one in stays)  # one of fixed size is stopped


def drawn(seed: int, tier: int) -> dict[str, tuple[int, JobSpec]]:
    rng = np.random.default_rng(seed)
    found = {}
    for number in range(24):
        tasks, model = int(rng.choice([1, 2, 4])), "lm" if rng.random() < 0.6 else ""
        least, most = (1, int(rng.choice([tasks, 8]))) if number % 4 else (None, None)
        spec = JobSpec(
            tier=tier, tasks=tasks, min_tasks=least, max_tasks=most, preemptible=rng.random() < 0.8, model=model,
            duration_ms=int(rng.integers(500, 30_000)), checkpoint_ms=int(rng.choice([0, 700])),
            restart_ms=int(rng.choice([0, 300])), tenant=str(rng.choice(["x", "y"])),
        )  # fmt: skip
        found[f"j{number}"] = (int(rng.integers(0, 20_000)), spec)
    return dict(sorted(found.items(), key=lambda pair: pair[1][0]))


SERVERS = tuple(Server(f"{kind}{n}", "r", kind, "k", kind, 4, 0, 0) for kind in "hk" for n in range(2))


@pytest.mark.parametrize(("seed", "policy"), [(0, "sia"), (1, "sia"), (2, "pollux"), (3, "singularity")])
def test_random_traces_keep_every_rule(seed: int, policy: str) -> None:
    jobs, digests, middle = drawn(seed, 2 if policy == "singularity" else 1), dict[int, str](), list[bytes]()

    def look(state: State, turn: Turn) -> None:
        if turn.events:
            digests[state.seq] = state.digest()
            if any(record.resized for record in state.jobs.values()) and not middle:
                middle.append(state_bytes(state))
        for record in state.jobs.values():
            least, most = record.spec.sizes
            assert not record.shares or least <= sum(share.tasks for share in record.shares) <= most

    log = run(SERVERS, jobs, policy, look)
    assert check_log(log, all_end=True, durations=True, speeds=SPEEDS.alone) == ()
    resized = {one.event.job for one in log if isinstance(one.event, ev.Resized)}
    assert resized
    assert all(jobs[name][1].preemptible for name in resized)
    again = State(SERVERS, tiers=(0, 1, 2))
    for stored in log:
        again.apply(stored.seq, stored.at_ms, stored.event)
        assert again.digest() == digests.get(again.seq, again.digest())
    stored_state = state_from(middle[0])
    assert stored_state.digest() == digests[stored_state.seq]
    for opening in (stored_state, State(SERVERS, tiers=(0, 1, 2))):
        replay(opening, log[opening.seq :])
        assert opening.digest() == again.digest()
        assert opening.fleet.running() == again.fleet.running()
    follow_each_ms(log, {name: spec for name, (_, spec) in jobs.items()})
    figures = metrics(job_log(log))
    held = figures.held_gpu_s
    assert held.all == pytest.approx(held.useful + held.lost + held.restarting, rel=1e-12)
    assert held.all == pytest.approx(held_gpu_s(log), rel=1e-12)


def held_gpu_s(log: list[ev.Stored]) -> float:
    """GPU-seconds that jobs hold: after each event, what all of them hold until the next one."""
    total, holds, last_ms = 0, dict[str, int](), 0
    for stored in log:
        total += sum(holds.values()) * (stored.at_ms - last_ms)
        last_ms = stored.at_ms
        if isinstance(stored.event, (ev.Placed, ev.Resized)):
            holds[stored.event.job] = sum(sum(share.gpus.values()) for share in stored.event.shares)
        elif isinstance(stored.event, (ev.Stopped, ev.Finished)):
            del holds[stored.event.job]
    return total / 1e6


def follow_each_ms(log: list[ev.Stored], specs: dict[str, JobSpec]) -> None:
    """Do the work of every job ms by ms, and compare with what its host has reported."""
    saved = dict.fromkeys(specs, 0)
    for name, spec in specs.items():
        events = [one for one in log if getattr(one.event, "job", "") == name]
        sizes: list[tuple[int, tuple[Share, ...], int]] = []
        for stored in events:
            event, at = stored.event, stored.at_ms
            if isinstance(event, ev.Placed):
                sizes = [(at, event.shares, at + spec.restart_ms * (event.attempt > 1))]
            elif isinstance(event, ev.Resized):
                sizes.append((at, event.shares, at + spec.restart_ms))
            elif isinstance(event, (ev.Stopped, ev.Finished)):
                done, kept, worked, kept_worked = saved[name], saved[name], 0, 0
                for ms in range(sizes[0][0], at):
                    since, shares, works = [one for one in sizes if one[0] <= ms][-1]
                    if spec.checkpoint_ms == 0 or ms == since or (ms - works) % spec.checkpoint_ms == 0:
                        kept, kept_worked = (done, worked) if ms == since or ms >= works else (kept, kept_worked)
                    if ms >= works:
                        done += rate(spec, shares)
                        worked += 1
                last = sizes[-1][2]
                if spec.checkpoint_ms == 0 or at <= last or (at - last) % spec.checkpoint_ms == 0:
                    kept, kept_worked = done, worked
                if isinstance(event, ev.Finished):
                    assert spec.duration_ms is not None
                    assert done - rate(spec, sizes[-1][1]) < spec.duration_ms * 1_000_000 <= done
                    assert event.work_time_ms == worked
                else:
                    assert (event.work_ms, event.work_time_ms) == (
                        kept // 1_000_000 - saved[name] // 1_000_000,
                        kept_worked,
                    )
                    assert event.lost_time_ms == worked - kept_worked
                    saved[name] = kept


def rate(spec: JobSpec, shares: tuple[Share, ...]) -> int:
    tasks = sum(share.tasks for share in shares)
    if not spec.model:
        return int(1_000_000 * tasks / spec.tasks + 0.5)
    slower = 2 if shares[0].server[0] == "k" else 1
    return int(1_000_000 * (CURVE[tasks] // slower) / CURVE[spec.tasks] + 0.5)


def running() -> State:
    """A job with two tasks on a server of four GPUs, and one that stops on the other server."""
    state = State((Server("s", "r", "c", "k", "h", 4, 0, 0), Server("t", "r", "c", "k", "h", 4, 0, 0)), tiers=(0,))
    on_t = (Share("t", 4, dict.fromkeys(range(4), 1000)),)
    spec, fixed = replace(SPEC, model="", max_tasks=6), replace(SPEC, tasks=4, min_tasks=None, max_tasks=None)
    for event in (
        *state.opening(), ev.Submitted("a", spec), ev.Submitted("z", fixed),
        ev.Placed("a", 1, "r", "c", (Share("s", 2, {0: 1000, 1: 1000}),)), ev.Placed("z", 1, "r", "c", on_t),
        ev.Started("a", 1), ev.Started("z", 1), ev.StopAsked("z", 1, ""),
    ):  # fmt: skip
        state.apply(state.seq + 1, 10, event)
    return state


def test_nobody_grows_where_others_still_stop() -> None:
    state = running()
    took: list[ev.Event] = []
    actions = Actions(state, took.append, ExitStack())
    assert not actions.resize("a", 6)
    assert took == []
    assert actions.resize("a", 4)
    assert took == [ev.Resized("a", 1, 4, (Share("s", 4, dict.fromkeys(range(4), 1000)),))]
    six = ev.Resized("a", 1, 6, (Share("s", 4, dict.fromkeys(range(4), 1000)), Share("t", 2, {0: 1000, 1: 1000})))
    with pytest.raises(ev.CorruptLog, match="others have not stopped"):
        state.apply(state.seq + 1, 20, six)
    state = running()
    state.apply(state.seq + 1, 20, ev.Stopped("z", 1, 0, 0))
    state.apply(state.seq + 1, 30, six)
    assert state.jobs["a"].mgpu == 6000
    assert state.jobs["a"].attained_mgpu_ms + 6000 * 20 == 2000 * 20  # since it began


@pytest.mark.parametrize(("job", "tasks", "words"), [("a", 7, "expected 1 to 6"), ("z", 4, "cannot be resized")])
def test_what_may_not_be_resized(job: str, tasks: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Actions(running(), lambda event: None, ExitStack()).resize(job, tasks)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda event: replace(event, shares=(Share("s", 9, {}),), tasks=9), "gang"),
        (lambda event: replace(event, tasks=3), "gang"),
        (lambda event: replace(event, attempt=2), "job"),
        (lambda event: replace(event, shares=(Share("u", event.tasks, {}),)), "server"),
        (lambda event: replace(event, shares=(Share("s", 8, dict.fromkeys(range(8), 1000)),), tasks=8), "capacity"),
    ],
)
def test_the_checker_sees_wrong_sizes(change: Callable[[ev.Resized], ev.Resized], what: str) -> None:
    log = run(ONE, {"a": (0, TWO["a"]), "b": (100_000, TWO["b"])})
    at = next(at for at, one in enumerate(log) if isinstance(one.event, ev.Resized))
    event = log[at].event
    assert isinstance(event, ev.Resized)
    wrong = [*log[:at], replace(log[at], event=change(event)), *log[at + 1 :]]
    assert what in {found.what for found in check_log(wrong, durations=True, speeds=SPEEDS.alone)}


def test_the_checker_sees_work_that_sizes_do_not_allow() -> None:
    log = run(ONE, {"a": (0, TWO["a"]), "b": (100_000, TWO["b"])})
    slow = {key: speed if key[2] < 4 else 20 for key, speed in SPEEDS.alone.items()}
    assert {found.what for found in check_log(log, durations=True, speeds=slow)} == {"work"}
